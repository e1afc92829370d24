/**
 * The life of an SSP without a scheduler: its store is loaded, then memory is brought to what the database beside it
 * has, if there is one, and again whenever what it held is gone (D16, D20).
 */
import { Deferred, Effect, Queue } from "effect"
import * as Phase from "../../core/cluster/phase.ts"
import { Serving } from "../../ports/Front.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"

/** Ready once the store is loaded and compared; the server listens meanwhile, so that `/health` can say so. */
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
    /** Begins again when everything is emptied under it; without a database there is nothing to bring. */
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
      /**
       * Runs what empties memory; beside a database it is filled again from there, and this SSP is not ready until it
       * is.
       */
      emptying: <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
        present ? Effect.zipRight(happened("DataLost"), Effect.ensuring(work, Queue.offer(emptied, undefined))) : work
    }
  })
