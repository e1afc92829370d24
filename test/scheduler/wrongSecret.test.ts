/**
 * A secret that differs between a scheduler and an SSP: every call that is answered 401 or 403 says which setting it
 * is, in the log, in `/info` and to whom it is refused, and is not sent again and again.
 */

import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer, Redacted } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { bodyOf, request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import * as HttpJobReports from "../../src/drivers/httpJobReports.ts"
import * as HttpSchedulerClient from "../../src/drivers/httpSchedulerClient.ts"
import { over } from "../../src/drivers/shared/exchange.ts"
import { layerClient } from "../../src/host/http/exchange.ts"
import { JobReports } from "../../src/ports/JobReports.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const setting = /does not take this scheduler's secret .*SVC_AUTH_SECRET/
const own = "the-secret-of-the-scheduler"
const callers = "the-secret-of-callers"
const scope = { code: "SCOPE_REQUIRED", message: "needs the scope ingest" }

const begun: Array<{ readonly close: () => Promise<void> }> = []
afterEach(async () => {
  for (const each of begun.splice(0).reverse()) await each.close()
})

const node = async (env: { readonly [name: string]: string } = {}): Promise<Node> => {
  const started = await Node.start({ env: { SVC_AUTH_SECRET: own, ...env } })
  begun.push(started)
  return started
}

const joined = async (at: Node, id: string, more: object = {}): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id)
  begun.push(ssp)
  ssp.health = "ready"
  await ssp.register(at, { ...more })
  await ssp.shown(at, "ready")
  return ssp
}

const refusing = (ssp: FakeSsp, status = 401, body: object = {}): void => {
  ssp.behaviour = ({ path }) => (path === "/health" ? undefined : { status, body })
}

const faultsIn = async (at: Node) =>
  ((await at.get("/info")).json as ReadonlyArray<{ readonly id: string; readonly fault?: string }>).flatMap(
    ({ fault, id }) => (fault === undefined ? [] : [[id, fault]])
  )

const said = (at: Node): number => at.logs.filter((line) => setting.test(line)).length

