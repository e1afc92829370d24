/**
 * A view's events as an Effect stream: for routes and tests that pull, where the server's own stream is by callback.
 *
 * Begins to listen when it is first pulled, so that a stream that is never pulled holds nothing.
 */
import { Chunk, Effect, Option, Stream } from "effect"
import type { Following, Taker } from "../../../node/streams/feed.ts"
import type { ViewEvent } from "../../../node/streams/viewEvent.ts"

type Pull = Effect.Effect<Chunk.Chunk<ViewEvent>, Option.Option<never>>

class Pulled implements Taker {
  private following: Following | undefined
  /** There while something is waited for. */
  private waiting: ((pull: Pull) => void) | undefined
  private isOver = false

  take(events: ReadonlyArray<ViewEvent>): boolean {
    this.isOver = events.some(({ event }) => event === "end")
    const { waiting } = this
    this.waiting = undefined
    waiting?.(Effect.succeed(Chunk.fromIterable(events)))
    return false
  }

  begin(follow: (taker: Taker) => Following): void {
    this.following = follow(this)
  }

  close(): void {
    this.following?.close()
  }

  get next(): Pull {
    return Effect.suspend(() =>
      this.isOver
        ? Effect.fail(Option.none())
        : Effect.async((resume) => {
            this.waiting = resume
            this.following?.resume()
          })
    )
  }
}

export const streamOf = (follow: (taker: Taker) => Following): Stream.Stream<ViewEvent> =>
  Stream.unwrapScoped(
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const pulled = new Pulled()
          pulled.begin(follow)
          return pulled
        }),
        (pulled) => Effect.sync(() => pulled.close())
      ),
      (pulled) => Stream.repeatEffectChunkOption(pulled.next)
    )
  )
