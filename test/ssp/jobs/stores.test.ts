/**
 * The job store over this node's own records, and over a scheduler's: the first runs the conformance suite, the second
 * only tells.
 *
 * Why the suite again: writing through the views is another path than a map, with a commit between decision and write.
 */

import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Redacted, TestClock } from "effect"
import { describe, expect, test } from "vitest"
import { ingest } from "../../../kit/checks/viewsAsked.ts"
import type { Change } from "../../../src/core/record/change.ts"
import type { Obj, RecordId } from "../../../src/core/surql/values/value.ts"
import * as HttpJobReports from "../../../src/drivers/httpJobReports.ts"
import * as Exchange from "../../../src/host/http/exchange.ts"
import * as Rows from "../../../src/node/jobs/jobRows.ts"
import { type JobReport, JobReportFailed, JobReports } from "../../../src/ports/JobReports.ts"
import { JobStore, type JobStoreError } from "../../../src/ports/JobStore.ts"
import * as Records from "../../../src/ssp/jobs/recordJobs.ts"
import * as Reported from "../../../src/ssp/jobs/reportedJobs.ts"
import * as ViewRecords from "../../../src/ssp/jobs/viewRecords.ts"
import { Views } from "../../../src/ssp/views/Views.ts"
import { id, job, jobStoreSuite } from "../../../src/testing/JobStore.suite.ts"
import { withViews } from "../viewsKit.ts"

type ViewsShape = Views["Type"]

const change = (op: Change["op"], doc: Obj): Change => ({
  op,
  id: doc["id"] as RecordId,
  doc,
  version: undefined,
  position: undefined,
  jobAssignee: undefined
})

/** A node whose records are these, for as long as the layer lives. */
const overViews = (records: ReadonlyArray<Obj>): Layer.Layer<JobStore | Views, JobStoreError> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const ready = yield* Deferred.make<ViewsShape>()
      yield* Effect.forkScoped(withViews(({ views }) => Effect.zipRight(Deferred.succeed(ready, views), Effect.never)))
      const views = yield* Deferred.await(ready)
      views.watch({
        applied: () => {},
        replaced: () => {},
        joins: ({ id, op }) =>
          op === "DELETE" && id.table === "mail_job" ? ViewRecords.deletion(Rows.leaseId(id)) : undefined
      })
      for (const doc of records) yield* Effect.orDie(ingest(views, [change("CREATE", doc)]))
      return Context.make(Views, views).pipe(Context.add(JobStore, Records.make(ViewRecords.make(views))))
    })
  )

jobStoreSuite(
  "records of this node",
  overViews,
  (ms) => TestClock.adjust(ms),
  (doc) =>
    Effect.flatMap(Views, (views) =>
      Effect.asVoid(Effect.orDie(ingest(views, [change("DELETE", { id: doc["id"] }), change("CREATE", doc)])))
    )
)

const me = { holder: "me", incarnation: "1" }

it.effect(
  "D39 in a store that nobody else can have open, the lease of a process before this one binds nobody; one's own does",
  () =>
    Effect.gen(function* () {
      const records = Records.memoryJobRecords([job("a", { max_retries: 7 }), job("b")])
      const before = { holder: "me", incarnation: "0" }
      const shared = Records.make(records),
        restarted = Records.make(records, Records.isOfEarlierProcess(me))
      yield* shared.claim([id("a"), id("b")], before, 40_000)
      yield* shared.write([{ ref: id("a"), event: "AttemptFailed", error }], before)
      expect([yield* shared.open("mail_job", 10), yield* shared.claim([id("a")], me, 40_000)]).toEqual([[], []])
      expect((yield* restarted.open("mail_job", 10)).map(({ text }) => text)).toEqual(["mail_job:a", "mail_job:b"])
      expect((yield* restarted.find(id("a")))?.lease).toBeUndefined()
      // Attempts that failed before count on.
      expect(yield* restarted.claim([id("a")], me, 40_000)).toMatchObject([
        { id: "mail_job:a", errors: [error], maxRetries: 7 }
      ])
      expect([
        (yield* restarted.open("mail_job", 10)).map(({ text }) => text),
        [...(yield* shared.write([{ ref: id("a"), event: "Succeeded", error: undefined }], before))]
      ]).toEqual([["mail_job:b"], []])
    })
)

