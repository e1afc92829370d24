/**
 * Jobs at the scheduler: who gets which, who is told how, what is tracked and for how long, what is written into the
 * records (D31, D35, D36).
 *
 * Over real sockets with fake SSPs, which show what a real one would run: jobs that an event names it for, and those it
 * is called for.
 */
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { type Answer, type Body, bodyOf } from "../../kit/checks/http.ts"
import { change, create } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import * as MemoryPool from "../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import * as MemoryUpstream from "../../src/drivers/memoryUpstream.ts"
import { Wal } from "../../src/ports/Wal.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { inFolder, Node, type Options } from "./node.ts"

const afterwards = closing()
const start = async (options: Options = {}): Promise<Node> => {
  const node = await Node.start(options)
  afterwards(node.close)
  return node
}
/** Ready, with these job tables; undefined: it does not say. */
const joined = async (
  node: Node,
  id: string,
  tables: ReadonlyArray<string> | undefined = ["job"]
): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id)
  afterwards(() => ssp.close())
  ssp.health = "ready"
  await ssp.register(node, tables === undefined ? {} : { job_tables: tables })
  await ssp.shown(node, "ready")
  return ssp
}
const pending = (key: string, more: Body = {}): Body =>
  create(key, { path: "/x", payload: { n: 1 }, status: "pending", ...more })
const ingest = async (node: Node, body: unknown): Promise<Answer> => {
  const answer = await node.post("/ingest", body)
  expect(answer.status, answer.text).toBe(200)
  return answer
}
const running = async (node: Node): Promise<unknown> =>
  (bodyOf(await node.get("/metrics"))["scheduler"] as Body)["running_jobs"]
/** The SSP that each received event names, by record. */
const named = (ssp: FakeSsp): ReadonlyArray<readonly [unknown, unknown]> =>
  ssp
    .calls("/ingest")
    .flatMap(({ json }) => (Array.isArray(json) ? json : [json]) as ReadonlyArray<Body>)
    .map((event) => [event["id"], event["job_assignee"]])
const executed = (ssp: FakeSsp): ReadonlyArray<unknown> => ssp.calls("/job/execute").map(({ json }) => json)
const row = async (node: Node, id: string): Promise<Body> =>
  ((await node.post("/proxy/query", { query: `SELECT *, _svc_rv FROM ${id}` })).json as ReadonlyArray<Body>)[0]!
const report = (node: Node, job: string, status: string, more: Body = {}): Promise<Answer> =>
  node.post("/job/result", { job_id: job, status, ...more })
const body = (job: string, createdSeq?: number) => ({
  job_id: job,
  table: "job",
  payload: { path: "/x", body: { n: 1 } },
  ...(createdSeq === undefined ? {} : { created_seq: createdSeq })
})

