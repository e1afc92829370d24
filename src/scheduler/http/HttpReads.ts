/**
 * `GET /view/:view_id/stream` by callback, over the views that clients share; whatever is refused, odd or unknown is
 * left to the declared route, which asks the SSP.
 */
import { Effect, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { makeJudge } from "../../node/bearer.ts"
import * as Target from "../../node/streams/readTarget.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import { heartbeatEvery, type StreamFormat } from "../../node/streams/sse.ts"
import { HotReads, Serving } from "../../ports/Front.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { isFormat } from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import { Pool } from "../pool/Pool.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"
import * as Errors from "./HttpErrors.ts"

/** That of the view's registration. */
const formatOf = (state: State.State, id: string): StreamFormat => {
  const key = viewKey(id)
  const body = key === undefined ? undefined : State.view(state, key)?.spec.body
  const { format } = (body ?? {}) as { readonly format?: unknown }
  return isFormat(format) ? format : "flat"
}

export const layer = Layer.scoped(
  HotReads,
  Effect.gen(function* () {
    const { viewSecrets } = yield* SchedulerConfig
    const { state } = yield* Pool
    const { follow } = yield* FollowedViews
    const { stopping } = yield* Serving
    const judge = makeJudge(viewSecrets, Errors.unauthorizedView)
    const scope = scopeOf(SchedulerApi, "GET /view/:view_id/stream")
    const streams = new SingleStreams()
    yield* Serving.fork(
      Effect.forever(
        Effect.delay(
          Effect.sync(() => streams.beat()),
          heartbeatEvery
        )
      )
    )
    yield* Serving.fork(Effect.andThen(stopping, () => streams.stop()))
    return (asked, reply) => {
      const target = Target.of(asked.url)
      if (target === undefined || !target.isStream || !("caller" in judge(asked.authorization, scope))) return false
      const { format = formatOf(state(), target.id), id } = target
      return streams.open((taker) => {
        const following = follow(id, format, asked.lastEventId, taker)
        return "code" in following ? undefined : following
      }, reply)
    }
  })
)