it.effect(
  "D36 what is kept of the answer stays with the job's row: another process finds and lists it, until the job runs again",
  () =>
    Effect.gen(function* () {
      const records = Records.memoryJobRecords([job("a"), job("b")])
      const result = { at: "2026-01-01T00:00:00Z", sent: ["mail_job:a", null, 0.5] }
      const store = Records.make(records)
      yield* store.claim([id("a"), id("b")], me, 40_000)
      yield* store.write(
        [
          { ref: id("a"), event: "Succeeded", error: undefined, result },
          { ref: id("b"), event: "GaveUp", error }
        ],
        me
      )
      const restarted = Records.make(records, Records.isOfEarlierProcess({ holder: "me", incarnation: "2" }))
      const shown = Effect.all([
        Effect.map(restarted.find(id("a")), (found) => found?.result),
        Effect.map(restarted.list("mail_job", undefined, undefined, 10), (jobs) =>
          Object.fromEntries(jobs.map((each) => [each.id, each.result]))
        )
      ])
      expect(yield* shown).toEqual([result, { "mail_job:a": result, "mail_job:b": undefined }])
      // Delivered again, the change hides nothing; changed, it is another job.
      yield* records.put([[{ id: id("a"), doc: job("a"), was: records.get(id("a")) }]])
      yield* restarted.claim([id("a")], me, 40_000)
      expect((yield* shown)[0]).toEqual(result)
      yield* records.put([[{ id: id("a"), doc: job("a", { payload: { another: 1 } }), was: records.get(id("a")) }]])
      expect((yield* shown)[0]).toBeUndefined()
      yield* restarted.claim([id("a")], me, 40_000)
      yield* restarted.write([{ ref: id("a"), event: "Succeeded", error: undefined }], me)
      expect((yield* shown)[0]).toBeUndefined()
    })
)

it.effect(
  "D35 a change that is delivered again is the same job, also when a stop or an operator has put its record back meanwhile",
  () =>
    Effect.gen(function* () {
      const records = Records.memoryJobRecords([job("stopped"), job("retried")])
      const store = Records.make(records)
      const all = [id("stopped"), id("retried")]
      yield* store.claim(all, me, 40_000)
      yield* store.write(
        [
          { ref: id("stopped"), event: "Released", error: undefined },
          { ref: id("retried"), event: "GaveUp", error }
        ],
        me
      )
      yield* store.amend(id("retried"), "Retried", { ...error, attempt: 0 })
      yield* store.claim(all, me, 40_000)
      yield* store.write(
        all.map((ref) => ({ ref, event: "Succeeded" as const, error: undefined })),
        me
      )
      for (const key of ["stopped", "retried"]) {
        yield* records.put([[{ id: id(key), doc: job(key), was: records.get(id(key)) }]])
        expect(yield* store.claim([id(key)], me, 40_000)).toEqual([])
        expect((yield* store.find(id(key)))?.status).toBe("success")
      }
    })
)

const error = { attempt: 1, code: 500, reason: "no", at: "2026-01-01T00:00:00Z" }

/** Reports that nobody waits for have gone out; that of a job that runs goes after a while. */
const sent = Effect.zipRight(TestClock.adjust("50 millis"), Effect.repeatN(Effect.yieldNow(), 20))