describe("D35 the assignment of jobs", () => {
  it("D35 each pending job is named exactly one SSP that has its table, the one with the fewest; other records and statuses name no SSP", async () => {
    const node = await start()
    const [a, b] = [await joined(node, "a"), await joined(node, "b", ["job", "mail"])]
    await joined(node, "c", [])
    await ingest(node, [
      pending("job:1"),
      pending("job:2"),
      pending("job:3"),
      pending("mail:1"),
      pending("t:1"),
      pending("job:4", { status: "success" }),
      create("job:5")
    ])
    const expected = [
      ["job:1", "a"],
      ["job:2", "b"],
      ["job:3", "a"],
      ["mail:1", "b"],
      ["t:1", undefined],
      ["job:4", undefined],
      ["job:5", undefined]
    ]
    await until("both have them", () => a.last === 7 && b.last === 7)
    expect([named(a), named(b)]).toEqual([expected, expected])
    expect([await running(node), executed(a), executed(b)]).toEqual([4, [], []])
    const figures = (await node.get("/metrics?format=prometheus")).text
    for (const line of ['ssp_jobs{ssp="a"} 2', 'ssp_jobs{ssp="b"} 2', 'ssp_jobs{ssp="c"} 0', "jobs_waiting 0"])
      expect(figures).toContain(`\nsvc_scheduler_${line}\n`)
  })
  it("D35 a job that arrives while no SSP is ready names the empty id, waits, and is handed over when one becomes ready", async () => {
    const node = await start()
    const a = await joined(node, "a")
    a.health = "bootstrapping"
    await a.register(node, { job_tables: ["job"] })
    await ingest(node, [pending("job:1"), pending("job:2")])
    expect([await running(node), executed(a)]).toEqual([2, []])
    expect((await node.get("/metrics?format=prometheus")).text).toContain("\nsvc_scheduler_jobs_waiting 2\n")
    a.health = "ready"
    await until("both are handed over", () => a.calls("/job/execute").length === 2)
    expect(new Set(executed(a))).toEqual(new Set([body("job:1", 1), body("job:2", 2)]))
    await until("the events came", () => a.last === 2)
    expect(named(a)).toEqual([
      ["job:1", ""],
      ["job:2", ""]
    ])
  })
  it("D35 jobs of an SSP that goes are handed to another; those that are over are not", async () => {
    const node = await start()
    const [a, b] = [await joined(node, "a"), await joined(node, "b")]
    await ingest(node, [pending("job:1"), pending("job:2"), pending("job:3"), pending("job:4")])
    await ingest(node, change("UPDATE", "job:1", { status: "success" }))
    await node.post("/ssp/deregister", { ssp_id: "a" })
    await until("b has it", () => b.calls("/job/execute").length === 1)
    expect([executed(a), executed(b), await running(node)]).toEqual([[], [body("job:3", 3)], 3])
  })
  it("D80 a job that an SSP is calling at its goodbye is its until it reports: its failure counts, and what it puts back goes on", async () => {
    const node = await start()
    const [a, b] = [await joined(node, "a"), await joined(node, "b")]
    await ingest(node, [pending("job:1"), pending("job:2"), pending("job:3"), pending("job:4"), pending("job:5")])
    await node.post("/ssp/deregister", { ssp_id: "a", calling: ["job:1", "job:3"] })
    await until("b has what was not called", () => b.calls("/job/execute").length === 1)
    await report(node, "job:1", "failed", { ssp_id: "a", error: "it failed" })
    await report(node, "job:3", "pending", { ssp_id: "a" })
    await until("b has what was put back", () => b.calls("/job/execute").length === 2)
    const told = executed(b).map((job) => (job as Body)["job_id"])
    expect([executed(a), told, (await row(node, "job:1"))["status"], await running(node)]).toEqual([
      [],
      ["job:5", "job:3"],
      "failed",
      4
    ])
  })
  it("D35 jobs that were there before their table was known to hold jobs are found and handed over", async () => {
    const node = await start()
    await ingest(node, [
      pending("job:1"),
      pending("job:2", { status: "failed" }),
      pending("job:3", { status: "processing" })
    ])
    const a = await joined(node, "a")
    await until("what is open is handed over", () => a.calls("/job/execute").length === 2)
    expect([new Set(executed(a)), await running(node)]).toEqual([new Set([body("job:1"), body("job:3")]), 2])
  })
  it("D35 tracking ends with a final status or a deletion in the feed, by whatever way it comes", async () => {
    const node = await start()
    await joined(node, "a")
    await ingest(node, [pending("job:1"), pending("job:2"), pending("job:3"), pending("job:4")])
    await ingest(node, [
      change("UPDATE", "job:1", { status: "processing" }),
      change("UPDATE", "job:2", { status: "failed" }),
      change("DELETE", "job:3")
    ])
    expect(await running(node)).toBe(2)
    await ingest(node, [pending("job:5"), change("UPDATE", "job:5", { status: "success" })])
    expect(await running(node)).toBe(2)
  })
  it("D35 a pending change that is delivered again neither runs its job again nor hides its outcome; another content does", async () => {
    const node = await start()
    const a = await joined(node, "a")
    await ingest(node, pending("job:1"))
    await report(node, "job:1", "completed")
    expect(bodyOf(await ingest(node, pending("job:1")))).toMatchObject({ seq: 2 })
    expect([(await row(node, "job:1"))["status"], await running(node)]).toEqual(["success", 0])
    await ingest(node, pending("job:1", { errors: [{ attempt: 0 }] }))
    await until("it came", () => a.last === 3)
    expect([named(a).at(-1), await running(node)]).toEqual([["job:1", "a"], 1])
  })
})

