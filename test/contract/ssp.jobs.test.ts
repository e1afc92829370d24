/**
 * Jobs on a real process with the embedded store: from `/ingest` to the backend and back into views, and the operators'
 * endpoints.
 *
 * Why a real backend over a real socket: redirects, resets and tokens are what HTTP clients differ in.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, send } from "../../kit/checks/contract.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"

const folder = temporaryFolder()
let door: Door
let backend: TestBackend
beforeAll(async () => {
  backend = await TestBackend.start()
  const path = join(folder, "svc.yml")
  writeFileSync(
    path,
    `job_tables:\n  mail_job:\n    name: mail\n    base_url: ${backend.url}/v1\n    auth_token: \${BACKEND_TOKEN}\n    timeout_ms: 1000\n  dead_job:\n    name: dead\n    base_url: http://127.0.0.1:1\n`
  )
  door = await Door.start({
    env: { SVC_CONFIG_PATH: path, SVC_JOB_RETRY_BASE_MS: "5", BACKEND_TOKEN: backend.token, SSP_ID: "me" }
  })
  await send(door, {
    ask: "POST /view/register",
    body: registration("jobs", "SELECT id, status, errors FROM mail_job", { format: "tree" })
  })
})
afterAll(async () => {
  await door.close()
  await backend.close()
  removeFolder(folder)
})

const pending = (key: string, more: object = {}) =>
  create(`mail_job:${key}`, { path: "/send", payload: { to: key }, status: "pending", max_retries: 3, ...more })
const ingest = (body: unknown) => send(door, { ask: "POST /ingest", body })
const jobOf = async (key: string) => bodyOf(await send(door, { ask: `GET /jobs/mail_job:${key}` }))
const ended = (key: string, status: string) =>
  until(`${key} is ${status}`, async () => (await jobOf(key))["status"] === status && (await jobOf(key)))

describe("D35 from /ingest to the backend", () => {
  it("D35 D37 a pending job is called with token, key and payload; status, errors and updated_at are in the record and its views", async () => {
    expect((await ingest(pending("a"))).status).toBe(200)
    const job = await ended("a", "success")
    expect(job).toMatchObject({
      id: "mail_job:a",
      table: "mail_job",
      path: "/send",
      errors: [],
      holder: null,
      updated_at: expect.stringMatching(/^\d{4}-/)
    })
    expect(backend.calls("mail_job:a").map(({ body, path }) => [path, body])).toEqual([["POST /v1/send", { to: "a" }]])
    expect(bodyOf(await send(door, { ask: "GET /view/jobs" }))["result_data"]).toContainEqual({
      id: "mail_job:a",
      status: "success",
      errors: []
    })
  })
  it("D35 the same change delivered again runs nothing, and does not hide the outcome", async () => {
    await ingest(pending("a"))
    await ended("a", "success")
    expect(backend.calls("mail_job:a").length).toBe(1)
  })
  it("D74 a job that is deleted and created again as it was is another job, in one request and in two, when it is done and while it is called", async () => {
    const gone = { table: "mail_job", op: "DELETE", id: "mail_job:twice", record: {} }
    const calls = () => backend.calls("mail_job:twice").length
    await ingest(pending("twice"))
    await ended("twice", "success")
    await ingest([gone, pending("twice")])
    await until("it is called again", () => calls() === 2)
    await ended("twice", "success")
    await Promise.all([ingest(gone), ingest(pending("twice"))])
    await until("it is called once more", () => calls() === 3)
    await ended("twice", "success")
    let answer: (() => void) | undefined
    backend.reply = (_, response, n) => void (n === 4 ? (answer = () => response.end("{}")) : response.end("{}"))
    await ingest([gone, pending("twice")])
    await until("its call is under way", () => answer !== undefined)
    await ingest([gone, pending("twice")])
    expect([(await jobOf("twice"))["status"], calls()]).toEqual(["pending", 4])
    answer!()
    await until("it is called behind it", () => calls() === 5)
    await ended("twice", "success")
    await ingest(pending("twice"))
    expect([(await ended("twice", "success"))["errors"], calls(), backend.overlaps]).toEqual([[], 5, []])
  })
  it("D35 a job for another SSP, a job that is not pending, and a table without jobs are left alone; a job for this SSP is run", async () => {
    await ingest([
      { ...pending("other"), job_assignee: "another" },
      pending("over", { status: "success" }),
      create("thing:1", { path: "/send", status: "pending" }),
      { ...pending("mine"), job_assignee: "me" }
    ])
    await ended("mine", "success")
    expect(backend.received.filter(({ key }) => ["mail_job:other", "mail_job:over", "thing:1"].includes(key))).toEqual(
      []
    )
  })
  it("D37 D38 500, 429 with Retry-After, a reset, a redirect and 400 end as decided", async () => {
    const good = backend.reply
    backend.reply = ({ key }, response, n) => {
      if (key === "mail_job:r500") response.writeHead(n <= 2 ? 500 : 200).end("<rubbish>")
      else if (key === "mail_job:r429") response.writeHead(n === 1 ? 429 : 204, { "retry-after": "0" }).end()
      else if (key === "mail_job:reset" && n === 1) response.socket?.destroy()
      else if (key === "mail_job:redirect") response.writeHead(307, { location: `${backend.url}/elsewhere` }).end()
      else if (key === "mail_job:bad") response.writeHead(400).end("no such user")
      else if (key === "mail_job:hang") return
      else response.end("ok")
    }
    await ingest(
      ["r500", "r429", "reset", "redirect", "bad"]
        .map((key) => pending(key))
        .concat(pending("hang", { max_retries: 0 }))
    )
    const jobs = await Promise.all([
      ended("r500", "success"),
      ended("r429", "success"),
      ended("reset", "success"),
      ended("redirect", "failed"),
      ended("bad", "failed"),
      ended("hang", "failed")
    ])
    backend.reply = good
    expect(jobs.map(({ errors }) => (errors as ReadonlyArray<{ code: number }>).map(({ code }) => code))).toEqual([
      [500, 500],
      [429],
      [0],
      [307],
      [400],
      [0]
    ])
    expect(backend.received.filter(({ path }) => path.includes("elsewhere"))).toEqual([])
    expect([backend.calls("mail_job:r500").length, backend.overlaps]).toEqual([3, []])
  })
})

describe("operators", () => {
  it("POST /job/execute 202 D35 runs a job that is there, passing traceparent on; a job that is over is not run again", async () => {
    await ingest({ ...pending("handed"), job_assignee: "another" })
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    const body = { job_id: "mail_job:handed", table: "mail_job", payload: { path: "/send", body: {} } }
    const answer = await send(door, { ask: "POST /job/execute", body, headers: { traceparent } })
    expect([answer.status, answer.json]).toEqual([202, { status: "accepted" }])
    await ended("handed", "success")
    expect((await send(door, { ask: "POST /job/execute", body })).status).toBe(202)
    expect(backend.calls("mail_job:handed").map(({ headers }) => headers["traceparent"])).toEqual([traceparent])
  })
  it("GET /jobs/:job_id 200 D36 shows what the backend answered, as long as it is short enough", async () => {
    backend.reply = ({ key }, response) =>
      void response.end(
        key === "mail_job:long"
          ? JSON.stringify({ text: "x".repeat(5_000) })
          : key === "mail_job:text"
            ? "sent"
            : '{"sent":[1]}'
      )
    for (const key of ["short", "long", "text"]) await ingest(pending(key))
    const results = await Promise.all(
      ["short", "long", "text"].map(async (key) => (await ended(key, "success"))["result"])
    )
    expect(results).toEqual([{ sent: [1] }, { left_out: "the answer is longer than 4096 bytes" }, null])
    backend.reply = (_, response) => void response.end("{}")
  })
  it("GET /jobs 200 lists what failed, the newest first, page by page; POST /jobs/:job_id/retry 200 runs it again; a second retry is 409 JOB_STATUS", async () => {
    const page = async (after = ""): Promise<{ readonly ids: ReadonlyArray<string>; readonly next: unknown }> => {
      const { jobs, next } = bodyOf(
        await send(door, {
          ask: `GET /jobs?table=mail_job&status=failed&limit=2${after === "" ? "" : `&after=${encodeURIComponent(after)}`}`
        })
      ) as { readonly jobs: ReadonlyArray<{ id: string }>; readonly next: unknown }
      return { ids: jobs.map(({ id }) => id), next }
    }
    const failed = (
      await Promise.all(
        ["bad", "hang", "redirect"].map(
          async (key) => [String((await jobOf(key))["updated_at"]), `mail_job:${key}`] as const
        )
      )
    )
      .sort()
      .reverse()
      .map(([, id]) => id)
    const first = await page()
    expect([first.ids, typeof first.next]).toEqual([failed.slice(0, 2), "string"])
    for (const after of [String(first.next), failed[1]!])
      expect(await page(after)).toEqual({ ids: failed.slice(2), next: null })
    expect(await send(door, { ask: "POST /jobs/mail_job:bad/retry" })).toMatchObject({
      status: 200,
      json: { status: "ok" }
    })
    const job = await ended("bad", "success")
    expect(job["errors"] as ReadonlyArray<object>).toMatchObject([
      { attempt: 1, code: 400 },
      { attempt: 0, reason: "retried by an operator" }
    ])
    expectError(await send(door, { ask: "POST /jobs/mail_job:bad/retry" }), 409, "JOB_STATUS")
  })
  it("POST /jobs/:job_id/cancel 200 ends a job that waits for its retry, for good", async () => {
    backend.reply = (_, response) => void response.writeHead(503, { "retry-after": "3600" }).end()
    await ingest(pending("stuck"))
    await until(
      "it has failed once",
      async () => ((await jobOf("stuck"))["errors"] as ReadonlyArray<unknown>).length === 1
    )
    expect((await jobOf("stuck"))["holder"]).toBe("me")
    expect((await send(door, { ask: "POST /jobs/mail_job:stuck/cancel" })).status).toBe(200)
    backend.reply = (_, response) => void response.end("{}")
    expect((await jobOf("stuck"))["status"]).toBe("failed")
    expectError(await send(door, { ask: "POST /jobs/mail_job:stuck/cancel" }), 409, "JOB_STATUS")
    await ingest(pending("stuck"))
    await ingest(pending("after"))
    await ended("after", "success")
    expect(backend.calls("mail_job:stuck").length).toBe(1)
  })
  it("a job whose backend is not there fails with the reason", async () => {
    await ingest(create("dead_job:1", { path: "/x", status: "pending", max_retries: 1 }))
    const job = await until("failed", async () => {
      const found = bodyOf(await send(door, { ask: "GET /jobs/dead_job:1" }))
      return found["status"] === "failed" && found
    })
    expect(job["errors"]).toMatchObject([
      { attempt: 1, code: 0, reason: expect.stringContaining("ECONNREFUSED") },
      { attempt: 2, code: 0 }
    ])
  })
  const execution = { job_id: "mail_job:a", table: "mail_job", payload: { path: "/send", body: {} } }
  contract(
    () => door,
    [
      ...[
        "POST /job/execute",
        "GET /jobs?table=mail_job",
        "GET /jobs/mail_job:a",
        "POST /jobs/mail_job:a/retry",
        "POST /jobs/mail_job:a/cancel"
      ].map((ask) => ({
        name: `${ask} 401`,
        ask,
        body: ask.startsWith("POST /job/") ? execution : undefined,
        token: null,
        status: 401,
        code: "UNAUTHORIZED"
      })),
      {
        name: "POST /job/execute 400 names every fault",
        ask: "POST /job/execute",
        body: { job_id: 1, payload: {} },
        status: 400,
        code: "INVALID_REQUEST",
        check: (_, body) =>
          expect(
            faultsOf(body)
              .map(({ path }) => path)
              .sort()
          ).toEqual(["job_id", "payload.path", "table"])
      },
      {
        name: "POST /job/execute 400 for a table that is no job table, naming those that are",
        ask: "POST /job/execute",
        body: { ...execution, table: "mial_job", job_id: "mial_job:a" },
        status: 400,
        code: "INVALID_REQUEST",
        check: (answer) => expect(answer.text).toContain("mail_job, dead_job")
      },
      {
        name: "POST /job/execute 400 for an id of another table",
        ask: "POST /job/execute",
        body: { ...execution, job_id: "dead_job:a" },
        status: 400,
        code: "INVALID_REQUEST"
      },
      { name: "GET /jobs 400 without a table", ask: "GET /jobs", status: 400, code: "INVALID_REQUEST" },
      {
        name: "GET /jobs 400 for an unknown table, status or limit",
        ask: "GET /jobs?table=mail_job&status=done&limit=0",
        status: 400,
        code: "INVALID_REQUEST"
      },
      {
        name: "GET /jobs/:job_id 404 JOB_NOT_FOUND",
        ask: "GET /jobs/mail_job:none",
        status: 404,
        code: "JOB_NOT_FOUND"
      },
      {
        name: "GET /jobs/:job_id 404 JOB_NOT_FOUND outside of job tables",
        ask: "GET /jobs/thing:1",
        status: 404,
        code: "JOB_NOT_FOUND"
      },
      {
        name: "POST /jobs/:job_id/retry 404 JOB_NOT_FOUND",
        ask: "POST /jobs/mail_job:none/retry",
        status: 404,
        code: "JOB_NOT_FOUND"
      },
      {
        name: "POST /jobs/:job_id/cancel 404 JOB_NOT_FOUND",
        ask: "POST /jobs/nonsense/cancel",
        status: 404,
        code: "JOB_NOT_FOUND"
      }
    ]
  )
})
