/**
 * The stream of one view (D11): recent deltas, kept once for all followers, and each follower's position.
 *
 * A feed exists from the view's first stream on, so that views without a stream buffer nothing. A follower is a
 * position in the buffer: a change is given to those that keep up, and costs nothing for the others. A follower that
 * falls out of the buffer gets `end` with `behind`; its client comes back with `Last-Event-ID` and gets a snapshot.
 */
import { firstWhere } from "../../core/bisect.ts"
import { bytesOf, endEvent, type isLast, type ViewEvent } from "./viewEvent.ts"

interface Numbered {
  /** Number of the event before this one. */
  readonly from: number
  readonly n: number
  readonly event: ViewEvent
}

/** Receiver of a follower's events. */
export interface EventReceiver {
  /**
   * Takes events; false: no more until {@link Follower.resume}. Followers at the same position get the same array. The
   * last event satisfies {@link isLast}.
   */
  readonly take: (events: ReadonlyArray<ViewEvent>) => boolean
}

/** A stream that is being followed, perhaps not yet begun. */
export interface Subscription {
  /** Lets the receiver get events; it gets none before the first call. */
  readonly resume: () => void
  readonly close: () => void
}

/** Approximate size of one piece, in bytes; a piece has at least one event. */
const pieceBytes = 32_768

/** The events between two positions of the buffer. */
interface Piece {
  readonly from: number
  readonly to: number
  readonly events: ReadonlyArray<ViewEvent>
}

export class Follower {
  private told = 0
  isDone = false
  /** Whether the receiver accepts events now. */
  isReady = false

  constructor(
    private readonly feed: Feed,
    readonly receiver: EventReceiver,
    /** Events before those of the buffer: a snapshot. */
    private readonly first: ReadonlyArray<ViewEvent>,
    /** Number of the next delta it gets, counted from the feed's first delta. */
    public at: number
  ) {}

  /** The next event of the snapshot; undefined behind the last. */
  nextOfFirst(): ViewEvent | undefined {
    return this.first[this.told++]
  }

  /** Gives the receiver events again. */
  resume(): void {
    this.feed.resume(this)
  }

  /** Removes the follower from the feed. */
  close(): void {
    this.feed.drop(this)
  }
}

export class Feed {
  /** The last `capacity` deltas; delta number i is at i modulo `capacity`. */
  private readonly recent: Array<Numbered> = []
  private pushed = 0
  private followers = 0
  /** Followers whose connection takes more bytes now. */
  private readonly ready = new Set<Follower>()
  private piece: Piece | undefined = undefined
  private ended: ViewEvent | undefined = undefined

  constructor(
    private readonly capacity: number,
    /** Requests a later {@link flush}. */
    private readonly soon: (feed: Feed) => void
  ) {}

  get listening(): number {
    return this.followers
  }

  /** `from`: number of the event before it. */
  push(from: number, n: number, event: ViewEvent): void {
    this.recent[this.pushed % this.capacity] = { from, n, event }
    this.pushed++
    if (this.ready.size > 0) this.soon(this)
  }

  /**
   * Position of the first delta after number `n`; undefined if some of them are no longer buffered, or no event had
   * that number. `current`: number of the last event.
   */
  after(n: number, current: number): number | undefined {
    if (n === current) return this.pushed
    const { oldest, pushed } = this
    if (pushed === 0 || this.delta(pushed - 1).n !== current) return undefined
    const at = oldest + firstWhere(pushed - oldest, (i) => this.delta(oldest + i).from >= n)
    return at < pushed && this.delta(at).from === n ? at : undefined
  }

  /**
   * Adds a follower at the end, after `first`, or at a position that {@link after} gave. It gets nothing until it
   * resumes.
   */
  listen(receiver: EventReceiver, first: ReadonlyArray<ViewEvent>, at: number = this.pushed): Follower {
    const follower = new Follower(this, receiver, first, at)
    this.followers++
    return follower
  }

  resume(follower: Follower): void {
    if (follower.isDone) return
    follower.isReady = true
    this.ready.add(follower)
    this.give(follower)
  }

  drop(follower: Follower): void {
    if (follower.isDone) return
    follower.isDone = true
    this.followers--
    this.ready.delete(follower)
  }

  /** Ends the feed: every follower gets its buffered deltas, then `last`. */
  end(last: ViewEvent): void {
    this.ended ??= last
    this.flush()
  }

  /** Gives buffered events to the followers that are ready. */
  flush(): void {
    for (const follower of this.ready) this.give(follower)
    this.piece = undefined
  }

  private give(follower: Follower): void {
    while (follower.isReady && !follower.isDone) {
      const events = this.next(follower)
      if (events === undefined) return
      if (!follower.receiver.take(events)) {
        follower.isReady = false
        this.ready.delete(follower)
      }
    }
  }

  private get oldest(): number {
    return Math.max(0, this.pushed - this.capacity)
  }

  private delta(at: number): Numbered {
    return this.recent[at % this.capacity]!
  }

  private next(follower: Follower): ReadonlyArray<ViewEvent> | undefined {
    const { at } = follower
    const first = follower.nextOfFirst()
    if (first !== undefined) return [first]
    if (at < this.oldest) return this.last(follower, endEvent("behind"))
    if (at === this.pushed) return this.ended && this.last(follower, this.ended)
    if (this.piece?.from !== at) this.piece = this.cut(at)
    follower.at = this.piece.to
    return this.piece.events
  }

  private cut(from: number): Piece {
    const events: Array<ViewEvent> = []
    let to = from
    for (let bytes = 0; to < this.pushed && bytes < pieceBytes; to++) {
      const { event } = this.delta(to)
      bytes += bytesOf(event).length
      events.push(event)
    }
    return { from, to, events }
  }

  private last(follower: Follower, end: ViewEvent): ReadonlyArray<ViewEvent> {
    this.drop(follower)
    return [end]
  }
}