describe("jobs that the scheduler writes", () => {
  const store = (report: (report: JobReport) => Effect.Effect<void, JobReportFailed>) => {
    const records = Records.memoryJobRecords([job("a")])
    return { records, jobs: Reported.make(records, { present: true, report }) }
  }
  it.effect(
    "D35 the assignment is the claim; errors are kept over attempts and reported with the end; it does not run twice",
    () =>
      Effect.gen(function* () {
        const told: Array<JobReport> = []
        const { jobs, records } = store((report) => Effect.sync(() => void told.push(report)))
        const [won] = yield* jobs.claim([id("a")], me, 40_000)
        yield* sent
        expect([won?.status, yield* jobs.claim([id("a")], { holder: "other", incarnation: "1" }, 40_000)]).toEqual([
          "processing",
          []
        ])
        yield* jobs.write([{ ref: id("a"), event: "AttemptFailed", error }], me)
        expect((yield* jobs.claim([id("a")], me, 40_000))[0]?.errors).toEqual([error])
        yield* jobs.write([{ ref: id("a"), event: "Succeeded", error: undefined, result: { sent: 1 } }], me)
        expect(told).toEqual([
          { job_id: "mail_job:a", status: "running", error: null },
          { job_id: "mail_job:a", status: "running", error: "no", errors: [error] },
          { job_id: "mail_job:a", status: "completed", error: null, errors: [error], result: { sent: 1 } }
        ])
        expect([yield* jobs.claim([id("a")], me, 40_000), records.get(id("a"))?.["status"]]).toEqual([[], "pending"])
        yield* sent
        // The record is pending again, as it was: what became of it is said again.
        expect(told.slice(3)).toEqual([{ job_id: "mail_job:a", status: "completed", error: null, errors: [error] }])
      })
  )
  it.effect(
    "D35 what was begun under an assignment that is over ends, and is called again only when it is assigned again",
    () =>
      Effect.gen(function* () {
        const told: Array<JobReport> = []
        const { jobs } = store((report) => Effect.sync(() => void told.push(report)))
        yield* jobs.claim([id("a")], me, 40_000)
        jobs.disown?.()
        yield* jobs.write([{ ref: id("a"), event: "AttemptFailed", error }], me)
        expect(yield* jobs.claim([id("a")], me, 40_000)).toEqual([])
        jobs.assigned?.(id("a"))
        expect((yield* jobs.claim([id("a")], me, 40_000))[0]?.errors).toEqual([error])
        jobs.disown?.()
        yield* jobs.write([{ ref: id("a"), event: "Succeeded", error: undefined }], me)
        expect(told.at(-1)).toMatchObject({ status: "completed" })
      })
  )
  it.effect(
    "D39 what is assigned and not begun is open, and nothing else: neither what is held, over or deleted, nor what is another's by now",
    () =>
      Effect.gen(function* () {
        const { jobs } = store(() => Effect.void)
        const open = Effect.map(jobs.open("mail_job", 10), (refs) => refs.map(({ text }) => text))
        expect(yield* open).toEqual([])
        jobs.assigned(id("a"))
        expect([yield* open, yield* jobs.open("other_job", 10), yield* jobs.open("mail_job", 0)]).toEqual([
          ["mail_job:a"],
          [],
          []
        ])
        yield* jobs.claim([id("a")], me, 40_000)
        expect(yield* open).toEqual([])
        yield* jobs.write([{ ref: id("a"), event: "Released", error: undefined }], me)
        expect(yield* open).toEqual(["mail_job:a"])
        jobs.disown()
        expect(yield* open).toEqual([])
        jobs.assigned(id("a"))
        yield* jobs.claim([id("a")], me, 40_000)
        yield* jobs.write([{ ref: id("a"), event: "Succeeded", error: undefined }], me)
        jobs.assigned(id("b"))
        jobs.forget(id("b"))
        expect(yield* open).toEqual([])
      })
  )
  it.effect(
    "D74 one that is deleted and created again during its call is another job: no outcome of the one before is told, and it is called anew",
    () =>
      Effect.gen(function* () {
        const told: Array<JobReport> = []
        let during = Effect.void
        const { jobs, records } = store((report) =>
          Effect.zipRight(
            Effect.sync(() => void told.push(report)),
            Effect.suspend(() => during)
          )
        )
        const again = Effect.gen(function* () {
          jobs.forget(id("a"))
          yield* Effect.orDie(records.put([[{ id: id("a"), doc: job("a"), was: records.get(id("a")) }]]))
          jobs.assigned(id("a"))
        })
        const succeeds = jobs.write([{ ref: id("a"), event: "Succeeded", error: undefined }], me)
        yield* jobs.claim([id("a")], me, 40_000)
        yield* again
        expect([[...(yield* succeeds)], told]).toEqual([[], []])
        expect((yield* jobs.claim([id("a")], me, 40_000)).length).toBe(1)
        // Deleted while its end is on the way to the scheduler, who knows better.
        during = again
        yield* succeeds
        during = Effect.void
        expect([(yield* jobs.open("mail_job", 10)).length, (yield* jobs.claim([id("a")], me, 40_000)).length]).toEqual([
          1, 1
        ])
        // Ended by an operator at the scheduler, and asked for again, while it is called.
        jobs.ended(id("a"), "failed")
        expect([[...(yield* succeeds)], yield* jobs.open("mail_job", 10)]).toEqual([[], []])
        yield* records.put([
          [{ id: id("a"), doc: job("a", { errors: [{ ...error, attempt: 0 }] }), was: records.get(id("a")) }]
        ])
        jobs.assigned(id("a"))
        expect((yield* jobs.claim([id("a")], me, 40_000)).length).toBe(1)
      })
  )
  it.effect("an outcome that cannot be told is not taken as told", () =>
    Effect.gen(function* () {
      let away = true
      const { jobs } = store(() => (away ? Effect.fail(new JobReportFailed({ message: "no scheduler" })) : Effect.void))
      yield* jobs.claim([id("a")], me, 40_000)
      const write = jobs.write([{ ref: id("a"), event: "GaveUp", error }], me)
      expect(yield* Effect.flip(write)).toMatchObject({ transient: true, message: "no scheduler" })
      away = false
      expect([...(yield* write)]).toEqual(["mail_job:a"])
    })
  )
  it.effect("a job that is handed over before its record is here runs from what was handed over", () =>
    Effect.gen(function* () {
      const { jobs } = store(() => Effect.void)
      expect(yield* jobs.claim([id("b")], me, 40_000)).toEqual([])
      jobs.expect?.(id("b"), { id: id("b"), path: "/x", payload: { n: 1 }, status: "pending" })
      expect((yield* jobs.claim([id("b")], me, 40_000))[0]).toMatchObject({
        path: "/x",
        payload: { n: 1 },
        maxRetries: 3
      })
      // The record that is here may be older than the call.
      jobs.expect(id("a"), { ...job("a"), errors: [error] })
      expect((yield* jobs.claim([id("a")], me, 40_000))[0]?.errors).toEqual([error])
    })
  )
})

