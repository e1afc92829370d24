/**
 * The recurring compare with the database while the node is ready, every `SVC_RECONCILE_INTERVAL_SECS`.
 *
 * The first one comes soon: changes posted during the last compare before the node was ready were refused. A database
 * that does not answer is asked again soon.
 */
import { Duration, Effect, Layer } from "effect"
import { makeFailureLog } from "../../node/database/liveCompare.ts"
import { Serving } from "../../ports/Front.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"

const soonSecs = 30

export const layer: Layer.Layer<never, never, Reconcile | Lifecycle | Upstream | SspConfig | Serving> =
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const { reconcileIntervalSecs } = yield* SspConfig
      const { mode, phase } = yield* Lifecycle
      const { present } = yield* Upstream
      const { now } = yield* Reconcile
      if (!present || mode === "scheduler" || reconcileIntervalSecs === 0) return
      const soon = Math.min(soonSecs, reconcileIntervalSecs)
      const failed = makeFailureLog()
      const compare = now.pipe(
        Effect.as(reconcileIntervalSecs),
        Effect.tap(failed.over),
        Effect.catchAll((error) => Effect.as(failed.say(error, ` in ${soon} s`), soon))
      )
      const turn = (pauseSecs: number): Effect.Effect<number> =>
        Effect.zipRight(
          Effect.sleep(Duration.seconds(pauseSecs)),
          Effect.suspend(() => (phase() === "ready" ? compare : Effect.succeed(soon)))
        )
      yield* Serving.fork(Effect.iterate(soon, { while: () => true, body: turn }).pipe(Effect.zipRight(Effect.never)))
    })
  )
