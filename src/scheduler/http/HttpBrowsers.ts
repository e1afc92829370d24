/**
 * Views for browsers: the routes of `Browsers` over the views of the cluster; `POST /stream` by callback too.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Layer } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import { toAnswer } from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Guard from "../../node/http/guard.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Routes from "../../node/streams/browserRoutes.ts"
import { bytesOf, isLast } from "../../node/streams/viewEvent.ts"
import * as Audit from "../../ports/Audit.ts"
import { HotStreams } from "../../ports/Front.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { SchedulerApi, ViewBearer } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"

/** Judge of the routes of views: takes the secrets in `viewSecrets`. */
const judgeOf = ({ viewSecrets }: Pick<SchedulerConfigShape, "viewSecrets">) =>
  makeJudge(viewSecrets, Errors.unauthorizedView)

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

export const layerBearer = Layer.effect(
  ViewBearer,
  Effect.map(
    Effect.flatMap(Effect.all([SchedulerConfig, Browsers]), ([config, { tokens }]) =>
      Guard.make(SchedulerApi, judgeOf(config), tokens)
    ),
    (check) => ViewBearer.of({ view: () => check })
  )
)

export const layerHot: Layer.Layer<HotStreams, never, Browsers | SchedulerConfig | Audit.Audit> = Layer.effect(
  HotStreams,
  Effect.gen(function* () {
    const browsers = yield* Browsers
    const config = yield* SchedulerConfig
    const callerOf = yield* Guard.makeHotCaller(SchedulerApi, `POST ${Routes.path}`, judgeOf(config), browsers.tokens)
    const { mayAnswer } = yield* Leadership
    const notLeader = toAnswer(Errors.notLeader)
    return [Routes.hotStream(browsers, callerOf, config.maxBodyBytes, () => (mayAnswer() ? undefined : notLeader))]
  })
)

/** Whether the view is there, and lives on. */
const touch = ({ ask }: Pool["Type"], id: string) =>
  Effect.gen(function* () {
    const view = viewKey(id)
    if (view === undefined) return false
    const reply = yield* ask((ref) => ({ tag: "TouchView", ref, view }))
    if (reply.kind === "overloaded") return yield* Effect.fail(Errors.busy(reply))
    return reply.kind !== "unknownView"
  })

export const layer = HttpApiBuilder.group(SchedulerApi, "browser", (handlers) =>
  Effect.gen(function* () {
    const browsers = yield* Browsers
    const pool = yield* Pool
    const audited = yield* Audit.make(SchedulerApi)
    return handlers
      .handle("openStream", ({ payload }) => Routes.openStream(browsers, payload))
      .handle("changeStream", ({ path, payload }) => Routes.changeStream(browsers, path.stream_id, payload))
      .handle("token", ({ payload }) => Routes.token(browsers, payload))
      .handle("revoke", ({ payload }) => audited(payload.subject)(Routes.revoke(browsers, payload)))
      .handle("touch", ({ payload }) => Routes.touch(payload, (view) => touch(pool, view), "unbounded"), {
        uninterruptible: true
      })
  })
)
