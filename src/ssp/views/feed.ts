/**
 * The stream of one view (D11): recent deltas kept once for all followers, and the position of each.
 *
 * A feed exists from the first stream of a view on, so that views without a stream buffer nothing. A client is a
 * position in the one buffer: a change wakes the clients that have read everything, and costs nothing for the others.
 * One that falls out of the buffer is told `end`, `behind`; it comes back with `Last-Event-ID` and gets a snapshot.
 */
import { Chunk, Effect, Option } from "effect"
import { bytesOf } from "./eventBytes.ts"
import type { EndReason, ViewEvent } from "./viewTypes.ts"

interface Numbered {
  readonly n: number
  readonly event: ViewEvent
}

/** About as much goes out in one piece; at least one event. */
const pieceBytes = 32_768

const endOf = (reason: EndReason): ViewEvent => ({ event: "end", id: undefined, data: { reason } })

export class Follower {
  /** Told before anything of the buffer. */
  first: ViewEvent | undefined
  /** Of the next delta it gets, counted from the first the feed ever had. */
  at: number
  isDone = false
  /** There while it waits for something new. */
  wake: (() => void) | undefined = undefined

  constructor(first: ViewEvent | undefined, at: number) {
    this.first = first
    this.at = at
  }
}

export class Feed {
  private readonly capacity: number
  /** The last `capacity` deltas; delta number i is at i modulo `capacity`. */
  private readonly recent: Array<Numbered> = []
  private pushed = 0
  private readonly followers = new Set<Follower>()
  private waiting: Array<Follower> = []
  private ended: ViewEvent | undefined = undefined

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get listening(): number {
    return this.followers.size
  }

  push(n: number, event: ViewEvent): void {
    this.recent[this.pushed % this.capacity] = { n, event }
    this.pushed++
    if (this.waiting.length > 0) this.wakeAll()
  }

  /** Where the deltas after number `n` begin, or undefined when some of them are no longer buffered. */
  after(n: number, current: number): number | undefined {
    const missed = current - n
    if (missed === 0) return this.pushed
    const at = this.pushed - missed
    return missed > 0 && at >= this.oldest && this.delta(at).n === n + 1 && this.delta(this.pushed - 1).n === current
      ? at
      : undefined
  }

  /** Follows from here on, after `first`; or from a position that {@link after} gave. */
  listen(first: ViewEvent | undefined, at: number = this.pushed): Follower {
    const follower = new Follower(first, at)
    this.followers.add(follower)
    return follower
  }

  drop(follower: Follower): void {
    follower.isDone = true
    this.followers.delete(follower)
  }

  /**
   * What there is for this follower, as much as goes out at once; waits for something; fails with none after the end.
   */
  take(follower: Follower): Effect.Effect<Chunk.Chunk<ViewEvent>, Option.Option<never>> {
    return Effect.suspend(() => {
      if (follower.isDone) return Effect.fail(Option.none())
      const events = this.next(follower)
      return events === undefined
        ? Effect.zipRight(this.news(follower), this.take(follower))
        : Effect.succeed(Chunk.unsafeFromArray(events))
    })
  }

  /** Every client is told, after its deltas in the buffer. */
  end(reason: EndReason): void {
    this.ended ??= endOf(reason)
    this.wakeAll()
  }

  private get oldest(): number {
    return Math.max(0, this.pushed - this.capacity)
  }

  private delta(at: number): Numbered {
    return this.recent[at % this.capacity]!
  }

  private next(follower: Follower): ReadonlyArray<ViewEvent> | undefined {
    const { first } = follower
    if (first !== undefined) {
      follower.first = undefined
      return [first]
    }
    if (follower.at < this.oldest) return this.last(follower, endOf("behind"))
    if (follower.at === this.pushed) return this.ended && this.last(follower, this.ended)
    const events: Array<ViewEvent> = []
    for (let bytes = 0; follower.at < this.pushed && bytes < pieceBytes; follower.at++) {
      const { event } = this.delta(follower.at)
      bytes += bytesOf(event).length
      events.push(event)
    }
    return events
  }

  private last(follower: Follower, end: ViewEvent): ReadonlyArray<ViewEvent> {
    this.drop(follower)
    return [end]
  }

  private news(follower: Follower): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      follower.wake = () => resume(Effect.void)
      this.waiting.push(follower)
      return Effect.sync(() => {
        follower.wake = undefined
        this.waiting = this.waiting.filter((other) => other !== follower)
      })
    })
  }

  private wakeAll(): void {
    const { waiting } = this
    this.waiting = []
    for (const follower of waiting) {
      follower.wake?.()
      follower.wake = undefined
    }
  }
}
