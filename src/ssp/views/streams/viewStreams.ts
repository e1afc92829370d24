/**
 * The event streams of the views (D11): the listeners of each view, what a new listener gets first, what every change
 * tells them.
 */
import { Effect, Stream } from "effect"
import type { Turn } from "../../../ports/Turn.ts"
import type { AppliedChange } from "../committer.ts"
import type { Reading, Snapshot } from "../reading.ts"
import { formatOf, generationOf, type Registered, type Registry } from "../registry.ts"
import type { StreamLimits } from "../viewLimits.ts"
import {
  type EndReason,
  type Format,
  Overloaded,
  type ViewEvent,
  type ViewNotFound,
  type ViewQuarantined
} from "../viewTypes.ts"
import { bytesOf } from "./eventBytes.ts"
import type { Feed, Follower, Taker } from "./feed.ts"
import { type Following, streamOf } from "./pulled.ts"

type Find = Effect.Effect<Registered, ViewNotFound | ViewQuarantined>

const ended = (reason: EndReason): Stream.Stream<ViewEvent> =>
  Stream.make<[ViewEvent]>({ event: "end", id: undefined, data: { reason } })

/** A snapshot that takes no more is kept for the next follower. */
const keptBytes = 65_536

/** The snapshot of a feed that was made last, while it is what the view shows. */
interface Kept {
  readonly id: string
  readonly format: Format
  readonly hash: string
  readonly snapshot: Snapshot
}

export class ViewStreams {
  private readonly registry: Registry
  private readonly reading: Reading
  private readonly limits: StreamLimits
  private readonly turn: Turn["Type"]
  private readonly kept = new WeakMap<Feed, Kept>()
  /** Feeds that have something to give in the next turn. */
  private due = new Set<Feed>()
  private streams = 0

  constructor(registry: Registry, reading: Reading, limits: StreamLimits, turn: Turn["Type"]) {
    this.registry = registry
    this.reading = reading
    this.limits = limits
    this.turn = turn
  }

  /** Streams that are open. */
  get count(): number {
    return this.streams
  }

  /** Why no stream is opened now. */
  get full(): Overloaded | undefined {
    return this.streams < this.limits.maxStreams
      ? undefined
      : new Overloaded({
          message: `${this.streams} streams are open, the limit is ${this.limits.maxStreams} (SVC_MAX_STREAMS)`,
          retryAfterSecs: 5
        })
  }

  open(
    find: Find,
    id: string,
    format: Format | undefined,
    lastEventId: string | undefined
  ): Effect.Effect<Stream.Stream<ViewEvent>, ViewNotFound | Overloaded> {
    return Effect.flatMap(find, () => {
      const { full } = this
      if (full !== undefined) return Effect.fail(full)
      const stream = Effect.map(find, (view) => streamOf((taker) => this.follow(view, id, format, lastEventId, taker)))
      return Effect.succeed(Stream.unwrap(Effect.catchAll(stream, () => Effect.succeed(ended("unregistered")))))
    }).pipe(Effect.catchTag("ViewQuarantined", () => Effect.succeed(ended("quarantined"))))
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

  /** Follows from now on: the first event is a snapshot, or the delta after `lastEventId`. */
  follow(
    view: Registered,
    id: string,
    format: Format | undefined,
    lastEventId: string | undefined,
    taker: Taker
  ): Following {
    this.streams++
    // From here on deltas are buffered, those that come while the snapshot is made too.
    const feed = this.registry.feedOf(view, this.limits.streamBuffer, this.soon)
    const shape = format ?? formatOf(view)
    const missed = missedBy(view, feed, lastEventId)
    let follower: Follower | undefined
    let isClosed = false
    let isAsked = false
    const listen = (opened: Follower): void => {
      follower = opened
      if (isAsked) opened.resume()
    }
    let abandon: (() => void) | undefined
    if (missed !== undefined) listen(feed.listen(taker, undefined, missed))
    else
      abandon = this.snapshot(view, feed, id, shape, (made) => {
        if (!isClosed) listen(this.begin(view, feed, id, shape, made, taker))
      })
    return {
      resume: () => {
        isAsked = true
        follower?.resume()
      },
      close: () => {
        if (isClosed) return
        isClosed = true
        this.streams--
        abandon?.()
        follower?.close()
      }
    }
  }

  /** Has feeds give what they have in the next turn: what one batch changes goes out in one piece. */
  private readonly soon = (feed: Feed): void => {
    const isDue = this.due.size > 0
    this.due.add(feed)
    if (isDue) return
    this.turn.next(() => {
      const { due } = this
      this.due = new Set()
      for (const each of due) each.flush()
    })
  }

  private snapshot(
    view: Registered,
    feed: Feed,
    id: string,
    format: Format,
    done: (made: Snapshot | undefined) => void
  ): (() => void) | undefined {
    const { instance } = view
    const kept = this.kept.get(feed)
    if (
      kept?.id === id &&
      kept.format === format &&
      kept.snapshot.generation === generationOf(view) &&
      kept.hash === instance.hash() &&
      instance.errors().length === 0
    ) {
      done(kept.snapshot)
      return undefined
    }
    return this.reading.snapshot(view, id, format, (made) => {
      if (made?.hasNoErrors === true && bytesOf(made.event).length <= keptBytes)
        this.kept.set(feed, { id, format, hash: made.hash, snapshot: made })
      done(made)
    })
  }

  /** Gets the snapshot that was made and the deltas since; a snapshot of now where those are not buffered any more. */
  private begin(
    view: Registered,
    feed: Feed,
    id: string,
    format: Format,
    made: Snapshot | undefined,
    taker: Taker
  ): Follower {
    const at = made === undefined ? undefined : feed.after(made.generation, generationOf(view))
    if (made !== undefined && at !== undefined) return feed.listen(taker, made.event, at)
    const data = this.registry.answer(view, id, format)
    return feed.listen(taker, { event: "snapshot", id: `${view.incarnation}.${data.content_generation}`, data })
  }
}

/** Where the deltas begin that a client which comes back has missed; undefined where it needs a snapshot. */
const missedBy = (view: Registered, feed: Feed, lastEventId: string | undefined): number | undefined => {
  const [incarnation, n] = lastEventId?.split(".") ?? []
  return incarnation === view.incarnation && n !== undefined && /^\d+$/.test(n)
    ? feed.after(Number(n), generationOf(view))
    : undefined
}