test("reports go to /job/result as JSON with the scheduler's secret, if there is one; an answer that is no success, and none at all, are failures", async () => {
  const bodies: Array<unknown> = []
  let status = 200
  const server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")))
    request.on("end", () => {
      bodies.push([request.method, request.url, request.headers.authorization, JSON.parse(text)])
      response.writeHead(status).end("{}")
    })
  })
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const report: JobReport = { job_id: "t:1", status: "failed", error: "no", errors: [error] }
  const send = (secret?: string) =>
    Exchange.make(undefined).pipe(
      Effect.flatMap((over) =>
        Effect.flatMap(JobReports, ({ report: tell }) => tell(report)).pipe(
          Effect.provide(
            HttpJobReports.layer(url, () => (secret === undefined ? undefined : Redacted.make(secret)), over)
          )
        )
      ),
      Effect.scoped,
      Effect.either,
      Effect.runPromise
    )
  expect([(await send())._tag, (await send("s3cret"))._tag, bodies]).toEqual([
    "Right",
    "Right",
    [
      ["POST", "/job/result", undefined, report],
      ["POST", "/job/result", "Bearer s3cret", report]
    ]
  ])
  status = 503
  expect(await send()).toMatchObject({ left: { message: expect.stringContaining("503") } })
  server.closeAllConnections()
  await new Promise((done) => void server.close(done))
  expect((await send())._tag).toBe("Left")
})
