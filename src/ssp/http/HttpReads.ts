/**
 * `GET /view/:view_id` and `GET /view/:view_id/stream` by callback, for the server's hot reads.
 *
 * Why no Effect inside: what goes out to followers is what a live query is for, and a fiber per stream costs twenty
 * times its bytes. Only what succeeds is answered here; whatever is refused, odd or unknown is left to the declared
 * route, so that there is one answer to each.
 */
import { Effect, Layer } from "effect"
import { heartbeat, heartbeatEvery, streamHeaders } from "../../node/streams/sse.ts"
import { HotReads, type ReadAsked, type ReadReply, Serving, type Sink } from "../../ports/Front.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import * as ResultTag from "../views/resultTag.ts"
import * as EventBytes from "../views/streams/eventBytes.ts"
import type { Following } from "../views/streams/pulled.ts"
import { Views } from "../views/Views.ts"
import type { Format, StreamFormat, ViewEvent } from "../views/viewTypes.ts"
import * as Guards from "./HttpGuards.ts"
import { opening, shutdown } from "./HttpStream.ts"

type Target =
  | { readonly id: string; readonly isStream: true; readonly format: StreamFormat | undefined }
  | { readonly id: string; readonly isStream: false; readonly format: Format | undefined }

const shape = /^\/view\/([^/?#]+)(\/stream)?(?:\?format=(flat|tree|streaming|rows))?$/

/** Undefined for every path and query that needs a second look. */
const targetOf = (url: string): Target | undefined => {
  const [, written, stream, named] = shape.exec(url) ?? []
  if (written === undefined) return undefined
  const format = named as StreamFormat | undefined
  try {
    const id = decodeURIComponent(written)
    if (stream !== undefined) return { id, isStream: true, format }
    return format === "rows" ? undefined : { id, isStream: false, format }
  } catch {
    return undefined
  }
}

/** A stream that is open: a view's follower, and the client it writes to. */
class OpenStream {
  private readonly all: Set<OpenStream>
  private following: Following | undefined
  private sink: Sink | undefined
  /** Whether the client has taken what it was given. */
  private keepsUp = true

  constructor(all: Set<OpenStream>) {
    this.all = all
  }

  /** False where there is nothing to follow. */
  follow(views: Pick<Views["Type"], "follow">, { format, id }: Target, asked: ReadAsked, reply: ReadReply): boolean {
    this.following = views.follow(id, format, asked.lastEventId, this)
    if (this.following === undefined) return false
    this.all.add(this)
    this.sink = reply.stream(streamHeaders, this)
    this.sink.write(opening)
    this.following.resume()
    return true
  }

  take(events: ReadonlyArray<ViewEvent>): boolean {
    this.keepsUp = this.sink!.write(EventBytes.joined(events))
    if (events[events.length - 1]!.event === "end") this.end()
    return this.keepsUp
  }

  readonly drained = (): void => {
    this.keepsUp = true
    this.following?.resume()
  }

  readonly gone = (): void => {
    this.all.delete(this)
    this.following?.close()
  }

  /** For a client that waits for it: one that does not take its bytes needs no more behind them. */
  beat(): void {
    if (this.keepsUp) this.keepsUp = this.sink!.write(heartbeat)
  }

  stop(): void {
    this.sink!.write(EventBytes.bytesOf(shutdown))
    this.end()
  }

  private end(): void {
    this.gone()
    this.sink!.end()
  }
}

export const layer: Layer.Layer<HotReads, never, Views | Lifecycle | SspConfig | Serving> = Layer.scoped(
  HotReads,
  Effect.gen(function* () {
    const views = yield* Views
    const lifecycle = yield* Lifecycle
    const { stopping } = yield* Serving
    const judge = Guards.judgeOf(yield* SspConfig)
    const scope = scopeOf(SspApi, "GET /view/:view_id")
    const all = new Set<OpenStream>()
    yield* Serving.fork(
      Effect.forever(
        Effect.delay(
          Effect.sync(() => all.forEach((stream) => stream.beat())),
          heartbeatEvery
        )
      )
    )
    yield* Serving.fork(Effect.andThen(stopping, () => [...all].forEach((stream) => stream.stop())))
    return (asked, reply) => {
      const target = targetOf(asked.url)
      if (target === undefined || Guards.notTaking(lifecycle, asked.registration) !== undefined) return false
      if (!("caller" in judge(asked.authorization, scope))) return false
      if (target.isStream) return new OpenStream(all).follow(views, target, asked, reply)
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
