/**
 * `GET /view/:view_id` and its stream by callback: a result is read from the SSP that has the view, a stream is over
 * the views that clients share.
 *
 * Whatever is refused, odd, long or unknown is left to the declared route, which asks the SSP.
 */
import { Effect, FiberSet, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Target from "../../node/streams/readTarget.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { HotReads, type ReadAsked, type ReadReply } from "../../ports/Front.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { isFormat } from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import * as HttpFeed from "../feed/HttpFeed.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as Whereabouts from "../pool/whereabouts.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"
import { type Ask, SharedReads } from "./sharedReads.ts"

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
    const { mayAnswer } = yield* Leadership
    const { state } = yield* Pool
    const { follow } = yield* FollowedViews
    const client = yield* SspClient
    const runFork = yield* FiberSet.makeRuntime<never>()
    const judge = makeJudge(viewSecrets, Errors.unauthorizedView)
    const scope = scopeOf(SchedulerApi, "GET /view/:view_id/stream")
    const streams = yield* SingleStreams.make
    const feed = yield* HttpFeed.hotFeed
    const reads = new SharedReads()
    const ask =
      (id: string, path: string): Ask =>
      (ifNoneMatch, heard, began, failed) => {
        const found = Whereabouts.of(state(), id)
        if (!("owner" in found)) return false
        const headers = ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch }
        const opened = client.open(found.owner, { method: "GET", path, headers }, heard)
        runFork(Effect.match(opened, { onFailure: failed, onSuccess: began }))
        return true
      }
    const read = ({ format, id }: Target.Target, { ifNoneMatch }: ReadAsked, reply: ReadReply): boolean => {
      if (!("owner" in Whereabouts.of(state(), id))) return false
      const path = `/view/${encodeURIComponent(id)}${format === undefined ? "" : `?format=${format}`}`
      reads.read(path, ask(id, path), { ifNoneMatch, reply })
      return true
    }
    return (asked, reply) => {
      if (!mayAnswer()) return false
      if (feed(asked, reply)) return true
      const target = Target.of(asked.url)
      if (target === undefined || !("caller" in judge(asked.authorization, scope))) return false
      if (!target.isStream) return read(target, asked, reply)
      const { format = formatOf(state(), target.id), id } = target
      return streams.open((taker) => {
        const following = follow(id, format, asked.lastEventId, taker)
        return "code" in following ? undefined : following
      }, reply)
    }
  })
)
