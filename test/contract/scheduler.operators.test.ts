/**
 * Jobs for operators at the scheduler: listed, looked at, retried and cancelled, with every status.
 *
 * Against fake SSPs, which check the secret as real ones do, because whose secret decides is what matters; what a
 * retried job becomes is seen in the replica.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectError } from "../../kit/checks/contract.ts"
import { type Answer, bodyOf, request } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { secret } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"

let node: Node
let ssp: FakeSsp
const ask = (method: string, path: string, token: string | undefined = "mine"): Promise<Answer> =>
  request(node.url, { method, path, token })
const record = async (key: string) =>
  (
    (await node.post("/proxy/query", { query: `SELECT * FROM job:${key}` })).json as ReadonlyArray<{
      readonly status: string
      readonly errors: ReadonlyArray<{ readonly reason: string }>
    }>
  )[0]!

beforeAll(async () => {
  node = await Node.start({ callTimeoutMs: 1000 })
  ssp = await FakeSsp.start("a")
  ssp.health = "ready"
  ssp.behaviour = ({ authorization, path }) => {
    if (!path.startsWith("/jobs")) return undefined
    if (authorization !== "Bearer mine")
      return { status: 401, body: { code: "UNAUTHORIZED", message: "no" }, headers: { "www-authenticate": "Bearer" } }
    return path.includes("none")
      ? { status: 404, body: { code: "JOB_NOT_FOUND", message: "no such job" } }
      : { status: 200, body: { asked: path } }
  }
  await ssp.register(node, { job_tables: ["job"] })
  await ssp.shown(node, "ready")
  for (const [key, status] of [
    ["failed", "failed"],
    ["open", "processing"],
    ["done", "success"]
  ])
    await node.post(
      "/ingest",
      create(`job:${key}`, { path: "/x", payload: {}, status, errors: [{ attempt: 1, code: 500, reason: "first" }] })
    )
})
afterAll(async () => {
  await ssp.close()
  await node.close()
})

describe("jobs for operators at the scheduler", () => {
  it("GET /jobs and GET /jobs/:job_id are asked of an SSP that names the table, with the caller's own secret", async () => {
    expect((await ask("GET", "/jobs?table=job&status=failed&limit=5&after=job:x")).json).toEqual({
      asked: "/jobs?table=job&status=failed&after=job%3Ax&limit=5"
    })
    expect((await ask("GET", "/jobs/job:failed")).json).toEqual({ asked: "/jobs/job%3Afailed" })
    expect(ssp.told.filter(({ path }) => path.startsWith("/jobs")).map(({ authorization }) => authorization)).toEqual([
      "Bearer mine",
      "Bearer mine"
    ])
  })
  for (const [method, path] of [
    ["GET", "/jobs?table=job"],
    ["GET", "/jobs/job:failed"],
    ["POST", "/jobs/job:failed/retry"],
    ["POST", "/jobs/job:open/cancel"]
  ] as const) {
    it(`${method} ${path} 401 UNAUTHORIZED without the secret of the SSPs, and with that of a stranger; nothing is changed`, async () => {
      const answer = await request(node.url, { method, path })
      expectError(answer, 401, "UNAUTHORIZED")
      expect(answer.headers["www-authenticate"]).toBe("Bearer")
      expectError(await ask(method, path, secret), 401, "UNAUTHORIZED")
      expect([(await record("failed")).status, (await record("open")).status]).toEqual(["failed", "processing"])
    })
    it(`${method} ${path} 400 INVALID_REQUEST, or 404 JOB_NOT_FOUND, where no SSP runs the table`, async () => {
      const answer = await ask(method, path.replace("table=job", "table=other").replace("/job:", "/other:"))
      if (path.includes("table=")) expectError(answer, 400, "INVALID_REQUEST")
      else expectError(answer, 404, "JOB_NOT_FOUND")
    })
  }
  it("GET /jobs 400 INVALID_REQUEST without a table; GET /jobs/:job_id 404 JOB_NOT_FOUND, said by the SSP, and for an id that is none", async () => {
    expectError(await ask("GET", "/jobs"), 400, "INVALID_REQUEST")
    expectError(await ask("GET", "/jobs/job:none"), 404, "JOB_NOT_FOUND")
    expectError(await ask("GET", "/jobs/nonsense"), 404, "JOB_NOT_FOUND")
    expectError(await ask("POST", "/jobs/job:none/retry"), 404, "JOB_NOT_FOUND")
    expectError(await ask("POST", "/jobs/job:unwritten/cancel"), 404, "JOB_NOT_FOUND")
  })
  it("POST /jobs/:job_id/retry 200 makes a failed job pending again, keeps its errors, and gives it to an SSP; a second one is 409 JOB_STATUS", async () => {
    expect((await ask("POST", "/jobs/job:failed/retry")).json).toEqual({ status: "ok" })
    const { errors, status } = await record("failed")
    expect([status, errors.map(({ reason }) => reason)]).toEqual(["pending", ["first", "retried by an operator"]])
    const changes = ssp
      .calls("/ingest")
      .flatMap(
        ({ json }) =>
          json as
            | { readonly id: string; readonly job_assignee?: string }
            | ReadonlyArray<{ readonly id: string; readonly job_assignee?: string }>
      )
    expect(changes.filter(({ id }) => id === "job:failed").map(({ job_assignee: assignee }) => assignee)).toEqual([
      undefined,
      "a"
    ])
    expect(expectError(await ask("POST", "/jobs/job:failed/retry"), 409, "JOB_STATUS")["details"]).toEqual({
      status: "pending"
    })
  })
  it("POST /jobs/:job_id/cancel 200 ends a job that is not over; a job that is over is 409 JOB_STATUS", async () => {
    expect((await ask("POST", "/jobs/job:open/cancel")).status).toBe(200)
    expect((await record("open")).status).toBe("failed")
    expect(expectError(await ask("POST", "/jobs/job:done/cancel"), 409, "JOB_STATUS")["details"]).toEqual({
      status: "success"
    })
  })
  it("GET /overview 200 names the job tables", async () => {
    expect(bodyOf(await node.get("/overview"))["job_tables"]).toEqual(["job"])
  })
  it("POST /jobs/:job_id/retry 502 SSP_UNREACHABLE when the SSP does not answer", async () => {
    const usual = ssp.behaviour
    ssp.behaviour = ({ path }) => (path.startsWith("/jobs") ? "never" : undefined)
    expectError(await ask("POST", "/jobs/job:done/retry"), 502, "SSP_UNREACHABLE")
    ssp.behaviour = usual
  })
})
