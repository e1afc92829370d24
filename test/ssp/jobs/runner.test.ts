/**
 * The job runner against backends that misbehave, in virtual time: calls counted, delays within the policy, ends as
 * decided.
 *
 * Every test counts calls, because a job that ends well after one call too many has not ended well.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, LogLevel, type Scope } from "effect"
import { JobStoreError } from "../../../src/ports/JobStore.ts"
import * as Records from "../../../src/ssp/jobs/recordJobs.ts"
import * as Reported from "../../../src/ssp/jobs/reportedJobs.ts"
import { graceMs, sweepMs } from "../../../src/ssp/jobs/runner.ts"
import { answer, joined, leaping, memoryStore, pass, pending, ref, reset, start, table } from "./kit.ts"

const test = (name: string, body: () => Effect.Effect<void, never, Scope.Scope>): void =>
  void it.scopedLive(name, () => leaping(body()).pipe(Logger.withMinimumLogLevel(LogLevel.None)))

const gaps = (calls: ReadonlyArray<{ readonly at: number }>): ReadonlyArray<number> =>
  calls.slice(1).map((call, n) => call.at - calls[n]!.at)
const near = (ms: number) =>
  expect.toSatisfy((actual: number) => actual >= ms * 0.9 && actual <= ms * 1.1 + 10, `${ms} ± 10 %`)

describe("backends that misbehave", () => {
  test("D37 a pending job is called once with token, key and payload, and ends in success", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a", { payload: { to: "x" } })], () => answer(200, "<html>rubbish"))
      yield* pass(2000)
      expect(
        kit.calls.map(({ call }) => [
          call.url,
          call.body,
          call.headers["authorization"],
          call.headers["idempotency-key"]
        ])
      ).toEqual([["http://backend/send", `{"to":"x"}`, "Bearer t0k", "job:a"]])
      expect(yield* kit.job("a")).toEqual({ status: "success", errors: [] })
      expect(kit.reports).toEqual(["job:a begun", "job:a success"])
    }))
  test("D38 500 n times, linear: called until it succeeds, delays grow by the base", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a", { max_retries: 5 })], (_, n) => answer(n <= 3 ? 500 : 204, "down"))
      yield* pass(20_000)
      expect(gaps(kit.calls)).toEqual([near(1000), near(2000), near(3000)])
      const { errors, status } = yield* kit.job("a")
      expect([status, errors.map(({ attempt, code, reason }) => [attempt, code, reason])]).toEqual([
        "success",
        [1, 2, 3].map((n) => [n, 500, "the backend answered 500: down"])
      ])
    }))
  test("D38 500 for ever, exponential: 1 + max_retries calls, then failed", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a", { max_retries: 4, retry_strategy: "exponential" })], () => answer(503))
      yield* pass(60_000)
      expect(gaps(kit.calls)).toEqual([near(1000), near(2000), near(4000), near(8000)])
      const { errors, status } = yield* kit.job("a")
      expect([status, errors.length, kit.runner.figures()]).toEqual([
        "failed",
        5,
        [{ table: "job", queued: 0, running: 0, waiting: 0, counts: { success: 0, retry: 4, failed: 1, lost: 0 } }]
      ])
    }))
  test("D37 400 fails at once with one entry", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], () => answer(400, "no such user"))
      yield* pass(60_000)
      expect([kit.calls.length, yield* kit.job("a")]).toEqual([
        1,
        {
          status: "failed",
          errors: [{ attempt: 1, code: 400, reason: "the backend answered 400: no such user", at: expect.any(String) }]
        }
      ])
    }))
  test("D37 a redirect is not followed and not tried again", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], () => answer(302))
      yield* pass(60_000)
      expect([kit.calls.length, (yield* kit.job("a")).status]).toEqual([1, "failed"])
    }))
  test("D37 429 with Retry-After waits as long as it is asked to, also by date", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], (_, n) =>
        n === 1 ? answer(429, "", "120") : n === 2 ? answer(503, "", "Thu, 01 Jan 1970 00:10:00 GMT") : answer(200)
      )
      yield* pass(700_000)
      expect([gaps(kit.calls)[0], kit.calls[2]?.at, (yield* kit.job("a")).status]).toEqual([
        expect.toSatisfy((ms: number) => ms >= 120_000 && ms < 121_500),
        expect.toSatisfy((ms: number) => ms >= 600_000 && ms < 601_500),
        "success"
      ])
    }))
  test("D37 a backend that hangs is cut off at the time-out and tried again", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a", { max_retries: 1 })], () => Effect.never, {
        tables: [table("job", { timeoutMs: 5000 })]
      })
      yield* pass(30_000)
      expect([kit.calls.length, kit.flight.now, yield* kit.job("a")]).toEqual([
        2,
        0,
        {
          status: "failed",
          errors: [{ retry_at: expect.any(String) }, {}].map((more, n) => ({
            attempt: n + 1,
            code: 0,
            reason: "no answer in time",
            at: expect.any(String),
            ...more
          }))
        }
      ])
    }))
  test("D37 a reset connection is tried again; a slow answer within the time-out is good", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], (_, n) => (n === 1 ? reset : Effect.delay(answer(200), "29 seconds")))
      yield* pass(60_000)
      expect([
        kit.calls.length,
        (yield* kit.job("a")).status,
        (yield* kit.job("a")).errors.map(({ code }) => code)
      ]).toEqual([2, "success", [0]])
    }))
  test("D37 a path that leads away makes no call and one entry", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a", { path: "//evil.example/x" }), pending("b", { path: undefined })], () =>
        answer(200)
      )
      yield* pass(10_000)
      expect(kit.calls).toEqual([])
      expect(yield* kit.job("a")).toEqual({
        status: "failed",
        errors: [{ attempt: 1, code: 0, reason: expect.stringContaining("another host"), at: expect.any(String) }]
      })
      expect((yield* kit.job("b")).status).toBe("failed")
    }))
})

describe("slots and bounds", () => {
  test("a slow backend stalls only itself, and no table has more calls than its slots", () =>
    Effect.gen(function* () {
      const most = { slow: 0, fast: 0 }
      const now = { slow: 0, fast: 0 }
      const jobs = [
        ...Array.from({ length: 40 }, (_, n) => pending(n, {}, "slow")),
        ...Array.from({ length: 200 }, (_, n) => pending(n, {}, "fast"))
      ]
      const kit = yield* start(
        jobs,
        (call) => {
          const which = call.url.includes("slow") ? ("slow" as const) : ("fast" as const)
          most[which] = Math.max(most[which], ++now[which])
          return Effect.ensuring(
            Effect.delay(answer(200), which === "slow" ? "20 seconds" : "10 millis"),
            Effect.sync(() => now[which]--)
          )
        },
        {
          tables: [
            table("slow", { concurrency: 2, baseUrl: "http://slow" }),
            table("fast", { concurrency: 8, baseUrl: "http://fast" })
          ]
        }
      )
      yield* pass(3000)
      expect([
        kit.calls.filter(({ key }) => key.startsWith("fast")).length,
        kit.calls.filter(({ key }) => key.startsWith("slow")).length,
        most
      ]).toEqual([200, 2, { slow: 2, fast: 8 }])
    }))
  test("a job that waits for its retry holds no slot", () =>
    Effect.gen(function* () {
      const kit = yield* start(
        [pending("a", { max_retries: 1 }), pending("b"), pending("c")],
        (call) => (call.headers["idempotency-key"] === "job:a" ? answer(500, "", "600") : answer(200)),
        { tables: [table("job", { concurrency: 1 })] }
      )
      yield* pass(3000)
      expect([
        (yield* kit.job("a")).status,
        (yield* kit.job("b")).status,
        (yield* kit.job("c")).status,
        kit.runner.figures()[0]?.waiting
      ]).toEqual(["processing", "success", "success", 1])
    }))
  test("D39 more jobs than the queue holds: offers never wait, and the sweep brings the rest", () =>
    Effect.gen(function* () {
      const kit = yield* start(
        Array.from({ length: 500 }, (_, n) => pending(n)),
        () => answer(200),
        { maxQueued: 100 }
      )
      const taken = Array.from({ length: 500 }, (_, n) => kit.runner.offer(ref(n))).filter((was) => was).length
      expect(taken).toBe(100)
      yield* pass(2 * sweepMs)
      expect([kit.calls.length, new Set(kit.calls.map(({ key }) => key)).size, kit.flight.most]).toEqual([500, 500, 4])
    }))
  test("D39 in a cluster too: assigned jobs that found no room are begun later", () =>
    Effect.gen(function* () {
      const records = Records.memoryJobRecords(Array.from({ length: 300 }, (_, n) => pending(n)))
      const store = Reported.make(records, { present: true, report: () => Effect.void })
      const kit = yield* start([], () => answer(200), { over: store, maxQueued: 50 })
      for (let n = 0; n < 300; n++) {
        store.assigned(ref(n))
        kit.runner.offer(ref(n))
      }
      yield* pass(2 * sweepMs)
      expect([kit.calls.length, new Set(kit.calls.map(({ key }) => key)).size]).toEqual([300, 300])
    }))
  test("D35 an offer of a job that is known, running or over makes no second call", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], () => Effect.delay(answer(200), "5 seconds"))
      for (let second = 0; second < 10; second++) {
        kit.runner.offer(ref("a"))
        yield* pass(1000)
      }
      expect(kit.calls.length).toBe(1)
    }))
  test("D21 a runner that may not claim calls no backend, and goes on when it may", () =>
    Effect.gen(function* () {
      const kit = yield* start([], () => answer(200), { over: memoryStore([pending("a")]) })
      kit.mayClaim = false
      yield* pass(5000)
      const before = kit.calls.length
      kit.mayClaim = true
      yield* pass(2000)
      expect([before, kit.calls.length]).toEqual([0, 1])
    }))
})

describe("leases, restarts and stops", () => {
  test("D35 two runners on one store: each job is called once, by either runner", () =>
    Effect.gen(function* () {
      const store = memoryStore(Array.from({ length: 200 }, (_, n) => pending(n)))
      const script = () => Effect.delay(answer(200), "100 millis")
      const one = yield* start([], script, { over: store, holder: "one" })
      const two = yield* start([], script, { over: store, holder: "two" })
      yield* pass(20_000)
      const all = [...one.calls, ...two.calls].map(({ key }) => key)
      expect([all.length, new Set(all).size, one.calls.length > 0 && two.calls.length > 0]).toEqual([200, 200, true])
    }))
  test("D35 a lease is renewed while a job waits, so no other runner takes it", () =>
    Effect.gen(function* () {
      const store = memoryStore([pending("a", { max_retries: 1 })])
      const one = yield* start([], (_, n) => answer(n === 1 ? 429 : 200, "", "900"), { over: store, holder: "one" })
      yield* pass(1000)
      const two = yield* start([], () => answer(200), { over: store, holder: "two" })
      yield* pass(920_000)
      expect([one.calls.length, two.calls.length, (yield* one.job("a")).status]).toEqual([2, 0, "success"])
    }))
  test("D39 what a runner that died was calling is taken up when its lease has run out, not before", () =>
    Effect.gen(function* () {
      const store = memoryStore([pending("a")])
      yield* Effect.orDie(store.claim([ref("a")], { holder: "dead", incarnation: "0" }, 40_000))
      const kit = yield* start([], () => answer(200), { over: store })
      yield* pass(39_000)
      expect(kit.calls.length).toBe(0)
      yield* pass(sweepMs)
      expect([kit.calls.length, (yield* kit.job("a")).status]).toEqual([1, "success"])
    }))
  test("D39 a restart with 1,000 pending and 50 interrupted jobs finishes all of them", () =>
    Effect.gen(function* () {
      const store = memoryStore([
        ...Array.from({ length: 1000 }, (_, n) => pending(n)),
        ...Array.from({ length: 50 }, (_, n) => pending(`begun${n}`))
      ])
      yield* Effect.orDie(
        store.claim(
          Array.from({ length: 50 }, (_, n) => ref(`begun${n}`)),
          { holder: "me", incarnation: "0" },
          40_000
        )
      )
      const kit = yield* start([], () => Effect.delay(answer(200), "10 millis"), { over: store })
      yield* pass(80_000)
      const left = yield* Effect.orDie(store.open("job", 10))
      expect([
        kit.calls.length,
        new Set(kit.calls.map(({ key }) => key)).size,
        left,
        (yield* Effect.orDie(store.list("job", "success", undefined, 2000))).length
      ]).toEqual([1050, 1050, [], 1050])
    }))
  test("a stop lets running calls end, releases what waits, and begins nothing", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("slow"), pending("fails", { max_retries: 3 })], (call) =>
        call.headers["idempotency-key"] === "job:slow" ? Effect.delay(answer(200), "4 seconds") : answer(500, "", "60")
      )
      yield* pass(1000)
      const stop = yield* Effect.fork(Effect.uninterruptible(kit.runner.stop))
      yield* pass(5000)
      yield* joined(stop)
      const fails = yield* kit.job("fails")
      expect([
        (yield* kit.job("slow")).status,
        fails.status,
        fails.errors.length,
        kit.runner.offer(ref("slow")),
        kit.calls.length
      ]).toEqual(["success", "pending", 1, false, 2])
    }))
  test("D80 what it calls is named at the goodbye, and nothing is begun after it", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("slow"), pending("waits", { max_retries: 3 })], (call) =>
        call.headers["idempotency-key"] === "job:slow" ? Effect.delay(answer(200), "4 seconds") : answer(500)
      )
      yield* pass(100)
      expect(kit.runner.close()).toEqual(["job:slow"])
      expect(kit.runner.offer(ref("late"))).toBe(false)
      yield* pass(60_000)
      expect([kit.calls.length, (yield* kit.job("slow")).status]).toEqual([2, "success"])
    }))
  test("D38 a wait that was begun is kept over a stop and over a crash: the next runner calls at the time that was set, and counts on", () =>
    Effect.gen(function* () {
      const store = memoryStore([pending("asked"), pending("crashed")])
      const first = yield* start([], () => answer(429, "", "600"), {
        over: store,
        holder: "first",
        tables: [table("job", { concurrency: 1 })]
      })
      first.runner.offer(ref("asked"))
      yield* pass(1)
      expect(first.keyOf("asked").length).toBe(1)
      yield* joined(yield* Effect.fork(first.runner.stop))
      const dead = { holder: "dead", incarnation: "0" }
      yield* Effect.orDie(store.claim([ref("crashed")], dead, 40_000))
      const error = { attempt: 1, code: 429, reason: "later", at: "1970-01-01T00:00:00Z" }
      yield* Effect.orDie(
        store.write(
          [{ ref: ref("crashed"), event: "AttemptFailed", error: { ...error, retry_at: "1970-01-01T00:05:00Z" } }],
          dead
        )
      )
      const second = yield* start([], () => answer(200), { over: store, holder: "second" })
      yield* pass(290_000)
      expect([second.calls, second.runner.figures()[0]?.waiting]).toEqual([[], 2])
      yield* pass(400_000)
      expect(second.calls.map(({ at, key }) => [key, Math.round(at / 1000)])).toEqual([
        ["job:crashed", 300],
        ["job:asked", 600]
      ])
      expect((yield* second.job("asked")).errors.map(({ attempt }) => attempt)).toEqual([1])
    }))
  test("D38 a clock that was set back does not make a wait longer than it was set", () =>
    Effect.gen(function* () {
      const failed = { attempt: 1, code: 503, reason: "no", at: "1970-03-01T00:00:00.000Z" }
      const kit = yield* start(
        [
          pending("a", { errors: [{ ...failed, retry_at: "1970-03-01T00:00:20.000Z" }] }),
          pending("odd", { errors: [{ ...failed, retry_at: "soon" }] }),
          pending("far", { errors: [{ ...failed, retry_at: "2970-03-01T00:00:20.000Z" }] })
        ],
        () => answer(200)
      )
      yield* pass(15_000)
      expect(kit.calls.map(({ key }) => key)).toEqual(["job:odd"])
      yield* pass(10_000)
      expect(kit.calls.map(({ key }) => key)).toEqual(["job:odd", "job:a"])
      yield* pass(3_600_000)
      expect(kit.calls.length).toBe(3)
    }))
  test("D35 a job that is deleted and created again while it is called, waits or is refused is another job: called behind the call that is under way", () =>
    Effect.gen(function* () {
      const records = Records.memoryJobRecords(["called", "waits", "twice", "gone"].map((key) => pending(key)))
      const kit = yield* start(
        [],
        (call, n) =>
          n > 1
            ? answer(200)
            : call.headers["idempotency-key"] === "job:waits"
              ? answer(503, "", "3000")
              : Effect.delay(answer(500), "4 seconds"),
        { over: Records.make(records) }
      )
      yield* pass(1000)
      const remove = (key: string): void => {
        records.remove(ref(key))
        kit.runner.deleted(ref(key))
      }
      const create = (key: string) =>
        Effect.zipRight(
          Effect.orDie(records.put([[{ id: ref(key), doc: pending(key), was: undefined }]])),
          Effect.sync(() => kit.runner.offer(ref(key)))
        )
      for (const key of ["called", "waits", "twice", "gone"]) remove(key)
      for (const key of ["called", "waits", "twice"]) yield* create(key)
      remove("twice")
      yield* create("twice")
      yield* pass(1000)
      expect([kit.calls.length, kit.flight.now]).toEqual([5, 3])
      yield* pass(4000)
      expect(kit.calls.map(({ key }) => key).sort()).toEqual(
        ["called", "called", "gone", "twice", "twice", "waits", "waits"].map((key) => `job:${key}`)
      )
      for (const key of ["called", "waits", "twice"])
        expect(yield* kit.job(key)).toEqual({ status: "success", errors: [] })
      yield* pass(4_000_000)
      expect([kit.calls.length, kit.runner.figures()[0]]).toMatchObject([7, { queued: 0, running: 0, waiting: 0 }])
    }))
  test("a stop cuts off what takes too long; its lease keeps others away until it has run out", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], () => Effect.never)
      yield* pass(1000)
      const stop = yield* Effect.fork(Effect.uninterruptible(kit.runner.stop))
      yield* pass(graceMs + 1000)
      yield* joined(stop)
      expect([
        kit.flight.now,
        (yield* kit.job("a")).status,
        (yield* Effect.orDie(kit.store.open("job", 1))).length
      ]).toEqual([0, "processing", 0])
      yield* pass(40_000)
      expect((yield* Effect.orDie(kit.store.open("job", 1))).length).toBe(1)
    }))
  test("a cancelled job's call is ended, and its outcome does not come back", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a")], () => Effect.delay(answer(200), "20 seconds"))
      yield* pass(1000)
      yield* Effect.orDie(kit.store.amend(ref("a"), "Cancelled", { attempt: 0, code: 0, reason: "cancelled", at: "" }))
      yield* kit.runner.drop(ref("a"))
      yield* pass(60_000)
      expect([kit.flight.now, kit.calls.length, (yield* kit.job("a")).status]).toEqual([0, 1, "failed"])
    }))
  test("D34 a job whose lease is taken away while it is called, or while it waits, counts as lost", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("called"), pending("waits")], ({ headers }) =>
        headers["idempotency-key"] === "job:waits" ? answer(503, "", "100") : Effect.delay(answer(200), "20 seconds")
      )
      yield* pass(1000)
      for (const key of ["called", "waits"])
        yield* Effect.orDie(
          kit.store.amend(ref(key), "Cancelled", { attempt: 0, code: 0, reason: "cancelled", at: "" })
        )
      yield* pass(60_000)
      expect([kit.calls.length, kit.runner.figures()]).toEqual([
        2,
        [{ table: "job", queued: 0, running: 0, waiting: 0, counts: { success: 1, retry: 1, failed: 0, lost: 2 } }]
      ])
    }))
})

describe("stores that fail", () => {
  const transient = new JobStoreError({ transient: true, message: "no connection" })
  test("a store that is away is asked again: one call, and its outcome is not lost", () =>
    Effect.gen(function* () {
      let down = 8
      const failing = <A>(effect: Effect.Effect<A, JobStoreError>) =>
        Effect.suspend(() => (down-- > 0 ? Effect.fail(transient) : effect))
      const kit = yield* start([pending("a")], () => answer(200), {
        store: (store) => ({
          ...store,
          claim: (...args) => failing(store.claim(...args)),
          write: (...args) => failing(store.write(...args))
        })
      })
      yield* pass(60_000)
      expect([kit.calls.length, (yield* kit.job("a")).status]).toEqual([1, "success"])
    }))
  test("an outcome that the store never takes is not a reason to call again and again", () =>
    Effect.gen(function* () {
      const kit = yield* start([pending("a"), pending("b")], () => answer(200), {
        store: (store) => ({
          ...store,
          write: (writes, by) =>
            writes.some((write) => write.ref.text === "job:a")
              ? Effect.fail(new JobStoreError({ transient: false, message: "refused" }))
              : store.write(writes, by)
        })
      })
      yield* pass(200_000)
      expect(kit.keyOf("a").length).toBe(1)
    }))
})
