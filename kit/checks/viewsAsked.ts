/** A `Views` service asked as effects, and its streams pulled, for tests that run many of both in one program. */
import { Chunk, Effect, Option, Stream } from "effect"
import type { Change } from "../../src/core/record/change.ts"
import type { EventReceiver, Subscription } from "../../src/node/streams/feed.ts"
import { endEvent, type ViewEvent } from "../../src/node/streams/viewEvent.ts"
import type { Views } from "../../src/ssp/views/Views.ts"
import type { IngestAnswer, IngestError, Overloaded, StreamFormat, ViewNotFound } from "../../src/ssp/viewTypes.ts"

export const ingest = (
  views: Pick<Views["Type"], "ingest">,
  changes: ReadonlyArray<Change>
): Effect.Effect<IngestAnswer, IngestError> =>
  Effect.async((resume) =>
    views.ingest(changes, (answer) => resume("_tag" in answer ? Effect.fail(answer) : Effect.succeed(answer)))
  )

type Pull = Effect.Effect<Chunk.Chunk<ViewEvent>, Option.Option<never>>

class Pulled implements EventReceiver {
  private following: Subscription | undefined
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

  begin(follow: (taker: EventReceiver) => Subscription): void {
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

/** What a follower is given. Begins to listen when it is first pulled. */
export const pulledOf = (follow: (taker: EventReceiver) => Subscription): Stream.Stream<ViewEvent> =>
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

const nothing: Subscription = { resume: () => {}, close: () => {} }

const gone: (taker: EventReceiver) => Subscription = (taker) => ({
  ...nothing,
  resume: () => void taker.take([endEvent("unregistered")])
})

/** The events of a view, once no registration of it is on its way. */
export const streamOf = (
  views: Pick<Views["Type"], "follow" | "refusal" | "whenSettled">,
  id: string,
  format: StreamFormat | undefined,
  lastEventId: string | undefined
): Effect.Effect<Stream.Stream<ViewEvent>, ViewNotFound | Overloaded> =>
  Effect.async((resume) => {
    const begin = (): void => {
      if (views.whenSettled(id, begin)) return
      const refused = views.refusal(id)
      if (refused?._tag === "ViewQuarantined") return resume(Effect.succeed(Stream.make(endEvent("quarantined"))))
      if (refused !== undefined) return resume(Effect.fail(refused))
      const follow = (taker: EventReceiver): Subscription => views.follow(id, format, lastEventId, taker) ?? gone(taker)
      resume(Effect.succeed(pulledOf(follow)))
    }
    begin()
  })
