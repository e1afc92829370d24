/**
 * `GET /view/:view_id` and `GET /view/:view_id/stream` by callback, for the server's hot reads.
 *
 * Why no Effect inside: what goes out to followers is what a live query is for, and a fiber per stream costs twenty
 * times its bytes. Only what succeeds is answered here; whatever is refused, odd or unknown is left to the declared
 * route, so that there is one answer to each.
 */
import { Effect, Layer } from "effect"
import * as Target from "../../node/streams/readTarget.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import { HotReads, type Serving } from "../../ports/Front.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import * as ResultTag from "../views/resultTag.ts"
import { Views } from "../views/Views.ts"
import * as Guards from "./HttpGuards.ts"

export const layer: Layer.Layer<HotReads, never, Views | Lifecycle | SspConfig | Serving> = Layer.scoped(
  HotReads,
  Effect.gen(function* () {
    const views = yield* Views
    const lifecycle = yield* Lifecycle
    const judge = Guards.judgeOf(yield* SspConfig)
    const scope = scopeOf(SspApi, "GET /view/:view_id")
    const streams = yield* SingleStreams.make
    return (asked, reply) => {
      const target = Target.of(asked.url)
      if (target === undefined || Guards.notTaking(lifecycle, asked.registration) !== undefined) return false
      if (!("caller" in judge(asked.authorization, scope))) return false
      if (target.isStream)
        return streams.open((taker) => views.follow(target.id, target.format, asked.lastEventId, taker), reply)
      const abandon = views.look(target.id, target.format, asked.ifNoneMatch, (looked) => {
        if (looked === undefined) return reply.pass()
        const headers = ResultTag.headersOf(looked.tag)
        if (looked.pieces === undefined) reply.notModified(headers)
        else reply.json(headers, looked.pieces)
      })
      if (typeof abandon === "function") reply.whenGone(abandon)
      return abandon !== false
    }
  })
)
