/** Views for browsers: `Browsers` over this SSP's views, and its routes. */
import { Clock, Effect, Layer } from "effect"
import { routeGroup } from "../../node/http/routes.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Routes from "../../node/streams/browserRoutes.ts"
import { type FollowedView, followWhenSettled, type MultiStreamParts } from "../../node/streams/multiStream.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { bytesOf, isLast } from "../../node/streams/viewEvent.ts"
import * as Audit from "../../ports/Audit.ts"
import type { Serving } from "../../ports/Front.ts"
import type { WireError } from "../../protocol/errors.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { Views } from "../views/Views.ts"
import { Overloaded } from "../viewTypes.ts"
import { mapErrors, wireErrorOf } from "./HttpErrors.ts"

export const layerBrowsers: Layer.Layer<Browsers, never, SspConfig | Views | Serving> = Layer.scoped(
  Browsers,
  Effect.flatMap(Effect.all([SspConfig, Views]), ([config, views]) => {
    const source =
      (format: StreamFormat): MultiStreamParts["follow"] =>
      (view, after, take) => {
        const follow = (): FollowedView | WireError =>
          views.follow(view, format, after, {
            take: (events) => take(events.map(bytesOf), isLast(events[events.length - 1]!))
          }) ??
          // A reason that has passed meanwhile is answered with "try again".
          wireErrorOf(views.refusal(view) ?? new Overloaded({ message: "try again", retryAfterSecs: 1 }))
        return followWhenSettled(follow, take, (done) => views.whenSettled(view, done)) ?? follow()
      }
    return Browsers.make({ ...config, secrets: config.bearers, source })
  })
)

export const make = Effect.gen(function* () {
  const views = yield* Views
  const one = (view: string) => Effect.flatMap(Clock.currentTimeMillis, (nowMs) => mapErrors(views.touch(view, nowMs)))
  return routeGroup(SspApi, "browser", Routes.make(yield* Browsers, yield* Audit.make, { one, concurrency: 1 }))
})
