/**
 * Views for browsers: the routes of `Browsers` over this SSP's views; `POST /stream` by callback too.
 */

import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Clock, Effect, Layer } from "effect"
import * as Answers from "../../node/http/answers.ts"
import * as Guard from "../../node/http/guard.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Routes from "../../node/streams/browserRoutes.ts"
import { type Followed, followedLater, type MultiStreamParts } from "../../node/streams/multiStream.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { bytesOf, isLast } from "../../node/streams/viewEvent.ts"
import * as Audit from "../../ports/Audit.ts"
import { HotStreams, type Serving } from "../../ports/Front.ts"
import type { WireError } from "../../protocol/errors.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"
import { Overloaded } from "../viewTypes.ts"
import { fromWorld, mapped } from "./HttpErrors.ts"
import * as Guards from "./HttpGuards.ts"

export const layerBrowsers: Layer.Layer<Browsers, never, SspConfig | Views | Serving> = Layer.scoped(
  Browsers,
  Effect.flatMap(Effect.all([SspConfig, Views]), ([config, views]) => {
    const source =
      (format: StreamFormat): MultiStreamParts["follow"] =>
      (view, after, take) => {
        const follow = (): Followed | WireError =>
          views.follow(view, format, after, {
            take: (events) => take(events.map(bytesOf), isLast(events[events.length - 1]!))
          }) ??
          // Where the reason came only in between, the client comes again.
          fromWorld(views.refusal(view) ?? new Overloaded({ message: "try again", retryAfterSecs: 1 }))
        return followedLater(follow, take, (done) => views.whenSettled(view, done)) ?? follow()
      }
    return Browsers.make({ ...config, secrets: config.bearers, source })
  })
)

export const layerHot: Layer.Layer<HotStreams, never, Browsers | Lifecycle | SspConfig | Audit.Audit> = Layer.effect(
  HotStreams,
  Effect.gen(function* () {
    const browsers = yield* Browsers
    const lifecycle = yield* Lifecycle
    const config = yield* SspConfig
    const callerOf = yield* Guard.makeHotCaller(SspApi, `POST ${Routes.path}`, Guards.judgeOf(config), browsers.tokens)
    return [
      Routes.hotStream(browsers, callerOf, config.bodyLimitBytes, (registration) => {
        const away = Guards.notTaking(lifecycle, registration)
        return away && Answers.toAnswer(away)
      })
    ]
  })
)

export const layer = HttpApiBuilder.group(SspApi, "browser", (handlers) =>
  Effect.gen(function* () {
    const browsers = yield* Browsers
    const views = yield* Views
    const audited = yield* Audit.make(SspApi)
    return handlers
      .handle("openStream", ({ payload }) => Routes.openStream(browsers, payload))
      .handle("changeStream", ({ path, payload }) => Routes.changeStream(browsers, path.stream_id, payload))
      .handle("token", ({ payload }) => Routes.token(browsers, payload))
      .handle("revoke", ({ payload }) => audited(payload.subject)(Routes.revoke(browsers, payload)))
      .handle(
        "touch",
        ({ payload }) =>
          Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
            Routes.touch(payload, (view) => mapped(views.touch(view, nowMs)), 1)
          ),
        { uninterruptible: true }
      )
  })
)
