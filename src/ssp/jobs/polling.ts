/**
 * The job runner without an SSP: polls the job tables of a database and runs open jobs.
 *
 * For deployments that use the outbox alone. Several of these processes and SSPs may share the tables: the database
 * decides which one runs a job.
 */
import { Effect, type Scope } from "effect"
import * as Address from "../../core/settings/address.ts"
import { Backend } from "../../ports/Backend.ts"
import { JobStore } from "../../ports/JobStore.ts"
import { RetryPolicy } from "../../ports/RetryPolicy.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { SspConfigShape } from "../Config.ts"
import { incarnation, maxQueued, prepareStore } from "./Jobs.ts"
import * as Runner from "./runner.ts"

/** Longest time until a new job is seen. */
const pollMs = 1_000

export type PollingSettings = Pick<SspConfigShape, "jobTables" | "jobRetryBaseMs" | "jobMaxRetries" | "sspId"> & {
  readonly pollMs?: number
}

/** Runs until it is interrupted, then lets running calls end. */
export const run = (settings: PollingSettings): Effect.Effect<never, never, JobStore | Backend | Scope.Scope> =>
  Effect.gen(function* () {
    const store = yield* JobStore
    const runner = yield* Runner.make({
      store,
      maxQueued,
      sweepMs: settings.pollMs ?? pollMs,
      backend: yield* Backend,
      tables: settings.jobTables,
      by: { holder: settings.sspId, incarnation: yield* incarnation },
      policy: { baseMs: settings.jobRetryBaseMs, maxRetries: settings.jobMaxRetries },
      retries: yield* RetryPolicy,
      mayClaim: () => true,
      report: () => Effect.void
    })
    yield* prepareStore(store)
    yield* Effect.forkScoped(runner.run)
    yield* Effect.addFinalizer(() => runner.stop)
    return yield* Effect.never
  })

const refused = (message: string): Effect.Effect<never, StartFault> =>
  Effect.fail(new StartFault({ exitCode: 2, message }))

/** Runs as a process; logs which tables it serves, or fails if it has none. */
export const serve = (config: SspConfigShape): Effect.Effect<never, StartFault, JobStore | Backend | Scope.Scope> =>
  Effect.suspend(() => {
    const { jobTables, sspId, storeAddr, storeDb, storeNs } = config
    if (jobTables.length === 0)
      return refused(
        "there is nothing to run: no job table is in the configuration file (job_tables, or backends with method.type outbox)"
      )
    if (Address.store(storeAddr ?? "")?.kind !== "server")
      return refused(
        "STORE_ADDR must name the database server whose job tables are run; an SSP runs the jobs of its own store"
      )
    return Effect.zipRight(
      Effect.logInfo(
        `running the jobs of ${jobTables.map(({ table }) => table).join(", ")} in ${storeAddr} (${storeNs}/${storeDb}) as ${sspId}`
      ),
      run(config)
    )
  })
