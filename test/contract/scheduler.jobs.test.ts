/**
 * `/job/dispatch` and `/job/result` of the scheduler: every status of their rows in the specification, with a log that
 * fails and stands still on demand.
 *
 * What becomes of jobs lies in `test/scheduler/jobs.test.ts`; here it is what is answered.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, type Row } from "../../kit/checks/contract.ts"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { noFaults, stores } from "../scheduler/faultyStores.ts"
import { Node } from "../scheduler/node.ts"

const ok = { status: "ok" }
const job = (id: string, table = "job") => ({ job_id: id, table, payload: { path: "/x", body: {} } })
const dispatched = (name: string, body: unknown, answer: Pick<Row, "status" | "is" | "code" | "check">): Row => ({
  name: `POST /job/dispatch ${answer.status} ${name}`,
  ask: "POST /job/dispatch",
  body,
  ...answer
})
const reported = (
  name: string,
  body: unknown,
  answer: Pick<Row, "status" | "is" | "code" | "check"> = { status: 200, is: ok }
): Row => ({ name: `POST /job/result ${answer.status} ${name}`, ask: "POST /job/result", body, ...answer })
const refused = (path: string, reason: RegExp): Pick<Row, "status" | "code" | "check"> => ({
  status: 400,
  code: "INVALID_REQUEST",
  check: (_, body) => expect(faultsOf(body)).toEqual([{ path, reason: expect.stringMatching(reason) }])
})

describe("jobs of a scheduler", () => {
  const faults = noFaults()
  let node: Node
  let ssp: FakeSsp
  beforeAll(async () => {
    node = await Node.start({ stores: stores(faults), env: { SVC_MAX_PENDING_CHANGES: "1" } })
    ssp = await FakeSsp.start("a")
    ssp.health = "ready"
    await ssp.register(node, { job_tables: ["job"] })
    await ssp.shown(node, "ready")
    for (const [key, status] of [
      ["done", "success"],
      ["lost", "failed"],
      ["odd", "on hold"],
      ["open", "pending"]
    ])
      await node.post("/ingest", create(`job:${key}`, { path: "/x", payload: {}, status }))
  })
  afterAll(async () => {
    await ssp.close()
    await node.close()
  })
  contract(
    () => node,
    [
      dispatched("the id of the SSP, as a string", job("job:1"), { status: 200, is: "a" }),
      dispatched("the same for the same job", job("job:1"), { status: 200, is: "a" }),
      dispatched("for a record that is there", job("job:open"), { status: 200, is: "a" }),
      dispatched("an id that is none", job("job"), refused("job_id", /record id of table "job"/)),
      dispatched("an id of another table", job("mail:1"), refused("job_id", /record id of table "job"/)),
      dispatched("D36 a job that is over", job("job:done"), refused("job_id", /is success: .*not run again/)),
      dispatched("D36 a job that has failed", job("job:lost"), refused("job_id", /is failed: .*not run again/)),
      dispatched("a record that is no job", job("job:odd"), refused("job_id", /none of a job's/)),
      dispatched("NO_SSP_AVAILABLE D35 for a table that no SSP has", job("mail:1", "mail"), {
        status: 503,
        code: "NO_SSP_AVAILABLE"
      }),
      ...["pending", "running", "completed", "failed"].map((status) =>
        reported(`of ${status}`, { job_id: "job:1", status })
      ),
      reported("with everything", {
        job_id: "job:open",
        status: "running",
        result: { a: 1 },
        error: null,
        errors: [{ attempt: 1, code: 500 }],
        ssp_id: "a"
      }),
      reported("of a job that is over", { job_id: "job:1", status: "running" }),
      reported("D36 for an id that is none", { job_id: "?", status: "failed", error: "no" }),
      reported(
        "errors is no list",
        { job_id: "job:1", status: "failed", errors: "no" },
        { status: 400, code: "INVALID_REQUEST" }
      ),
      reported("error is no text", { job_id: "job:1", status: "failed", error: 5 }, refused("error", /\S/))
    ]
  )
  it("POST /job/dispatch 503 NO_SSP_AVAILABLE creates no record", async () => {
    expect((await node.post("/proxy/query", { query: "SELECT * FROM mail" })).json).toEqual([])
  })
  it("POST /job/dispatch 500 and POST /job/result 500 REPLICA_FAILED when the log does not take the record, and the job is not tracked", async () => {
    const running = async (): Promise<unknown> =>
      (bodyOf(await node.get("/metrics"))["scheduler"] as Body)["running_jobs"]
    const before = await running()
    faults.wal = "full"
    expectError(await node.post("/job/dispatch", job("job:new")), 500, "REPLICA_FAILED")
    expectError(await node.post("/job/result", { job_id: "job:open", status: "completed" }), 500, "REPLICA_FAILED")
    faults.wal = undefined
    await until("only the others are tracked", async () => (await running()) === before)
    expect((await node.post("/job/dispatch", job("job:new"))).json).toBe("a")
  })
  it("POST /job/dispatch 503 and POST /job/result 503 OVERLOADED when the queue to the log is full", async () => {
    let release = (): void => undefined
    faults.hold = new Promise((done) => {
      release = done
    })
    const held = [node.post("/ingest", create("t:1"))]
    await until("the first is on its way to the log", async () => {
      held.push(node.post("/ingest", create(`t:${held.length + 1}`)))
      const answer = await Promise.race([
        node.post("/ingest", create("t:0")),
        new Promise<undefined>((done) => setTimeout(() => done(undefined), 50))
      ])
      return answer?.status === 503
    })
    for (const answer of [
      await node.post("/job/dispatch", job("job:late")),
      await node.post("/job/result", { job_id: "job:open", status: "completed" })
    ]) {
      expectError(answer, 503, "OVERLOADED")
      expect(answer.headers["retry-after"]).toMatch(/^\d+$/)
    }
    release()
    faults.hold = undefined
    await Promise.all(held)
    expect((await node.post("/job/result", { job_id: "job:open", status: "completed" })).status).toBe(200)
  })
})