describe("an SSP that does not take the scheduler's secret", () => {
  for (const [what, status, body] of [
    ["401", 401, {}],
    ["403 for a scope", 403, scope]
  ] as const)
    it(`${what}: a registration is 503 with the setting, nothing is left to be taken back, and /info says so`, async () => {
      const at = await node()
      const ssp = await joined(at, "a")
      refusing(ssp, status, body)
      const answer = await at.post("/view/register", registration("v", "SELECT * FROM t"))
      expect([answer.status, bodyOf(answer)["message"]]).toEqual([503, expect.stringMatching(setting)])
      expect(answer.text).not.toContain(own)
      expect(await faultsIn(at)).toEqual([["a", expect.stringMatching(setting)]])
      await sleep(1500)
      expect([ssp.calls("/view/unregister").length, said(at)]).toEqual([0, 1])
      expect(at.logs.join()).not.toContain(own)
    })

  it("another SSP is given the view; the first one gets views again once it takes the secret", async () => {
    const at = await node()
    const [first, second] = [await joined(at, "a"), await joined(at, "b")]
    refusing(first)
    for (const id of ["v", "w", "x"])
      expect(bodyOf(await at.post("/view/register", registration(id, "SELECT * FROM t")))).toMatchObject({
        ssp_id: "b"
      })
    // One call finds out, and the others go where they are taken.
    expect(first.calls("/view/register").length).toBeLessThanOrEqual(1)
    first.behaviour = () => undefined
    await second.close()
    await second.shown(at, undefined)
    // A delivery that it takes says so before the time is over for which it rests.
    await at.post("/ingest", create("t:1"))
    await until(
      "it is given one",
      async () => (await at.post("/view/register", registration("y", "SELECT * FROM t"))).status === 200
    )
    expect(await faultsIn(at)).toEqual([])
  })

  it("the only one is asked once for all registrations that come while it rests", async () => {
    const at = await node()
    const ssp = await joined(at, "a")
    refusing(ssp)
    for (const id of ["v", "w", "x", "v"]) {
      const answer = await at.post("/view/register", registration(id, "SELECT * FROM t"))
      expect([answer.status, bodyOf(answer)["message"]]).toEqual([503, expect.stringMatching(setting)])
    }
    expect(ssp.calls("/view/register").length).toBe(1)
  })

  for (const [what, status, body] of [
    ["401", 401, {}],
    ["403 for a scope", 403, scope]
  ] as const)
    it(`${what} to the comparison of records is said in the log and in /info`, async () => {
      const at = await node({ SVC_SCHEDULER_INTEGRITY_INTERVAL_SECS: "1" })
      const ssp = await joined(at, "a")
      refusing(ssp, status, body)
      await until("it is said", () => said(at) === 1)
      expect(await faultsIn(at)).toEqual([["a", expect.stringMatching(setting)]])
      expect(ssp.told.filter(({ path }) => path !== "/health").every(({ path }) => path.startsWith("/integrity"))).toBe(
        true
      )
    })

  it("a view that is set aside is not freed where the SSP refuses, and its caller is told why", async () => {
    const at = await node()
    const ssp = await joined(at, "a")
    ssp.behaviour = ({ path }) =>
      path === "/view/register"
        ? { status: 409, body: { code: "VIEW_QUARANTINED", message: "set aside", details: { ends: 2 } } }
        : undefined
    expect((await at.post("/view/register", registration("v", "SELECT * FROM t"))).status).toBe(409)
    refusing(ssp)
    const answer = await at.post("/view/free", { id: "incantation:v" })
    expect(bodyOf(answer)).toEqual({ code: "SSP_UNREACHABLE", message: expect.stringMatching(setting) })
    ssp.behaviour = () => undefined
    expect((await at.post("/view/free", { id: "incantation:v" })).status).toBe(200)
  })

  it("events that it refuses, and jobs that it is to take over, say the same once", async () => {
    const at = await node()
    const ssp = await joined(at, "a", { job_tables: ["job"] })
    refusing(ssp)
    await at.post("/ingest", create("t:1"))
    await until("it is said", () => said(at) === 1)
    expect(await faultsIn(at)).toEqual([["a", expect.stringMatching(setting)]])
    const other = await node()
    const holder = await joined(other, "b", { job_tables: ["job"], tables: ["t"] })
    await other.post("/ingest", create("job:1", { path: "/x", payload: {}, status: "pending" }))
    const taker = await joined(other, "c", { job_tables: ["job"], tables: ["t"] })
    refusing(taker)
    await other.post("/ssp/deregister", { ssp_id: holder.id })
    await until("it is said there too", () => said(other) === 1)
    await sleep(1500)
    expect(taker.calls("/job/execute").length).toBe(1)
  })

  it("what is asked of it with a secret that the scheduler has checked is no 401 for its caller", async () => {
    const at = await node({ SVC_SCHEDULER_AUTH_SECRET: callers })
    const ask = (path: string, body?: object) =>
      request(at.url, { path, token: callers, ...(body === undefined ? {} : { method: "POST", body }) })
    const ssp = await FakeSsp.start("a")
    begun.push(ssp)
    ssp.health = "ready"
    await ask("/ssp/register", { ssp_id: ssp.id, url: ssp.url, batch: true })
    const register = () => ask("/view/register", registration("v", "SELECT * FROM t"))
    await until("it has the view", async () => (await register()).status === 200)
    refusing(ssp)
    const answer = await ask("/view/v")
    expect(bodyOf(answer)).toEqual({ code: "SSP_UNREACHABLE", message: expect.stringMatching(setting) })
  })

  it("a table of no SSP is 400 and its jobs 404, and one whose SSP is away is named", async () => {
    const at = await node()
    const ssp = await joined(at, "a", { job_tables: ["job"] })
    expect(bodyOf(await at.get("/jobs?table=other"))).toMatchObject({ code: "INVALID_REQUEST" })
    expect(bodyOf(await at.get("/jobs/other:1"))).toMatchObject({ code: "JOB_NOT_FOUND" })
    ssp.health = "bootstrapping"
    await ssp.register(at, { job_tables: ["job"] })
    expect(bodyOf(await at.get("/jobs?table=job"))).toEqual({
      code: "NO_SSP_AVAILABLE",
      message: expect.stringContaining('run jobs of table "job"')
    })
  })
})

describe("a scheduler that does not take an SSP's secret", () => {
  const wrong = /SVC_SCHEDULER_AUTH_SECRET/

  it("each call that is answered 401 names the setting and not its value", async () => {
    const at = await node({ SVC_SCHEDULER_AUTH_SECRET: callers })
    const secret = () => Redacted.make("not-the-one")
    const messages = await Effect.runPromise(
      Effect.gen(function* () {
        const exchange = over(yield* HttpClient.HttpClient)
        const both = Layer.mergeAll(
          HttpSchedulerClient.layerOver(exchange, at.url, secret),
          HttpJobReports.layer(at.url, secret, exchange)
        )
        return yield* Effect.provide(
          Effect.gen(function* () {
            const client = yield* SchedulerClient
            const reports = yield* JobReports
            const calls: ReadonlyArray<Effect.Effect<unknown, { readonly message: string }>> = [
              client.register({ ssp_id: "a", url: "http://127.0.0.1:1" }),
              client.heartbeat({ ssp_id: "a", timestamp: 1, views: 0 }),
              client.deregister({ ssp_id: "a" }),
              client.query("INFO FOR DB"),
              client.applied!({ ssp_id: "a", registration: 1, seq: 0 }),
              Effect.scoped(client.feed!({ registration: 1, after: 0, tables: ["t"] })),
              reports.report({ job_id: "job:1", status: "completed", error: null })
            ]
            return yield* Effect.forEach(calls, (call) => Effect.map(Effect.flip(call), ({ message }) => message))
          }),
          both
        )
      }).pipe(Effect.provide(layerClient(undefined)))
    )
    expect(messages).toHaveLength(7)
    for (const message of messages) {
      expect(message).toMatch(wrong)
      expect(message).not.toContain("not-the-one")
    }
  })
})
