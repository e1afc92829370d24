/**
 * The stream of one view (D11): recent deltas kept for clients that come back, and the clients that listen now.
 *
 * A feed exists from the first stream of a view on, so that views nobody streams buffer nothing. A client that reads
 * too slowly to keep up with its bounded mailbox is cut off; it comes back with `Last-Event-ID` and loses nothing
 * that is still buffered.
 */
import { Effect, Exit, Mailbox } from "effect"
import type { EndReason, ViewEvent } from "./viewTypes.ts"

export interface Numbered {
  readonly n: number
  readonly event: ViewEvent
}

export class Feed {
  private readonly capacity: number
  private readonly recent: Array<Numbered> = []
  private readonly listeners = new Set<Mailbox.Mailbox<ViewEvent>>()

  /** Keeps at most `capacity` deltas, and as many unread events per client. */
  constructor(capacity: number) {
    this.capacity = capacity
  }

  get listening(): number {
    return this.listeners.size
  }

  push(n: number, event: ViewEvent): void {
    this.recent.push({ n, event })
    if (this.recent.length > this.capacity) this.recent.splice(0, this.recent.length - this.capacity)
    for (const listener of this.listeners) if (!listener.unsafeOffer(event)) this.drop(listener)
  }

  /** The deltas after number `n`, or undefined when some of them are no longer buffered. */
  after(n: number, current: number): ReadonlyArray<ViewEvent> | undefined {
    if (n > current) return undefined
    const later = this.recent.filter((delta) => delta.n > n)
    return later.length === current - n ? later.map((delta) => delta.event) : undefined
  }

  /** A mailbox that starts with `first` and then gets every event. */
  listen(first: ReadonlyArray<ViewEvent>): Effect.Effect<Mailbox.Mailbox<ViewEvent>> {
    return Effect.gen(this, function*() {
      const mailbox = yield* Mailbox.make<ViewEvent>(this.capacity + first.length + 1)
      for (const event of first) mailbox.unsafeOffer(event)
      this.listeners.add(mailbox)
      return mailbox
    })
  }

  drop(listener: Mailbox.Mailbox<ViewEvent>): void {
    this.listeners.delete(listener)
    listener.unsafeDone(Exit.void)
  }

  end(reason: EndReason): void {
    for (const listener of [...this.listeners]) {
      listener.unsafeOffer({ event: "end", id: undefined, data: { reason } })
      this.drop(listener)
    }
  }
}