describe("D77 an SSP that knows the specification alone", () => {
  it("D77 takes jobs over by /ingest of their record, pending, since it has no /job/execute", async () => {
    const node = await start()
    await joined(node, "a")
    const record = { path: "/x", payload: { n: 1, at: [1.5] }, status: "pending", max_retries: 2 }
    await ingest(node, [create("job:1", record), create("job:2", record)])
    await report(node, "job:2", "running", { ssp_id: "a" })
    const plain = await FakeSsp.start("b")
    afterwards(() => plain.close())
    plain.health = "ready"
    const posted = (): ReadonlyArray<unknown> => plain.calls("/ingest").map(({ json }) => json)
    plain.behaviour = ({ path }) =>
      path === "/job/execute"
        ? { status: 404, body: "no such page" }
        : path === "/ingest"
          ? { status: 200, body: "" }
          : undefined
    await plain.register(node, { batch: undefined })
    await plain.shown(node, "ready")
    await node.post("/ssp/deregister", { ssp_id: "a" })
    await until("it has both", () => posted().length === 2)
    expect(posted()).toEqual(
      expect.arrayContaining(
        ["job:1", "job:2"].map((id) => ({
          table: "job",
          op: "UPDATE",
          id,
          record: {
            ...record,
            id,
            status: "pending",
            ...(id === "job:2" ? { errors: [], updated_at: expect.any(String) } : {})
          }
        }))
      )
    )
    expect(executed(plain)).toEqual(
      expect.arrayContaining([{ job_id: "job:1", table: "job", payload: { path: "/x", body: record.payload } }])
    )
    for (const id of ["job:1", "job:2"]) await report(node, id, "completed")
    expect(await running(node)).toBe(0)
  })
})

