/**
 * Event streams of the views (D11): followers of each view, their first event, and the deltas of every change.
 */

import { Duration, Effect } from "effect"
import { drain } from "../../../core/surql/evaluate/scope.ts"
import type { EventReceiver, Feed, Follower, Subscription } from "../../../node/streams/feed.ts"
import { bytesOf, type EndReason, endEvent } from "../../../node/streams/viewEvent.ts"
import type { Turn } from "../../../ports/Turn.ts"
import { type Format, Overloaded, type StreamFormat } from "../../viewTypes.ts"
import { snapshotEvent } from "../answerBytes.ts"
import type { AppliedChange } from "../committer.ts"
import type { ResultReader, SnapshotEvent } from "../reading.ts"
import { answerOf, formatOf, generationOf, type RegisteredView, type Registry, resumePosition } from "../registry.ts"
import type { StreamLimits } from "../viewLimits.ts"
import { RowStreams, type RowStreamsParts } from "./rowStreams.ts"

/** A snapshot of at most this size is kept for the next follower. */
const keptBytes = 65_536

/** The last snapshot of a feed, valid while it equals the view's result. */
interface CachedSnapshot {
  readonly id: string
  readonly format: Format
  readonly hash: string
  readonly snapshot: SnapshotEvent
}

/** Pause between two sweeps of rows without a stream. */
const sweepEvery = Duration.seconds(15)

interface ViewStreamsParts extends RowStreamsParts {
  readonly reading: ResultReader
}

export class ViewStreams {
  private readonly registry: Registry
  private readonly reading: ResultReader
  private readonly limits: StreamLimits
  private readonly turn: Turn["Type"]
  private readonly rows: RowStreams
  private readonly kept = new WeakMap<Feed, CachedSnapshot>()
  /** Feeds that flush in the next turn. */
  private due = new Set<Feed>()
  private streams = 0
  /** Drops rows that no stream has followed for a while, again and again. */
  readonly sweeping: Effect.Effect<never>

  constructor(parts: ViewStreamsParts) {
    this.registry = parts.registry
    this.reading = parts.reading
    this.limits = parts.limits
    this.turn = parts.turn
    this.rows = new RowStreams(parts)
    this.sweeping = Effect.forever(
      Effect.delay(
        Effect.sync(() => this.rows.sweep()),
        sweepEvery
      )
    )
  }

  /** Number of open streams. */
  get count(): number {
    return this.streams
  }

  get streamedChars(): number {
    return this.rows.chars
  }

  /** Why no stream can be opened now; undefined if one can. */
  get full(): Overloaded | undefined {
    return this.streams < this.limits.maxStreams
      ? undefined
      : new Overloaded({
          message: `${this.streams} streams are open, the limit is ${this.limits.maxStreams} (SVC_MAX_STREAMS)`,
          retryAfterSecs: 5
        })
  }

  publish(applied: ReadonlyArray<AppliedChange>): void {
    this.registry.moved = true
    for (const { touched, seq } of applied) {
      for (const one of touched) {
        const { view: instance, delta, generation, hash } = one
        this.rows.note(one)
        for (const view of this.registry.streaming(instance)) {
          const n = generation + view.generationOffset
          view.feed?.push(n - 1, n, {
            event: "delta",
            id: `${view.incarnation}.${n}`,
            data: { seq, ...delta, result_hash: hash }
          })
        }
      }
    }
  }

  /** Follows a view: the first event is a snapshot, or the delta after `lastEventId`. */
  follow(
    view: RegisteredView,
    id: string,
    format: StreamFormat | undefined,
    lastEventId: string | undefined,
    receiver: EventReceiver
  ): Subscription {
    this.streams++
    const { close, resume } =
      format === "rows"
        ? this.rows.follow(view, id, lastEventId, receiver)
        : this.followEntries(view, id, format, lastEventId, receiver)
    let isClosed = false
    return {
      resume,
      close: () => {
        if (isClosed) return
        isClosed = true
        this.streams--
        close()
      }
    }
  }

  /** Ends the streams of a view that is removed. */
  end(view: RegisteredView, reason: EndReason): void {
    view.feed?.end(endEvent(reason))
    this.rows.end(view, reason)
  }

  /** Follows in format `flat` or `tree`. */
  private followEntries(
    view: RegisteredView,
    id: string,
    format: Format | undefined,
    lastEventId: string | undefined,
    receiver: EventReceiver
  ): Subscription {
    // Deltas are buffered from here on, also those that come while the snapshot is made.
    const feed = this.registry.feedOf(view, this.limits.streamBuffer, this.soon)
    const shape = format ?? formatOf(view)
    const missed = resumePosition(view, feed, generationOf(view), lastEventId)
    let follower: Follower | undefined
    let isClosed = false
    let isAsked = false
    const listen = (opened: Follower): void => {
      follower = opened
      if (isAsked) opened.resume()
    }
    let abandon: (() => void) | undefined
    if (missed !== undefined) listen(feed.listen(receiver, [], missed))
    else
      abandon = this.snapshot(view, feed, id, shape, (made) => {
        if (!isClosed) listen(this.begin(view, feed, id, shape, made, receiver))
      })
    return {
      resume: () => {
        isAsked = true
        follower?.resume()
      },
      close: () => {
        isClosed = true
        abandon?.()
        follower?.close()
      }
    }
  }

  /** Flushes feeds in the next turn, so that the changes of one batch go out together. */
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
    view: RegisteredView,
    feed: Feed,
    id: string,
    format: Format,
    done: (made: SnapshotEvent | undefined) => void
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

  /** Begins with the snapshot and the deltas since; with a new snapshot if those are no longer buffered. */
  private begin(
    view: RegisteredView,
    feed: Feed,
    id: string,
    format: Format,
    made: SnapshotEvent | undefined,
    receiver: EventReceiver
  ): Follower {
    const at = made === undefined ? undefined : feed.after(made.generation, generationOf(view))
    if (made !== undefined && at !== undefined) return feed.listen(receiver, [made.event], at)
    const answer = answerOf(view, id, this.registry.shown(view.instance, format))
    return feed.listen(receiver, [drain(snapshotEvent(`${view.incarnation}.${answer.content_generation}`, answer))])
  }
}
