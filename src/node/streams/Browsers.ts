/**
 * What browsers get at views with, beyond the routes of a single view: tokens, and streams of several views (D49, D50).
 *
 * Shared by both servers, which differ in where the events of a view come from.
 */
import { Context, Effect } from "effect"
import type { KnownSecret } from "../../core/access/scopedSecrets.ts"
import type { ViewGrant } from "../../core/access/viewToken.ts"
import { Serving, type Sink, type SinkEvents } from "../../ports/Front.ts"
import { permissionFor, ViewTokens } from "../http/viewTokens.ts"
import type { AskedView, MultiStreamParts } from "./multiStream.ts"
import { OpenStreams } from "./openStreams.ts"
import { heartbeatEvery, type StreamFormat } from "./sse.ts"

/** A stream of several views that is asked for. */
interface Opening {
  readonly views: ReadonlyArray<AskedView>
  readonly format?: StreamFormat | undefined
}

interface BrowsersParts {
  /** Secrets that sign tokens, and let a caller in. */
  readonly secrets: () => ReadonlyArray<KnownSecret>
  readonly viewTokenTtlSecs: number
  /** Most views of a stream, and of a token. */
  readonly streamViews: number
  /** Where the events of a stream in this format come from. */
  readonly source: (format: StreamFormat) => MultiStreamParts["follow"]
}

export interface BrowsersShape {
  readonly tokens: ViewTokens
  readonly streams: OpenStreams
  /**
   * Writes to the sink from now on, for a caller with this grant or a secret; answers what the sink calls. The views
   * are ones that {@link OpenStreams.refusal} lets in.
   */
  readonly open: (opening: Opening, grant: ViewGrant | undefined, sink: Sink) => SinkEvents
  /** Tokens of the subject open nothing more. */
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