describe("D74 a job that is created again is another job", () => {
  const gone = (id: string) => change("DELETE", id, {})
  const about = async (node: Node, id: string) => [(await row(node, id))["status"], await running(node)]
  it("D74 in one request and in two, while it is called and when it is done, it is assigned anew; reports of the one before count for nothing", async () => {
    const node = await start()
    const a = await joined(node, "a")
    const ways: ReadonlyArray<readonly [string, (id: string) => Promise<unknown>]> = [
      ["job:one", (id) => ingest(node, [gone(id), pending(id)])],
      ["job:two", async (id) => [await ingest(node, gone(id)), await ingest(node, pending(id))]],
      ["job:many", (id) => ingest(node, [gone(id), pending(id), gone(id), pending(id)])]
    ]
    for (const [id, again] of ways) {
      await ingest(node, pending(id))
      const first = a.last
      for (const [status, before] of [
        ["running", "processing"],
        ["completed", "success"]
      ] as const) {
        const seq = Number(a.last)
        await report(node, id, status, { created_seq: seq, ssp_id: "a" })
        expect((await row(node, id))["status"]).toBe(before)
        await again(id)
        expect(await about(node, id)).toEqual(["pending", 1])
        for (const late of ["running", "failed", "completed"])
          await report(node, id, late, { created_seq: seq, ssp_id: "a", error: "of the one before", result: { n: 1 } })
        expect(await about(node, id)).toEqual(["pending", 1])
        await until("its event came", () => a.last > seq)
        expect(named(a).at(-1)).toEqual([id, "a"])
      }
      expect(a.last).toBeGreaterThan(first)
      await report(node, id, "completed", { created_seq: a.last, ssp_id: "a" })
      expect(await about(node, id)).toEqual(["success", 0])
    }
    expect(executed(a)).toEqual([])
  })
  it("D74 one that waits for an SSP is handed over as the one that it is now, also over a restart of the scheduler", async () => {
    const path = temporaryFolder()
    afterwards(() => removeFolder(path))
    const first = await start({ stores: inFolder(path) })
    await joined(first, "a")
    await first.post("/ssp/deregister", { ssp_id: "a" })
    await ingest(first, [pending("job:1"), pending("job:2")])
    await first.close()
    const node = await start({ stores: inFolder(path) })
    await ingest(node, [gone("job:1"), pending("job:1")])
    const b = await joined(node, "b")
    await until("they are handed over", () => executed(b).length === 2)
    expect(new Set(executed(b))).toEqual(new Set([body("job:1", 4), body("job:2", 2)]))
    await report(node, "job:1", "completed", { created_seq: 1, ssp_id: "b" })
    expect(await about(node, "job:1")).toEqual(["pending", 2])
    await report(node, "job:1", "completed", { created_seq: 4, ssp_id: "b" })
    expect(await about(node, "job:1")).toEqual(["success", 1])
  })
  it("D35 a change that is delivered again is the same job, also when a stop or an operator has put its record back meanwhile", async () => {
    const node = await start()
    const a = await joined(node, "a")
    await ingest(node, [pending("job:1"), pending("job:2")])
    await report(node, "job:1", "running", { ssp_id: "a" })
    await report(node, "job:1", "pending", { ssp_id: "a" })
    await report(node, "job:2", "failed", { ssp_id: "a", error: "no" })
    expect((await node.post("/jobs/job%3A2/retry", {})).status).toBe(200)
    await until("its event came", () => named(a).filter(([id]) => id === "job:2").length === 3)
    for (const id of ["job:1", "job:2"]) await report(node, id, "completed", { ssp_id: "a" })
    for (const id of ["job:1", "job:2"]) {
      await ingest(node, pending(id))
      expect(await about(node, id)).toEqual(["success", 0])
    }
  })
  it("D38 what was tried so far goes with a job that is handed over", async () => {
    const node = await start()
    await joined(node, "a")
    const tried = { attempt: 1, code: 503, reason: "no", at: "2026-01-01T00:00:00Z", retry_at: "2026-01-01T01:00:00Z" }
    await ingest(node, pending("job:1", { max_retries: 7, retry_strategy: "exponential" }))
    await report(node, "job:1", "running", { ssp_id: "a", error: "no", errors: [tried] })
    const b = await joined(node, "b")
    await node.post("/ssp/deregister", { ssp_id: "a" })
    await until("b has it", () => executed(b).length === 1)
    expect(executed(b)).toEqual([
      { ...body("job:1", 1), max_retries: 7, retry_strategy: "exponential", errors: [tried] }
    ])
  })
})

describe("D31 jobs over a restart of the scheduler", () => {
  const folder = (): string => {
    const path = temporaryFolder()
    afterwards(() => removeFolder(path))
    return path
  }
  it("D31 they stay with their SSPs, an end that was not noted is found, and what has run does not run when it is delivered again", async () => {
    const path = folder()
    const first = await start({ stores: inFolder(path) })
    const a = await joined(first, "a")
    await ingest(first, [pending("job:1"), pending("job:2"), pending("job:3")])
    await report(first, "job:1", "completed")
    await Effect.runPromise(first.pool.tell({ tag: "JobArrived", job: "job:1", table: "job", ref: undefined }))
    await until("it is tracked again", async () => (await running(first)) === 3)
    await first.close()
    const second = await start({ stores: inFolder(path) })
    await until("the end is found", async () => (await running(second)) === 2)
    expect(bodyOf(await ingest(second, pending("job:1")))["seq"]).toBe(4)
    expect([(await row(second, "job:1"))["status"], executed(a)]).toEqual(["success", []])
    await a.shown(second, "ready")
    await ingest(second, pending("job:2", { note: "changed" }))
    await until("it came", () => a.last === 5)
    expect(named(a).at(-1)).toEqual(["job:2", "a"])
  })
})

