/** Views for browsers: `Browsers` over the views of the cluster, and its routes. */
import { Effect, Layer } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import { routeGroup } from "../../node/http/routes.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Routes from "../../node/streams/browserRoutes.ts"
import { bytesOf, isLast } from "../../node/streams/viewEvent.ts"
import * as Audit from "../../ports/Audit.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"

export const layerBrowsers = Layer.scoped(
  Browsers,
  Effect.flatMap(Effect.all([SchedulerConfig, FollowedViews]), ([config, { follow }]) =>
    Browsers.make({
      ...config,
      secrets: config.viewSecrets,
      source: (format) => (view, after, take) =>
        follow(view, format, after, { take: (events) => take(events.map(bytesOf), isLast(events[events.length - 1]!)) })
    })
  )
)

/** Refreshes a view's last activity; answers whether the view exists. */
const touch = ({ ask }: Pool["Type"], id: string) =>
  Effect.gen(function* () {
    const view = viewKey(id)
    if (view === undefined) return false
    const reply = yield* ask((ref) => ({ tag: "TouchView", ref, view }))
    if (reply.kind === "overloaded") return yield* Effect.fail(Errors.poolOverloaded(reply))
    return reply.kind !== "unknownView"
  })

export const make = Effect.gen(function* () {
  const pool = yield* Pool
  return routeGroup(
    SchedulerApi,
    "browser",
    Routes.make(yield* Browsers, yield* Audit.make, {
      one: (view) => touch(pool, view),
      concurrency: "unbounded"
    })
  )
})
