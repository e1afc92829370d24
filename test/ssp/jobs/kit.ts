/**
 * A job runner on a store in memory and a backend that the test writes, in virtual time.
 *
 * Why virtual: policies are about seconds and minutes, and a test that waits for them waits for ever or lies.
 */
import { Clock, Effect, Fiber, Redacted, type Scope } from "effect"
import { VirtualTime } from "../../../kit/data/virtualTime.ts"
import type { JobError } from "../../../src/core/job/job.ts"
import type { Answer } from "../../../src/core/job/outcome.ts"
import type { HttpCall } from "../../../src/core/job/request.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../../../src/core/surql/values/value.ts"
import { BackendFailed } from "../../../src/ports/Backend.ts"
import type { JobStoreShape } from "../../../src/ports/JobStore.ts"
import { RetryPolicy } from "../../../src/ports/RetryPolicy.ts"
import * as Records from "../../../src/ssp/jobs/recordJobs.ts"
import * as Runner from "../../../src/ssp/jobs/runner.ts"

export interface Called {
  readonly key: string
  readonly at: number
  readonly call: HttpCall
}

/** What the backend does, by the call's number for that job, from 1. */
export type Script = (call: HttpCall, n: number) => Effect.Effect<Answer, BackendFailed>

export const answer = (status: number, body = "", retryAfter?: string): Effect.Effect<Answer> =>
  Effect.succeed({ status, body, retryAfter })
export const reset = Effect.fail(new BackendFailed({ message: "no answer from the backend: read ECONNRESET" }))

export const ref = (key: string | number, table = "job"): RecordId => Ids.make(table, key)
export const pending = (key: string | number, more: Obj = {}, table = "job"): Obj => ({
  id: ref(key, table),
  path: "/send",
  payload: { n: 1 },
  max_retries: 3,
  retry_strategy: "linear",
  status: "pending",
  errors: [],
  ...more
})

export const table = (name = "job", more: Partial<Runner.JobTableSettings> = {}): Runner.JobTableSettings => ({
  table: name,
  name,
  baseUrl: "http://backend",
  authToken: Redacted.make("t0k"),
  timeoutMs: 30_000,
  concurrency: 4,
  ...more
})

export interface Kit {
  readonly store: JobStoreShape
  readonly runner: Runner.Runner
  readonly calls: Array<Called>
  /** Calls under way now, and the most there ever were. */
  readonly flight: { now: number; most: number }
  readonly reports: Array<string>
  mayClaim: boolean
  readonly keyOf: (key: string | number) => ReadonlyArray<Called>
  readonly job: (
    key: string | number,
    table?: string
  ) => Effect.Effect<{ readonly status: string | undefined; readonly errors: ReadonlyArray<JobError> }>
}

export interface Settings {
  readonly tables?: ReadonlyArray<Runner.JobTableSettings>
  readonly store?: (store: JobStoreShape) => JobStoreShape
  readonly holder?: string
  readonly maxQueued?: number
  readonly over?: JobStoreShape
}

export const memoryStore = (records: ReadonlyArray<Obj>): JobStoreShape =>
  Records.make(Records.memoryJobRecords(records))

export const start = (
  records: ReadonlyArray<Obj>,
  script: Script,
  { holder = "me", maxQueued = 10_000, over, store: wrap = (store) => store, tables = [table()] }: Settings = {}
): Effect.Effect<Kit, never, Scope.Scope> =>
  Effect.gen(function* () {
    const base = over ?? memoryStore(records)
    const store = wrap(base)
    const calls: Array<Called> = []
    const flight = { now: 0, most: 0 }
    const reports: Array<string> = []
    const kit: { mayClaim: boolean } = { mayClaim: true }
    const runner = yield* Runner.make({
      store,
      tables,
      by: { holder, incarnation: "1" },
      policy: { baseMs: 1000, maxRetries: 100 },
      retries: yield* RetryPolicy,
      maxQueued,
      sweepMs: Runner.sweepMs,
      mayClaim: () => kit.mayClaim,
      report: (job, decision) =>
        Effect.sync(() => void reports.push(`${job.id} ${decision === "begun" ? "begun" : decision.kind}`)),
      backend: {
        call: (call) =>
          Effect.gen(function* () {
            const key = call.headers["idempotency-key"]!
            calls.push({ key, at: yield* Clock.currentTimeMillis, call })
            flight.most = Math.max(flight.most, ++flight.now)
            return yield* script(call, calls.filter((one) => one.key === key).length)
          }).pipe(
            Effect.timeoutFail({
              duration: call.timeoutMs,
              onTimeout: () => new BackendFailed({ message: "no answer in time" })
            }),
            Effect.ensuring(Effect.sync(() => flight.now--))
          )
      }
    })
    yield* Effect.forkScoped(runner.run)
    return Object.assign(kit, {
      store: base,
      runner,
      calls,
      flight,
      reports,
      keyOf: (key: string | number) => calls.filter((call) => call.key === ref(key).text),
      job: (key: string | number, name = "job") =>
        Effect.orDie(
          Effect.map(base.find(ref(key, name)), (found) => ({
            status: found?.status,
            errors: (found?.errors ?? []) as ReadonlyArray<JobError>
          }))
        )
    })
  })

export const joined = <A, E>(fiber: Fiber.RuntimeFiber<A, E>) => Fiber.join(fiber)

/** Runs an effect on a time of its own, which {@link pass} moves. */
export const leaping = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const time = new VirtualTime()
    times.set(time.clock, time)
    return Effect.withClock(effect, time.clock)
  })

const times = new WeakMap<object, VirtualTime>()

export const pass = (ms: number): Effect.Effect<void> =>
  Effect.clockWith((clock) => times.get(clock)?.pass(ms) ?? Effect.dieMessage("not on a virtual time"))
