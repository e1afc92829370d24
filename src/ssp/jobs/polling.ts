/**
 * The job runner without an SSP: looks into the job tables of a database again and again, and runs what is open.
 *
 * For deployments that use the outbox alone. Any number of them, and SSPs beside them, may share the tables: the database
 * decides who runs a job.
 */
import { Effect, type Scope } from "effect"
import { Backend } from "../../ports/Backend.ts"
import { JobStore } from "../../ports/JobStore.ts"
import type { SspConfigShape } from "../Config.ts"
import { incarnation, maxQueued, prepared } from "./Jobs.ts"
import * as Runner from "./runner.ts"

/** How long a new job waits at most until it is seen. */
export const pollMs = 1_000

export type PollingSettings = Pick<SspConfigShape, "jobTables" | "jobRetryBaseMs" | "jobMaxRetries" | "sspId"> & { readonly pollMs?: number }

/** Runs until it is interrupted, then gives running calls their time. */
export const run = (settings: PollingSettings): Effect.Effect<never, never, JobStore | Backend | Scope.Scope> =>
  Effect.gen(function*() {
    const store = yield* JobStore
    const runner = yield* Runner.make({
      store, maxQueued,
      sweepMs: settings.pollMs ?? pollMs,
      backend: yield* Backend,
      tables: settings.jobTables,
      by: { holder: settings.sspId, incarnation: yield* incarnation },
      policy: { baseMs: settings.jobRetryBaseMs, maxRetries: settings.jobMaxRetries },
      mayClaim: () => true,
      report: () => Effect.void
    })
    yield* prepared(store)
    yield* Effect.forkScoped(runner.run)
    yield* Effect.addFinalizer(() => runner.stop)
    return yield* Effect.never
  })
