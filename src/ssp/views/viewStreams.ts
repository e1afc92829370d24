/**
 * The event streams of the views (D11): the listeners of each view, what a new listener gets first, what every change
 * tells them.
 */
import { Effect, type Scope, Stream } from "effect"
import type { AppliedChange } from "./committer.ts"
import type { Feed, Follower } from "./feed.ts"
import type { Reading, Snapshot } from "./reading.ts"
import { formatOf, generationOf, type Registered, type Registry } from "./registry.ts"
import type { StreamLimits } from "./viewLimits.ts"
import {
  type EndReason,
  type Format,
  Overloaded,
  type ViewEvent,
  type ViewNotFound,
  type ViewQuarantined
} from "./viewTypes.ts"

type Find = Effect.Effect<Registered, ViewNotFound | ViewQuarantined>

const ended = (reason: EndReason): Stream.Stream<ViewEvent> =>
  Stream.make<[ViewEvent]>({ event: "end", id: undefined, data: { reason } })

export class ViewStreams {
  private readonly registry: Registry
  private readonly reading: Reading
  private readonly limits: StreamLimits
  private streams = 0

  constructor(registry: Registry, reading: Reading, limits: StreamLimits) {
    this.registry = registry
    this.reading = reading
    this.limits = limits
  }

  /** Streams that are open. */
  get count(): number {
    return this.streams
  }

  open(
    find: Find,
    id: string,
    format: Format | undefined,
    lastEventId: string | undefined
  ): Effect.Effect<Stream.Stream<ViewEvent>, ViewNotFound | Overloaded> {
    return Effect.flatMap(find, () =>
      this.streams < this.limits.maxStreams
        ? Effect.succeed(Stream.unwrapScoped(this.listen(find, id, format, lastEventId)))
        : Effect.fail(
            new Overloaded({
              message: `${this.streams} streams are open, the limit is ${this.limits.maxStreams} (SVC_MAX_STREAMS)`,
              retryAfterSecs: 5
            })
          )
    ).pipe(Effect.catchTag("ViewQuarantined", () => Effect.succeed(ended("quarantined"))))
  }

  publish(applied: ReadonlyArray<AppliedChange>): void {
    for (const { touched, seq } of applied) {
      for (const { view: instance, delta, generation, hash } of touched) {
        for (const view of this.registry.streaming(instance)) {
          const n = generation + view.generationOffset
          view.feed?.push(n, {
            event: "delta",
            id: `${view.incarnation}.${n}`,
            data: { seq, ...delta, result_hash: hash }
          })
        }
      }
    }
  }

  /** Begins to listen when the stream is first pulled, so that a stream that is never pulled holds nothing. */
  private listen(
    find: Find,
    id: string,
    format: Format | undefined,
    lastEventId: string | undefined
  ): Effect.Effect<Stream.Stream<ViewEvent>, never, Scope.Scope> {
    return Effect.gen(this, function* () {
      const view = yield* Effect.option(find)
      if (view._tag === "None") return ended("unregistered")
      // From here on deltas are buffered, those that come while the snapshot is made too.
      const feed = this.registry.feedOf(view.value, this.limits.streamBuffer)
      const shape = format ?? formatOf(view.value)
      const missed = missedBy(view.value, feed, lastEventId)
      const made = missed === undefined ? yield* this.reading.snapshot(view.value, id, shape) : undefined
      const follower = yield* Effect.acquireRelease(
        Effect.sync(() => {
          this.streams++
          return missed === undefined ? this.follow(view.value, feed, id, shape, made) : feed.listen(undefined, missed)
        }),
        (opened) =>
          Effect.sync(() => {
            this.streams--
            feed.drop(opened)
          })
      )
      return Stream.repeatEffectChunkOption(feed.take(follower))
    })
  }

  /** Gets the snapshot that was made and the deltas since; a snapshot of now where those are not buffered any more. */
  private follow(view: Registered, feed: Feed, id: string, format: Format, made: Snapshot | undefined): Follower {
    const at = made === undefined ? undefined : feed.after(made.generation, generationOf(view))
    if (made !== undefined && at !== undefined) return feed.listen(made.event, at)
    const data = this.registry.answer(view, id, format)
    return feed.listen({ event: "snapshot", id: `${view.incarnation}.${data.content_generation}`, data })
  }
}

/** Where the deltas begin that a client which comes back has missed; undefined where it needs a snapshot. */
const missedBy = (view: Registered, feed: Feed, lastEventId: string | undefined): number | undefined => {
  const [incarnation, n] = lastEventId?.split(".") ?? []
  return incarnation === view.incarnation && n !== undefined && /^\d+$/.test(n)
    ? feed.after(Number(n), generationOf(view))
    : undefined
}
