/**
 * The suite that every layer of `JobStore` must pass.
 *
 * Every test about claims has two runners on one store. Time passes by the layer's own means: a test clock, or expired
 * rows if the database has the clock.
 */
import { it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { describe, expect } from "vitest"
import type { JobError } from "../core/job/job.ts"
import type { Holder } from "../core/job/lease.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import { Datetime, type Obj, type RecordId } from "../core/surql/values/value.ts"
import * as Order from "../node/jobs/jobOrder.ts"
import { type JobListPosition, JobStore, type JobStoreError, type JobWrite, type StoredJob } from "../ports/JobStore.ts"
import { oddKeys } from "./Upstream.suite.ts"

/** The job table of the tests. */
export const table = "mail_job"
/** Id of a job in {@link table}. */
export const id = (key: string | number): RecordId => Ids.make(table, key)
/** A pending job record; `more` overrides its fields. */
export const job = (key: string | number, more: Obj = {}): Obj => ({
  id: id(key),
  path: "/send",
  payload: { to: "x", n: 1 },
  retries: 0,
  max_retries: 3,
  retry_strategy: "linear",
  status: "pending",
  errors: [],
  ...more
})

const a: Holder = { holder: "a", incarnation: "1" }
const b: Holder = { holder: "b", incarnation: "1" }
const hour = 3_600_000
const error = (attempt: number, reason = "no"): JobError => ({
  attempt,
  code: 500,
  reason,
  at: `2026-01-01T00:00:0${attempt}Z`
})
const write = (ref: RecordId, event: JobWrite["event"], failed?: JobError): JobWrite => ({ ref, event, error: failed })
const texts = (jobs: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  jobs.map((found) => found.id).sort()
const refs = (list: ReadonlyArray<RecordId>): ReadonlyArray<string> => list.map(({ text }) => text).sort()

/**
 * Registers the tests of one layer. `make` makes a fresh store with these records; `pass` lets milliseconds pass for
 * it; `replace` deletes a record and creates it again as given, as a client would.
 */
export const jobStoreSuite = <R>(
  name: string,
  make: (records: ReadonlyArray<Obj>) => Layer.Layer<JobStore | R, JobStoreError>,
  pass: (ms: number) => Effect.Effect<void, JobStoreError, R>,
  replace: (record: Obj) => Effect.Effect<void, JobStoreError, R>
): void => {
  const test = (
    what: string,
    records: ReadonlyArray<Obj>,
    body: (store: JobStore["Type"]) => Effect.Effect<void, JobStoreError, R>
  ): void =>
    void it.effect(what, () =>
      Effect.flatMap(JobStore, (store) => Effect.zipRight(store.prepare, body(store))).pipe(
        Effect.provide(make(records))
      )
    )

  describe(`JobStore conformance: ${name}`, () => {
    test(
      "D35 a claim answers the job as its record has it, and writes processing",
      [job("a", { payload: { to: "x", deep: [1, null, { a: "ü" }] }, retry_strategy: "exponential", max_retries: 7 })],
      (store) =>
        Effect.gen(function* () {
          const [won] = yield* store.claim([id("a")], a, hour)
          expect(won).toMatchObject({
            id: "mail_job:a",
            table,
            path: "/send",
            payload: { to: "x", deep: [1, null, { a: "ü" }] },
            strategy: "exponential",
            maxRetries: 7,
            status: "processing",
            errors: []
          })
          const found = yield* store.find(id("a"))
          expect([found?.status, found?.lease?.holder, found?.updatedAt]).toEqual([
            "processing",
            "a",
            expect.stringMatching(/^\d{4}-.*Z$/)
          ])
        })
    )

    test(
      "D35 of two claims one wins; the loser wins nothing, the holder may claim again",
      [job("a"), job("b")],
      (store) =>
        Effect.gen(function* () {
          const retried = (by: Holder) =>
            store
              .claim([id("a"), id("b")], by, hour)
              .pipe(Effect.retry({ times: 20, while: ({ transient }) => transient }))
          const [first, second] = yield* Effect.all([retried(a), retried(b)], { concurrency: "unbounded" })
          expect([...texts(first), ...texts(second)].sort()).toEqual(["mail_job:a", "mail_job:b"])
          const winner = texts(first).length === 2 ? a : b
          expect([
            texts(yield* store.claim([id("a")], winner === a ? b : a, hour)),
            texts(yield* store.claim([id("a")], winner, hour))
          ]).toEqual([[], ["mail_job:a"]])
        })
    )

    test(
      "D35 what is over, missing or no job is not claimed",
      [
        job("s", { status: "success" }),
        job("f", { status: "failed" }),
        job("odd", { status: "done" }),
        job("p", { status: "processing" })
      ],
      (store) =>
        Effect.gen(function* () {
          expect(texts(yield* store.claim([id("s"), id("f"), id("odd"), id("none"), id("p")], a, hour))).toEqual([
            "mail_job:p"
          ])
          expect(texts(yield* store.claim([Ids.make("no_such_table", "x")], a, hour))).toEqual([])
        })
    )

    test(
      "D39 open names jobs without a runner, first those that were begun, and no others",
      [
        job("a"),
        job("b"),
        job("gone", { status: "processing" }),
        job("s", { status: "success" }),
        job("f", { status: "failed" })
      ],
      (store) =>
        Effect.gen(function* () {
          expect(refs(yield* store.open(table, 10))).toEqual(["mail_job:a", "mail_job:b", "mail_job:gone"])
          expect(refs(yield* store.open(table, 1))).toEqual(["mail_job:gone"])
          yield* store.claim([id("a")], a, hour)
          expect(refs(yield* store.open(table, 10))).toEqual(["mail_job:b", "mail_job:gone"])
          expect(yield* store.open("no_such_table", 10)).toEqual([])
        })
    )

    test("D35 a lease that ran out is another's to take, and its old holder writes nothing then", [job("a")], (store) =>
      Effect.gen(function* () {
        yield* store.claim([id("a")], a, 10_000)
        yield* store.write([write(id("a"), "AttemptFailed", error(1))], a)
        expect(texts(yield* store.claim([id("a")], b, hour))).toEqual([])
        yield* pass(15_000)
        expect(refs(yield* store.open(table, 10))).toEqual(["mail_job:a"])
        const [taken] = yield* store.claim([id("a")], b, hour)
        expect(taken?.errors).toEqual([error(1)])
        expect([...(yield* store.write([write(id("a"), "Succeeded")], a))]).toEqual([])
        expect([...(yield* store.write([write(id("a"), "Succeeded")], b))]).toEqual(["mail_job:a"])
        expect((yield* store.find(id("a")))?.status).toBe("success")
      })
    )

    test("D35 renewing keeps a lease alive, for its holder only, and names its holder", [job("a"), job("b")], (store) =>
      Effect.gen(function* () {
        yield* store.claim([id("a"), id("b")], a, 20_000)
        yield* store.write([write(id("b"), "Succeeded")], a)
        expect([...(yield* store.renew([id("a"), id("b"), id("none")], b, hour))]).toEqual([])
        expect([...(yield* store.renew([id("a"), id("b"), id("none")], a, hour))]).toEqual(["mail_job:a"])
        yield* pass(30_000)
        expect(texts(yield* store.claim([id("a")], b, hour))).toEqual([])
      })
    )

    test(
      "D38 failed attempts are appended, survive the next claim, and end in failed",
      [job("a", { errors: [{ message: "older" }] })],
      (store) =>
        Effect.gen(function* () {
          yield* store.claim([id("a")], a, hour)
          yield* store.write([write(id("a"), "AttemptFailed", error(1))], a)
          expect((yield* store.find(id("a")))?.status).toBe("processing")
          const [again] = yield* store.claim([id("a")], a, hour)
          expect(again?.errors).toEqual([{ message: "older" }, error(1)])
          yield* store.write([write(id("a"), "GaveUp", error(2))], a)
          const found = yield* store.find(id("a"))
          expect([found?.status, found?.errors, found?.lease]).toEqual([
            "failed",
            [{ message: "older" }, error(1), error(2)],
            undefined
          ])
          expect(texts(yield* store.claim([id("a")], b, hour))).toEqual([])
        })
    )

    test("a released job is pending and free at once", [job("a")], (store) =>
      Effect.gen(function* () {
        yield* store.claim([id("a")], a, hour)
        expect([...(yield* store.write([write(id("a"), "Released")], a))]).toEqual(["mail_job:a"])
        expect((yield* store.find(id("a")))?.status).toBe("pending")
        expect(texts(yield* store.claim([id("a")], b, hour))).toEqual(["mail_job:a"])
      })
    )

    test(
      "an operator retries what failed, cancels what did not end, and is told of the rest",
      [job("f", { status: "failed", errors: [{ ...error(1) }] }), job("p"), job("r"), job("s", { status: "success" })],
      (store) =>
        Effect.gen(function* () {
          const mark = { ...error(0, "retried by an operator") }
          expect(yield* store.amend(id("f"), "Retried", mark)).toEqual({ kind: "done" })
          const [again] = yield* store.claim([id("f")], a, hour)
          expect(again?.errors).toEqual([error(1), mark])
          yield* store.claim([id("r")], a, hour)
          for (const key of ["p", "r"])
            expect(yield* store.amend(id(key), "Cancelled", error(0, "cancelled"))).toEqual({ kind: "done" })
          expect([...(yield* store.write([write(id("r"), "Succeeded")], a))]).toEqual([])
          expect([(yield* store.find(id("p")))?.status, (yield* store.find(id("r")))?.status]).toEqual([
            "failed",
            "failed"
          ])
          expect([
            yield* store.amend(id("s"), "Retried", mark),
            yield* store.amend(id("s"), "Cancelled", mark),
            yield* store.amend(id("none"), "Retried", mark)
          ]).toEqual([
            { kind: "refused", status: "success" },
            { kind: "refused", status: "success" },
            { kind: "missing" }
          ])
        })
    )

    /** A moment before everything in these tests, by every clock. */
    const at = (seconds: number, nanos = 0): Datetime => new Datetime(seconds - 1_000, nanos)
    const changed = [
      job(1, { updated_at: at(1) }),
      job(2, { status: "failed", updated_at: at(5) }),
      job(3, { updated_at: at(9) }),
      job(4, { status: "failed", updated_at: at(3) }),
      job(5, { status: "failed", updated_at: at(3, 1_000) }),
      job(6, { status: "failed", updated_at: at(3) })
    ]
    test(
      "lists what changed last first, by status, page by page; a page goes on where the one before ended, whatever has become of its last job",
      changed,
      (store) =>
        Effect.gen(function* () {
          const ids = (jobs: ReadonlyArray<StoredJob>) => jobs.map((found) => Number(found.ref.key))
          expect(ids(yield* store.list(table, undefined, undefined, 10))).toEqual([3, 2, 5, 6, 4, 1])
          const pages: Array<ReadonlyArray<number>> = []
          let after: JobListPosition | undefined
          for (;;) {
            const page = yield* store.list(table, "failed", after, 3)
            pages.push(ids(page))
            if (page.length < 3) break
            after = Order.parse(Order.cursor(page.at(-1)!))
            // The retried job now comes first in the list, and no longer at the end of the page.
            expect(yield* store.amend(page.at(-1)!.ref, "Retried", error(0, "again"))).toEqual({ kind: "done" })
          }
          expect(pages).toEqual([[2, 5, 6], [4]])
          expect(ids(yield* store.list(table, "failed", undefined, 10))).toEqual([2, 5, 4])
          expect(ids(yield* store.list(table, "pending", undefined, 1))).toEqual([6])
          expect(yield* store.list("no_such_table", undefined, undefined, 2)).toEqual([])
        })
    )
    test(
      "jobs without a moment come last, those with the greatest key first, and their pages end",
      ["a", "b", "c", "d", "e"].map((key) => job(key, key === "c" ? { updated_at: at(1) } : {})),
      (store) =>
        Effect.gen(function* () {
          const found: Array<string> = []
          for (let after: JobListPosition | undefined; found.length < 10; ) {
            const page: ReadonlyArray<StoredJob> = yield* store.list(table, undefined, after, 2)
            found.push(...page.map(({ id: text }) => text))
            if (page.length < 2) break
            after = Order.parse(Order.cursor(page.at(-1)!))
          }
          expect(found).toEqual(["c", "e", "d", "b", "a"].map((key) => `mail_job:${key}`))
        })
    )

    const again = (store: JobStore["Type"], key: string): Effect.Effect<void, JobStoreError, R> =>
      replace(job(key)).pipe(
        Effect.zipRight(store.find(id(key))),
        Effect.map((found) => expect([found?.status, found?.errors]).toEqual(["pending", []]))
      )
    test(
      "D35 a job that was deleted and created again as it was is another job: free at once, called anew, and no outcome of the one before is written to it",
      ["held", "other's", "waits", "done", "failed"].map((key) => job(key)),
      (store) =>
        Effect.gen(function* () {
          yield* store.claim(["held", "other's", "waits", "done", "failed"].map(id), a, hour)
          yield* store.write(
            [
              write(id("waits"), "AttemptFailed", error(1)),
              write(id("done"), "Succeeded"),
              write(id("failed"), "GaveUp", error(1))
            ],
            a
          )
          for (const key of ["held", "other's", "waits", "done", "failed"]) yield* again(store, key)
          expect(refs(yield* store.open(table, 10)).length).toBe(5)
          // The former holder can write nothing, neither before nor after the next claim.
          expect([...(yield* store.write([write(id("held"), "Succeeded")], a))]).toEqual([])
          const won = yield* store.claim(["held", "other's", "waits", "done", "failed"].map(id), b, hour)
          expect(won.map((found) => found.errors)).toEqual([[], [], [], [], []])
          expect([
            ...(yield* store.write([write(id("other's"), "Succeeded"), write(id("waits"), "GaveUp", error(2))], a)),
            ...(yield* store.renew([id("held"), id("waits")], a, hour))
          ]).toEqual([])
          expect([...(yield* store.write([write(id("held"), "Succeeded")], b))]).toEqual(["mail_job:held"])
          expect((yield* store.find(id("other's")))?.status).toBe("processing")
        })
    )

    const odd = oddKeys.filter((key) => typeof key !== "object")
    test(
      "jobs with any key are claimed, renewed and finished",
      odd.map((key) => job("x", { id: Ids.make(table, key) })),
      (store) =>
        Effect.gen(function* () {
          const all = odd.map((key) => Ids.make(table, key))
          const expected = refs(all)
          expect(refs(yield* store.open(table, 100))).toEqual(expected)
          expect(texts(yield* store.claim(all, a, hour))).toEqual(expected)
          expect(yield* store.open(table, 100)).toEqual([])
          expect([...(yield* store.renew(all, a, hour))].sort()).toEqual(expected)
          expect(
            [
              ...(yield* store.write(
                all.map((ref) => write(ref, "Succeeded")),
                a
              ))
            ].sort()
          ).toEqual(expected)
        })
    )
  })
}
