/**
 * Removes views that were not kept alive, every `TTL_CLEANUP_INTERVAL_SECS` (D14).
 *
 * A store that fails is tried again in the next round; a defect ends the process.
 */
import { Clock, Duration, Effect, Layer } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import { Serving } from "../../ports/Front.ts"
import { steadyMs } from "../../ports/Turn.ts"
import { SspConfig } from "../Config.ts"
import { Views } from "../views/Views.ts"
import { Lifecycle } from "./Lifecycle.ts"

const sweep = Effect.gen(function* () {
  const views = yield* Views
  const { assignments } = yield* Lifecycle
  const expired = yield* views.expire(yield* Clock.currentTimeMillis, yield* steadyMs)
  for (const id of expired) assignments.forget(viewKey(id) ?? id)
  if (expired.length > 0)
    yield* Effect.logInfo(`${expired.length} views expired`).pipe(Effect.annotateLogs("views", expired.slice(0, 20)))
}).pipe(
  Effect.catchTag("StoreFailed", (error) =>
    Effect.logWarning(`expired views could not be removed: ${error.message}; trying again at the next turn`)
  )
)

export const layer: Layer.Layer<never, never, Views | Lifecycle | SspConfig | Serving> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const { ttlCleanupIntervalSecs } = yield* SspConfig
    const { loaded } = yield* Lifecycle
    yield* Serving.fork(
      Effect.zipRight(
        loaded,
        Effect.forever(Effect.zipRight(Effect.sleep(Duration.seconds(ttlCleanupIntervalSecs)), sweep))
      )
    )
  })
)
