/**
 * What browsers get at views with, beyond the routes of a single view: tokens, and streams of several views (D49, D50).
 */
import { Context, Effect, Layer } from "effect"
import type { ViewGrant } from "../../core/access/viewToken.ts"
import type { AskedView, MultiStream, MultiStreamParts } from "../../node/streams/multiStream.ts"
import { OpenStreams } from "../../node/streams/openStreams.ts"
import { leaveFor, ViewTokens } from "../../node/viewTokens.ts"
import { type ReadReply, Serving, type Sink } from "../../ports/Front.ts"
import { SspConfig } from "../Config.ts"
import { bytesOf } from "../views/streams/eventBytes.ts"
import { Views } from "../views/Views.ts"
import { Overloaded, type StreamFormat } from "../views/viewTypes.ts"
import { fromWorld } from "./HttpErrors.ts"
import { heartbeatEvery } from "./HttpStream.ts"

/** A stream of several views that is asked for, by a caller with this grant or a secret. */
export interface Opening {
  readonly views: ReadonlyArray<AskedView>
  readonly format?: StreamFormat | undefined
}

export class Browsers extends Context.Tag("ssp/http/Browsers")<
  Browsers,
  {
    readonly tokens: ViewTokens
    readonly streams: OpenStreams
    /** Writes to the sink from now on; answers what that calls. */
    readonly open: (opening: Opening, grant: ViewGrant | undefined, sink: Sink) => Parameters<ReadReply["stream"]>[1]
    /** Tokens of the subject open nothing more. */
    readonly revoke: (subject: string) => void
  }
>() {
  static readonly layer: Layer.Layer<Browsers, never, SspConfig | Views | Serving> = Layer.scoped(
    Browsers,
    Effect.gen(function* () {
      const { bearers, streamViews, viewTokenTtlSecs } = yield* SspConfig
      const views = yield* Views
      const clock = yield* Effect.clock
      const { stopping } = yield* Serving
      const nowMs = () => clock.unsafeCurrentTimeMillis()
      const tokens = new ViewTokens({ secrets: bearers, ttlMs: viewTokenTtlSecs * 1000, nowMs })
      const streams = new OpenStreams(streamViews)
      const every = (work: () => void, duration: Parameters<typeof Effect.sleep>[0]) =>
        Serving.fork(Effect.forever(Effect.delay(Effect.sync(work), duration)))
      yield* every(() => streams.beat(), heartbeatEvery)
      yield* every(() => streams.expire(nowMs()), "1 second")
      yield* Serving.fork(
        Effect.andThen(
          stopping,
          Effect.sync(() => streams.stop())
        )
      )
      const partsFor = (grant: ViewGrant | undefined, format: StreamFormat): MultiStreamParts => ({
        admit: (view, token) => leaveFor(tokens, grant, view, token),
        follow: (view, after, take) => {
          const following = views.follow(view, format, after, {
            take: (events) => take(events.map(bytesOf), events[events.length - 1]!.event === "end")
          })
          // What cannot be followed has a reason; where it came only in between, it comes again.
          return (
            following ?? fromWorld(views.refusal(view) ?? new Overloaded({ message: "try again", retryAfterSecs: 1 }))
          )
        }
      })
      return {
        tokens,
        streams,
        open: ({ format = "rows", views: asked }, grant, sink) => {
          const stream: MultiStream = streams.open(asked, partsFor(grant, format), sink)
          return { drained: stream.drained, gone: () => streams.gone(stream) }
        },
        revoke: (subject) => {
          tokens.revoke(subject)
          streams.revoke(subject)
        }
      }
    })
  )
}
