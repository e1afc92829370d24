/**
 * This SSP as a member of a cluster: registers at the scheduler, for ever, until it is taken.
 *
 * Retries have full jitter, so that a cluster that comes back is not met by all SSPs at once.
 */
import { Duration, Effect, Random } from "effect"
import * as Phase from "../core/cluster/phase.ts"
import { Serving } from "../ports/Front.ts"
import { SchedulerClient, type SchedulerError } from "../ports/SchedulerClient.ts"
import { SspConfig } from "./Config.ts"

const baseMs = 500
const capMs = 30_000

/** Longest wait after `failures` failures in a row; the wait itself is drawn evenly below it. */
export const backoffCeilingMs = (failures: number): number => Math.min(capMs, baseMs * 2 ** Math.min(failures, 16))

const backoff = (failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) => Effect.sleep(Duration.millis(Math.round(part * backoffCeilingMs(failures)))))

/** Registers until a scheduler answers; then waits, because bootstrap is not built yet. */
export const run = (happened: (event: Phase.PhaseEvent) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const config = yield* SspConfig
    const client = yield* SchedulerClient
    const url = config.advertisedUrl(yield* (yield* Serving).port)
    let failures = 0
    let tries = 0
    const failed = (error: SchedulerError): Effect.Effect<void> =>
      Effect.gen(function*() {
        tries++
        if (error.reason !== "cloning") failures++
        yield* Effect.logWarning(`registration at ${config.schedulerUrl} failed (${failures} in a row): ${error.message}; trying again`)
        if (failures === Phase.maxFailures) {
          yield* Effect.logError(`registration failed ${failures} times in a row; /health reports failed until it succeeds. Check SCHEDULER_URL`)
          yield* happened("AttemptsExhausted")
        }
        yield* backoff(tries - 1)
      })
    for (;;) {
      const answered = yield* Effect.either(client.register({ ssp_id: config.sspId, url, batch: true }))
      if (answered._tag === "Left") {
        yield* failed(answered.left)
        continue
      }
      yield* Effect.logWarning(
        `registered as ${config.sspId} at ${url} with snapshot_seq ${answered.right.snapshot_seq}, but bootstrap from a scheduler is not built yet in this version: this SSP stays bootstrapping. Unset SCHEDULER_URL to run standalone`
      )
      return yield* Effect.never
    }
  })
