/**
 * The streams of one view each that are open on one process, by callback: a follower, and the client it writes to.
 */
import { Effect } from "effect"
import { type ReadReply, Serving, type Sink } from "../../ports/Front.ts"
import type { Following, Taker } from "./feed.ts"
import { heartbeat, heartbeatEvery, opening, streamHeaders } from "./sse.ts"
import { bytesOf, endOf, isLast, joined, type ViewEvent } from "./viewEvent.ts"

class SingleStream implements Taker {
  private following: Following | undefined
  private sink: Sink | undefined
  /** Whether the client has taken what it was given. */
  private keepsUp = true

  constructor(private readonly all: Set<SingleStream>) {}

  follow(follow: (taker: Taker) => Following | undefined, reply: Pick<ReadReply, "stream">): boolean {
    this.following = follow(this)
    if (this.following === undefined) return false
    this.all.add(this)
    this.sink = reply.stream(streamHeaders, this)
    this.sink.write(opening)
    this.following.resume()
    return true
  }

  take(events: ReadonlyArray<ViewEvent>): boolean {
    this.keepsUp = this.sink!.write(joined(events))
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

  /** For a client that waits for it: one that does not take its bytes needs no more behind them. */
  beat(): void {
    if (this.keepsUp) this.keepsUp = this.sink!.write(heartbeat)
  }

  stop(): void {
    this.sink!.write(bytesOf(endOf("shutdown")))
    this.end()
  }

  private end(): void {
    this.gone()
    this.sink!.end()
  }
}

export class SingleStreams {
  private readonly all = new Set<SingleStream>()

  /** Beats for all of them, and ends them when the service stops. */
  static readonly make = Effect.gen(function* () {
    const { stopping } = yield* Serving
    const streams = new SingleStreams()
    const beat = Effect.sync(() => streams.beat())
    yield* Serving.fork(Effect.forever(Effect.delay(beat, heartbeatEvery)))
    yield* Serving.fork(Effect.andThen(stopping, () => streams.stop()))
    return streams
  })

  /** Answers with the events of what `follow` gives; false where that is nothing, and nothing was answered. */
  open(follow: (taker: Taker) => Following | undefined, reply: Pick<ReadReply, "stream">): boolean {
    return new SingleStream(this.all).follow(follow, reply)
  }

  private beat(): void {
    for (const stream of this.all) stream.beat()
  }

  private stop(): void {
    for (const stream of [...this.all]) stream.stop()
  }
}
