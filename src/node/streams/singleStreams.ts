/**
 * The open streams of one view each on one process: a follower, and the client it writes to.
 */
import { Effect, Runtime } from "effect"
import { type BodySink, type Reply, Serving } from "../../ports/Front.ts"
import type { EventReceiver, Subscription } from "./feed.ts"
import { heartbeat, heartbeatEvery, openingComment, streamHeaders } from "./sse.ts"
import { bytesOf, type EndReason, endEvent, isLast, joinEvents, type ViewEvent } from "./viewEvent.ts"

class SingleStream implements EventReceiver {
  private following: Subscription | undefined
  private sink: BodySink | undefined
  /** Whether the client has taken all bytes. */
  private keepsUp = true

  constructor(private readonly all: Set<SingleStream>) {}

  follow(follow: (receiver: EventReceiver) => Subscription | undefined, reply: Pick<Reply, "stream">): boolean {
    this.following = follow(this)
    if (this.following === undefined) return false
    this.all.add(this)
    this.sink = reply.stream(streamHeaders, this)
    this.keepsUp = this.sink.write(openingComment)
    if (this.keepsUp) this.following.resume()
    return true
  }

  /** Ends the stream before its events do. */
  cut(reason: EndReason): void {
    if (!this.all.has(this)) return
    this.sink!.write(bytesOf(endEvent(reason)))
    this.end()
  }

  take(events: ReadonlyArray<ViewEvent>): boolean {
    this.keepsUp = this.sink!.write(joinEvents(events))
    if (isLast(events[events.length - 1]!)) this.end()
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

  /** Writes a heartbeat, unless the client still has bytes to take. */
  beat(): void {
    if (this.keepsUp) this.keepsUp = this.sink!.write(heartbeat)
  }

  private end(): void {
    this.gone()
    this.sink!.end()
  }
}

export class SingleStreams {
  private readonly all = new Set<SingleStream>()

  constructor(private readonly runFork: <A>(effect: Effect.Effect<A>) => ReturnType<typeof Effect.runFork<A, never>>) {}

  /** Streams with heartbeats, which end when the service stops. */
  static readonly make = Effect.gen(function* () {
    const { stopping } = yield* Serving
    const streams = new SingleStreams(Runtime.runFork(yield* Effect.runtime<never>()))
    const beat = Effect.sync(() => streams.beat())
    yield* Serving.fork(Effect.forever(Effect.delay(beat, heartbeatEvery)))
    yield* Serving.fork(Effect.andThen(stopping, () => streams.stop()))
    return streams
  })

  /**
   * Answers with a stream of the events that `follow` gives; false if it gives none, and nothing was answered. `over`:
   * a reason to end earlier.
   */
  open(
    follow: (receiver: EventReceiver) => Subscription | undefined,
    reply: Pick<Reply, "stream" | "whenGone">,
    over?: Effect.Effect<EndReason>
  ): boolean {
    const stream = new SingleStream(this.all)
    if (!stream.follow(follow, reply)) return false
    if (over !== undefined) {
      const waiting = this.runFork(Effect.map(over, (reason) => stream.cut(reason)))
      reply.whenGone(() => waiting.unsafeInterruptAsFork(waiting.id()))
    }
    return true
  }

  /** Answers with one `end` event that tells why there is nothing to follow. */
  ended(reason: EndReason, reply: Pick<Reply, "stream">): void {
    const sink = reply.stream(streamHeaders, { drained: () => {}, gone: () => {} })
    sink.write(openingComment)
    sink.write(bytesOf(endEvent(reason)))
    sink.end()
  }

  private beat(): void {
    for (const stream of this.all) stream.beat()
  }

  private stop(): void {
    for (const stream of [...this.all]) stream.cut("shutdown")
  }
}
