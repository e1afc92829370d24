/**
 * A secret for each SSP of a cluster (D54): what one of them opens, and what a thief of it cannot do to the others.
 *
 * Against SSPs that remember what they were sent, and once with real ones, because the secret goes both ways.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectError } from "../../kit/checks/contract.ts"
import { type Answer, bodyOf, request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"
import { Words } from "../scheduler/Words.ts"

const [one, two, owner, cluster] = [
  "the-secret-of-ssp-1",
  "the-secret-of-ssp-2",
  "the-secret-of-owner",
  "the-secret-of-all-ssps"
]
const entries = `ssp-1 ssp,read ${one}\nssp-2 ssp,read ${two}\nowner ingest,read,register,admin ${owner}`

const ask = (url: string, asked: string, token: string, body: unknown = {}): Promise<Answer> => {
  const [method = "", path = ""] = asked.split(" ")
  return request(url, { method, path, token, ...(method === "POST" ? { body } : {}) })
}

describe("three SSPs, two of them with a secret of their own", () => {
  let node: Node
  let first: FakeSsp
  let second: FakeSsp
  let third: FakeSsp
  const enter = async (ssp: FakeSsp, token: string): Promise<Answer> => {
    ssp.health = "ready"
    return ask(node.url, "POST /ssp/register", token, { ssp_id: ssp.id, url: ssp.url, batch: true })
  }
  beforeAll(async () => {
    node = await Node.start({
      env: { SVC_AUTH_SECRETS: entries, SVC_SCHEDULER_AUTH_SECRET: "the-only-one", SVC_AUTH_SECRET: cluster }
    })
    ;[first, second, third] = await Promise.all([
      FakeSsp.start("ssp-1"),
      FakeSsp.start("ssp-2"),
      FakeSsp.start("ssp-3")
    ])
  })
  afterAll(async () => {
    await Promise.all([first.close(), second.close(), third.close()])
    await node.close()
  })

  it("POST /ssp/register 202 D54 with the secret of its name; 403 FORBIDDEN for the name of another, and an audit line", async () => {
    expect((await enter(first, one)).status).toBe(202)
    const refused = await ask(node.url, "POST /ssp/register", one, { ssp_id: "ssp-2", url: first.url })
    expect(expectError(refused, 403, "FORBIDDEN")["message"]).toMatch(
      /the secret "ssp-1" speaks for the SSP of that name alone, not for "ssp-2"/
    )
    expect(node.annotated.filter(({ outcome }) => outcome === "FORBIDDEN")).toEqual([
      {
        audit: true,
        operation: "access",
        object: "SSP ssp-2",
        secret: "ssp-1",
        address: "127.0.0.1",
        outcome: "FORBIDDEN"
      }
    ])
    expectError(await ask(node.url, "POST /ssp/register", one, { ssp_id: "ssp-9", url: first.url }), 403, "FORBIDDEN")
    expect((await enter(second, two)).status).toBe(202)
    expect((await enter(third, "the-only-one")).status).toBe(202)
  })
  it("POST /ssp/applied D54 lines are of the SSP of the secret alone: one of another cuts the request", async () => {
    const numberOf = async (ssp: FakeSsp, token: string) => Number(bodyOf(await enter(ssp, token))["registration"])
    const own = { ssp_id: "ssp-1", registration: await numberOf(first, one), seq: 0 }
    const another = { ssp_id: "ssp-2", registration: await numberOf(second, two), seq: 0 }
    const words = await Words.open(node.url, one)
    words.say(own)
    words.say(another)
    await until("it is cut", () => words.isOver)
    const good = await Words.open(node.url, two)
    good.say(another)
    expect((await ask(node.url, "POST /ssp/applied", two, another)).status).toBe(200)
    expect([good.status, good.isOver]).toEqual([200, false])
    good.close()
  })
  it("POST /ssp/heartbeat, /ssp/deregister and /job/result 403 FORBIDDEN D54 for another SSP, which stays as it is", async () => {
    await until(
      "three are ready",
      async () =>
        ((await ask(node.url, "GET /info", owner)).json as ReadonlyArray<{ entity: string; status: string }>).filter(
          ({ entity, status }) => entity === "ssp" && status === "ready"
        ).length === 3
    )
    for (const [asked, body] of [
      ["POST /ssp/heartbeat", { ssp_id: "ssp-2", timestamp: 1, views: 0 }],
      ["POST /ssp/deregister", { ssp_id: "ssp-2" }],
      ["POST /job/result", { job_id: "mail_job:1", status: "failed", ssp_id: "ssp-2" }]
    ] as const) {
      expectError(await ask(node.url, asked, one, body), 403, "FORBIDDEN")
      expect(
        (
          await ask(
            node.url,
            asked === "POST /ssp/deregister" ? "POST /ssp/heartbeat" : asked,
            two,
            asked === "POST /ssp/deregister" ? { ssp_id: "ssp-2", timestamp: 1, views: 0 } : body
          )
        ).status
      ).toBe(200)
    }
    expect((await ask(node.url, "GET /info", owner)).json).toEqual(
      expect.arrayContaining([expect.objectContaining({ id: "ssp-2", status: "ready" })])
    )
  })
  it("D54 it opens nothing that is not an SSP's: no views, no changes, no repairs", async () => {
    for (const asked of ["POST /view/register", "POST /ingest", "POST /jobs/mail_job:1/retry", "POST /job/dispatch"])
      expectError(await ask(node.url, asked, one), 403, "SCOPE_REQUIRED")
    expect((await ask(node.url, "POST /proxy/query", one, { query: "RETURN 1" })).status).toBe(200)
  })
  it("D54 an SSP is sent its own secret alone, and one without the secret of all", async () => {
    expect((await ask(node.url, "POST /ingest", owner, create("t:1"))).status).toBe(200)
    const heard = (ssp: FakeSsp) => [
      ...new Set(ssp.told.filter(({ path }) => path === "/ingest").map(({ authorization }) => authorization))
    ]
    await until("all have heard", () => [first, second, third].every((ssp) => heard(ssp).length > 0))
    expect([first, second, third].map(heard)).toEqual([[`Bearer ${one}`], [`Bearer ${two}`], [`Bearer ${cluster}`]])
    expect(JSON.stringify(first.told)).not.toMatch(/ssp-2"|of-all|the-only-one|owner/)
  })
  it("D54 GET /view/:view_id passes the caller on with the SSP's own secret", async () => {
    expect(
      (await ask(node.url, "POST /view/register", owner, registration("incantation:v", "SELECT * FROM t"))).status
    ).toBe(200)
    const holder = await until("somebody has it", () =>
      [first, second, third].find((ssp) => ssp.calls("/view/register").length > 0)
    )
    expect((await ask(node.url, "GET /view/incantation:v", owner)).status).toBe(200)
    expect(
      holder.told.filter(({ path }) => path.startsWith("/view/incantation")).map(({ authorization }) => authorization)
    ).toEqual([`Bearer ${{ "ssp-1": one, "ssp-2": two }[holder.id] ?? cluster}`])
  })
  it("POST /job/result D54 of a job that another has decides nothing, however well it ended; its holder's does", async () => {
    const job = { job_id: "mail_job:7", table: "mail_job", payload: { path: "/send", body: {} } }
    const dispatched = await ask(node.url, "POST /job/dispatch", owner, job)
    const holder = dispatched.json as string
    const status = async () =>
      (await ask(node.url, "POST /proxy/query", owner, { query: "SELECT VALUE status FROM mail_job" })).text
    const [mine, other] = holder === "ssp-1" ? [one, two] : [two, one]
    if (holder !== "ssp-3") {
      for (const ssp_id of [undefined, holder === "ssp-1" ? "ssp-2" : "ssp-1"])
        expect(
          (
            await ask(node.url, "POST /job/result", other, {
              job_id: job.job_id,
              status: "completed",
              ...(ssp_id === undefined ? {} : { ssp_id })
            })
          ).status
        ).toBe(200)
      expect(await status()).not.toContain("success")
    }
    expect(
      (
        await ask(node.url, "POST /job/result", holder === "ssp-3" ? "the-only-one" : mine, {
          job_id: job.job_id,
          status: "completed"
        })
      ).status
    ).toBe(200)
    await until("it is over", async () => (await status()).includes("success"))
  })
})

describe("a cluster of real SSPs without a secret of all", () => {
  it("D54 joins, takes changes, serves views and runs jobs; a stolen secret opens one SSP and not the other", async () => {
    const folder = temporaryFolder()
    const backend = await TestBackend.start()
    const config = join(folder, "svc.yml")
    writeFileSync(
      config,
      `job_tables:\n  mail_job:\n    name: mail\n    base_url: ${backend.url}\n    auth_token: ${backend.token}\n`
    )
    const node = await Node.start({ env: { SVC_AUTH_SECRETS: entries, SVC_AUTH_SECRET: "" } })
    const ssp = (name: string, secret: string) =>
      Door.start({
        env: {
          SCHEDULER_URL: node.url,
          SSP_ID: name,
          HEARTBEAT_INTERVAL_MS: "100",
          SVC_AUTH_SECRET: secret,
          SVC_SCHEDULER_AUTH_SECRET: secret,
          SVC_CONFIG_PATH: config,
          STORE_ADDR: undefined
        }
      })
    const doors = await Promise.all([ssp("ssp-1", one), ssp("ssp-2", two)])
    try {
      await until(
        "both are ready",
        async () =>
          ((await ask(node.url, "GET /info", owner)).json as ReadonlyArray<{ entity: string; status: string }>).filter(
            ({ entity, status }) => entity === "ssp" && status === "ready"
          ).length === 2
      )
      expect(
        (await ask(node.url, "POST /view/register", owner, registration("incantation:v", "SELECT * FROM t"))).status
      ).toBe(200)
      expect((await ask(node.url, "POST /ingest", owner, create("t:1", { n: 1 }))).status).toBe(200)
      await until("the view has it", async () =>
        (await ask(node.url, "GET /view/incantation:v", owner)).text.includes("t:1")
      )
      expect(
        (
          await ask(node.url, "POST /job/dispatch", owner, {
            job_id: "mail_job:1",
            table: "mail_job",
            payload: { path: "/send", body: { n: 1 } }
          })
        ).status
      ).toBe(200)
      await until("the job has ended", async () =>
        (await ask(node.url, "POST /proxy/query", owner, { query: "SELECT VALUE status FROM mail_job" })).text.includes(
          '"success"'
        )
      )
      expect([
        (await ask(doors[0].url, "GET /views", one)).status,
        (await ask(doors[1].url, "GET /views", one)).status
      ]).toEqual([200, 401])
      expect(doors.map(({ logs }) => logs).join() + node.logs.join()).not.toMatch(/the-secret-of/)
    } finally {
      await Promise.all(doors.map((door) => door.close()))
      await node.close()
      await backend.close()
      removeFolder(folder)
    }
  })
})