describe("D36 dispatch and result", () => {
  it("D36 an unknown job is created with the table's defaults, and its event names the SSP of the answer", async () => {
    const node = await start()
    const [a, b] = [await joined(node, "a", undefined), await joined(node, "b", [])]
    expect(
      (
        await node.post("/job/dispatch", {
          job_id: "job:1",
          table: "job",
          payload: { path: "/send", body: { to: "x" } }
        })
      ).json
    ).toBe("a")
    await until("the events came", () => a.last === 1 && b.last === 1)
    expect([named(a), named(b), executed(a)]).toEqual([[["job:1", "a"]], [["job:1", "a"]], []])
    const { created_at, updated_at, ...record } = await row(node, "job:1")
    expect(record).toEqual({
      id: "job:1",
      path: "/send",
      payload: { to: "x" },
      retries: 0,
      max_retries: 3,
      retry_strategy: "linear",
      status: "pending",
      errors: [],
      _svc_rv: 1
    })
    expect([created_at, updated_at]).toEqual([expect.stringMatching(/^\d{4}-\d\d-\d\dT/), created_at])
    expect([(await node.post("/job/dispatch", body("job:1"))).json, await running(node)]).toEqual(["a", 1])
  })
  it("D36 beside a database a job whose event has not come yet is assigned; an unknown job is refused, with what to do", async () => {
    const stored = { id: Ids.parse("job:there"), path: "/x", payload: {}, status: "pending" }
    const node = await start({
      stores: Layer.mergeAll(
        MemoryReplica.layer,
        MemoryPool.layer,
        Wal.layerMemory("log-of-the-test"),
        MemoryUpstream.layer([stored])
      )
    })
    const a = await joined(node, "a")
    expect((await node.post("/job/dispatch", body("job:there"))).json).toBe("a")
    await until("its SSP is called", () => executed(a).length === 1)
    const refused = await node.post("/job/dispatch", body("job:nowhere"))
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("names no record of the database")])
    expect(await running(node)).toBe(1)
  })
  it("D36 a known job is only assigned: its record stays as it is and its SSP is called", async () => {
    const node = await start()
    await ingest(node, pending("job:1"))
    const a = await joined(node, "a", undefined)
    expect((await node.post("/job/dispatch", { ...body("job:1"), payload: { path: "/other", body: {} } })).json).toBe(
      "a"
    )
    await until("it is handed over", () => a.calls("/job/execute").length === 1)
    expect([executed(a), (await row(node, "job:1"))["path"], bodyOf(await ingest(node, create("t:1")))["seq"]]).toEqual(
      [[body("job:1")], "/x", 2]
    )
  })
  it("D36 running becomes processing, completed success, failed failed with the error appended; a job that is over stays so", async () => {
    const node = await start()
    await joined(node, "a")
    await ingest(node, [
      pending("job:1"),
      pending("job:2", { errors: [{ attempt: 1, code: 500, reason: "no", at: "x" }] }),
      pending("job:3")
    ])
    await report(node, "job:1", "running")
    expect([await row(node, "job:1"), await running(node)]).toMatchObject([
      { status: "processing", payload: { n: 1 }, updated_at: expect.any(String) },
      3
    ])
    await report(node, "job:1", "completed", { result: { any: 1 } })
    await report(node, "job:1", "running")
    await report(node, "job:1", "failed", { error: "too late" })
    const one = await row(node, "job:1")
    expect([one["status"], one["errors"]]).toEqual(["success", []])
    await report(node, "job:2", "failed", { error: "it broke" })
    const errors = (await row(node, "job:2"))["errors"] as ReadonlyArray<Body>
    expect(errors.slice(1)).toEqual([{ attempt: 2, code: 0, reason: "it broke", at: expect.stringMatching(/^\d{4}-/) }])
    await report(node, "job:3", "failed", {
      error: "summary",
      errors: [{ attempt: 1, code: 400, reason: "bad", at: "x" }]
    })
    expect([await row(node, "job:3"), await running(node)]).toMatchObject([
      { status: "failed", errors: [{ attempt: 1, code: 400, reason: "bad", at: "x" }] },
      0
    ])
  })
  it("D36 of an SSP that no longer has the job only a success counts", async () => {
    const node = await start()
    await joined(node, "a")
    await joined(node, "b")
    await ingest(node, pending("job:1"))
    for (const status of ["failed", "pending", "running"])
      expect((await report(node, "job:1", status, { ssp_id: "b" })).status).toBe(200)
    expect([(await row(node, "job:1"))["status"], await running(node)]).toEqual(["pending", 1])
    await report(node, "job:1", "completed", { ssp_id: "b" })
    expect([(await row(node, "job:1"))["status"], await running(node)]).toEqual(["success", 0])
  })
})

