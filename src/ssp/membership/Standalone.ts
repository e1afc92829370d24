/**
 * An SSP without a scheduler: loads its store, then brings memory to the state of the database beside it, if any, and
 * again whenever memory was emptied (D16, D20).
 */
import { Deferred, Effect, Queue } from "effect"
import * as Phase from "../../core/cluster/phase.ts"
import { Serving } from "../../ports/Front.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"

/** Ready once the store is loaded and compared; the server listens meanwhile, so that `/health` answers. */
export const make = (restore: Effect.Effect<void, StartFault>) =>
  Effect.gen(function* () {
    const { present } = yield* Upstream
    const reconcile = yield* Reconcile
    const loaded = yield* Deferred.make<void>()
    const emptied = yield* Queue.sliding<void>(1)
    let phase: Phase.Phase = "bootstrapping"
    const happened = (event: Phase.PhaseEvent): Effect.Effect<void> =>
      Effect.suspend(() => {
        const step = Phase.next(phase, event)
        const from = phase
        phase = step.state
        return step.changed ? Effect.logInfo(`${from} -> ${step.state}: ${step.note}`) : Effect.void
      })
    /** Begins again if memory is emptied meanwhile; without a database there is nothing to load. */
    const bring: Effect.Effect<void> = present
      ? Effect.raceFirst(
          Effect.as(reconcile.bootstrap(happened("AttemptsExhausted")), true),
          Effect.as(Queue.take(emptied), false)
        ).pipe(Effect.flatMap((done) => (done ? happened("Loaded") : bring)))
      : happened("Loaded")
    yield* Serving.fork(
      Effect.gen(function* () {
        yield* restore
        yield* Deferred.succeed(loaded, undefined)
        yield* Effect.forever(Effect.zipRight(bring, Queue.take(emptied)))
      })
    )
    return {
      phase: () => phase,
      loaded: Deferred.await(loaded),
      /** Runs work that empties memory; beside a database this SSP is not ready until memory is filled again. */
      emptying: <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
        present ? Effect.zipRight(happened("DataLost"), Effect.ensuring(work, Queue.offer(emptied, undefined))) : work
    }
  })
