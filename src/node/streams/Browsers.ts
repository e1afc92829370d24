/**
 * Services for browsers beyond the routes of a single view: tokens, and streams of several views (D49, D50).
 *
 * Shared by both servers, which differ in the source of a view's events.
 */
import { Context, Effect } from "effect"
import type { KnownSecret } from "../../core/access/scopedSecrets.ts"
import type { ViewGrant } from "../../core/access/viewToken.ts"
import { type BodySink, Serving, type SinkEvents } from "../../ports/Front.ts"
import { permissionFor, ViewTokens } from "../http/viewTokens.ts"
import type { AskedView, MultiStreamParts } from "./multiStream.ts"
import { OpenStreams } from "./openStreams.ts"
import { heartbeatEvery, type StreamFormat } from "./sse.ts"

/** A request for a stream of several views. */
interface Opening {
  readonly views: ReadonlyArray<AskedView>
  readonly format?: StreamFormat | undefined
}

interface BrowsersParts {
  /** Secrets that sign tokens, and that callers may use. */
  readonly secrets: () => ReadonlyArray<KnownSecret>
  readonly viewTokenTtlSecs: number
  /** Most views of a stream, and of a token. */
  readonly streamViews: number
  /** Source of the events of a stream in this format. */
  readonly source: (format: StreamFormat) => MultiStreamParts["follow"]
}

export interface BrowsersShape {
  readonly tokens: ViewTokens
  readonly streams: OpenStreams
  /**
   * Starts a stream into the sink, for a caller with this grant or a secret; answers the callbacks for the sink. {@link
   * OpenStreams.refusal} must accept the views first.
   */
  readonly open: (opening: Opening, grant: ViewGrant | undefined, sink: BodySink) => SinkEvents
  /** Refuses the subject's tokens, and ends its streams. */
  readonly revoke: (subject: string) => void
}

export class Browsers extends Context.Tag("node/streams/Browsers")<Browsers, BrowsersShape>() {
  static readonly make = ({ secrets, source, streamViews, viewTokenTtlSecs }: BrowsersParts) =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const { stopping } = yield* Serving
      const nowMs = () => clock.unsafeCurrentTimeMillis()
      const tokens = new ViewTokens({ secrets, ttlMs: viewTokenTtlSecs * 1000, nowMs })
      const streams = new OpenStreams(streamViews)
      const admit: MultiStreamParts["admit"] = (view, token, grant) => permissionFor(tokens, grant, view, token)
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
      return Browsers.of({
        tokens,
        streams,
        open: ({ format = "rows", views }, grant, sink) => {
          const stream = streams.open(views, grant, { admit, follow: source(format) }, sink)
          return { drained: stream.drained, gone: () => streams.gone(stream) }
        },
        revoke: (subject) => {
          tokens.revoke(subject)
          streams.revoke(subject)
        }
      })
    })
}