describe("D36 results", () => {
  it("D36 the result of POST /job/result is shown in /jobs and /jobs/:job_id of a job that is done, whichever SSP is asked, and not after it begins anew", async () => {
    const node = await start()
    const a = await joined(node, "a")
    const job = (id: string, status: string) => ({ id, table: "job", status, result: null })
    a.behaviour = ({ path }) =>
      path.startsWith("/jobs?")
        ? {
            status: 200,
            body: { jobs: [job("job:1", "success"), job("job:2", "pending"), job("job:3", "success")], next: null }
          }
        : path.startsWith("/jobs/")
          ? { status: 200, body: job("job:1", "success") }
          : undefined
    await ingest(node, [pending("job:1"), pending("job:2")])
    const shownResults = async () => [
      (
        (await node.get("/jobs?table=job")).json as { readonly jobs: ReadonlyArray<{ readonly result: unknown }> }
      ).jobs.map(({ result }) => result),
      bodyOf(await node.get("/jobs/job:1"))["result"]
    ]
    for (const id of ["job:1", "job:2"])
      expect((await report(node, id, "completed", { result: { sent: id } })).status).toBe(200)
    expect(await shownResults()).toEqual([[{ sent: "job:1" }, null, null], { sent: "job:1" }])
    await ingest(node, change("UPDATE", "job:1", { path: "/x", payload: { n: 2 }, status: "pending" }))
    expect((await report(node, "job:1", "running")).status).toBe(200)
    expect(await shownResults()).toEqual([[null, null, null], null])
  })
  it("D36 results are there after a restart, as many as the setting says, and go with the job's record", async () => {
    const path = temporaryFolder()
    afterwards(() => removeFolder(path))
    const begin = async () => {
      const node = await start({ stores: inFolder(path), env: { SVC_SCHEDULER_JOB_RESULTS: "2" } })
      const a = await joined(node, "a")
      a.behaviour = ({ path }) =>
        path.startsWith("/jobs/")
          ? {
              status: 200,
              body: { id: decodeURIComponent(path.slice(6)), table: "job", status: "success", result: null }
            }
          : undefined
      return {
        node,
        results: () =>
          Promise.all(["job:1", "job:2", "job:3"].map(async (id) => bodyOf(await node.get(`/jobs/${id}`))["result"]))
      }
    }
    const first = await begin()
    await ingest(first.node, [pending("job:1"), pending("job:2"), pending("job:3")])
    for (const id of ["job:3", "job:1", "job:2"])
      expect((await report(first.node, id, "completed", { result: { sent: id } })).status).toBe(200)
    expect(await first.results()).toEqual([{ sent: "job:1" }, { sent: "job:2" }, null])
    await first.node.close()
    const second = await begin()
    expect(await second.results()).toEqual([{ sent: "job:1" }, { sent: "job:2" }, null])
    await ingest(second.node, change("DELETE", "job:2", {}))
    await until("its result is gone", async () => (await second.results())[1] === null)
    expect(await second.results()).toEqual([{ sent: "job:1" }, null, null])
  })
})
