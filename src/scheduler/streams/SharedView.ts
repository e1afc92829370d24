/**
 * A view shared by all clients of this scheduler: its events come once from its SSP.
 *
 * A later client gets the kept snapshot and the deltas behind it. If none is kept, a second place on the SSP's stream
 * brings one; the snapshot's id tells its position among the deltas.
 */
import { Recent } from "../../core/recent.ts"
import type { CutEvent } from "../../node/streams/eventCutter.ts"
import { type EventReceiver, Feed, type Subscription } from "../../node/streams/feed.ts"
import { bytesOf, isLast, type ViewEvent, withBytes } from "../../node/streams/viewEvent.ts"
import type { SourceListener } from "./ViewSource.ts"

interface Source {
  readonly close: () => void
}

interface SharedViewParts {
  /** Number of deltas that are kept. */
  readonly capacity: number
  readonly source: (after: string | undefined, hearing: SourceListener) => Source
  /** Called when no client follows the view any more, or the view is over. */
  readonly gone: () => void
  /** Called with the bytes by which the kept snapshot grew or shrank. */
  readonly weighs: (bytes: number) => void
  readonly nowMs: () => number
}

/** A complete snapshot; `n`: number of the event behind which it stands. */
interface CachedSnapshot {
  readonly parts: ReadonlyArray<ViewEvent>
  readonly n: number
  readonly bytes: number
}

/** Most bytes of a snapshot that is kept; a longer one only serves the clients that wait for it. */
const maxKeptBytes = 4 * 1024 * 1024
/** Bytes of deltas behind a snapshot beyond which a new snapshot is cheaper. */
const fewBytes = 65_536
/** Milliseconds after which a snapshot is requested again if its place among the deltas has not come. */
const maxUnplacedMs = 5000

const lengthOf = (events: ReadonlyArray<ViewEvent>): number =>
  events.reduce((sum, event) => sum + bytesOf(event).length, 0)

/** An event with its own copy of the bytes: the chunk that they are part of is used again. */
const eventOf = ({ bytes, id, name }: CutEvent): ViewEvent =>
  withBytes({ event: name === "delta" ? "delta" : "snapshot", id, data: undefined }, bytes.slice())

/** Collects the parts of a snapshot, the last of which has an id. */
class Parts {
  private parts: Array<ViewEvent> = []

  /** Adds a part; returns the snapshot once it is complete. */
  add(part: ViewEvent): ReadonlyArray<ViewEvent> | undefined {
    this.parts.push(part)
    if (part.id === undefined) return undefined
    const whole = this.parts
    this.parts = []
    return whole
  }

  clear(): void {
    this.parts = []
  }
}

/** A client that follows the view or still waits for a snapshot. */
class Client implements Subscription {
  private following: Subscription | undefined
  private isReady = false
  private isOver = false

  constructor(
    private readonly receiver: EventReceiver,
    private readonly left: () => void
  ) {}

  readonly take = (events: ReadonlyArray<ViewEvent>): boolean => {
    if (isLast(events[events.length - 1]!)) this.leave()
    return this.receiver.take(events)
  }

  readonly resume = (): void => {
    this.isReady = true
    this.following?.resume()
  }

  readonly close = (): void => {
    this.following?.close()
    this.leave()
  }

  listens(following: Subscription): void {
    this.following = following
    if (this.isReady) following.resume()
  }

  private leave(): void {
    if (this.isOver) return
    this.isOver = true
    this.left()
  }
}

export class SharedView {
  private readonly feed: Feed
  private readonly main: Source
  /** Number of the last event. */
  private n = 0
  /** Numbers, by event id, of the last events behind which a client may resume. */
  private readonly numbers: Recent<string, number>
  private readonly clients = new Set<Client>()
  /** Clients that wait for a snapshot. */
  private readonly waiting = new Set<Client>()
  private readonly arriving = new Parts()
  private kept: CachedSnapshot | undefined
  /** Bytes of the deltas behind the kept snapshot. */
  private behindKept = 0
  /** The source of another snapshot that was requested. */
  private asked: Source | undefined
  /** A snapshot that stands behind a delta that has not come yet. */
  private unplaced: { readonly parts: ReadonlyArray<ViewEvent>; readonly atMs: number } | undefined

  /** `after`: id of the last event that the first client received. */
  constructor(
    private readonly parts: SharedViewParts,
    after: string | undefined
  ) {
    this.numbers = new Recent(parts.capacity)
    this.feed = new Feed(parts.capacity, () => {})
    if (after !== undefined) this.numbers.set(after, 0)
    this.main = parts.source(after, {
      took: (events) => this.took(events),
      cut: () => this.arriving.clear(),
      over: (last) => this.over(last)
    })
  }

  /** Adds a client, which is sent nothing before it resumes. */
  follow(after: string | undefined, receiver: EventReceiver): Subscription {
    const client: Client = new Client(receiver, () => this.left(client))
    this.clients.add(client)
    const at = after === undefined ? undefined : this.placeOf(this.numbers.get(after))
    const { kept } = this
    const atKept = this.placeOf(kept?.n)
    if (at !== undefined) client.listens(this.feed.listen(client, [], at))
    else if (kept !== undefined && atKept !== undefined) client.listens(this.feed.listen(client, kept.parts, atKept))
    else {
      this.waiting.add(client)
      this.ask()
    }
    return client
  }

  /** Requests a snapshot again whose place has not come in time. */
  check(): void {
    if (this.unplaced === undefined || this.parts.nowMs() - this.unplaced.atMs < maxUnplacedMs) return
    this.unplaced = undefined
    this.ask()
  }

  /** Drops the kept snapshot. */
  forget(): void {
    if (this.kept === undefined) return
    this.parts.weighs(-this.kept.bytes)
    this.kept = undefined
  }

  private placeOf(n: number | undefined): number | undefined {
    return n === undefined ? undefined : this.feed.after(n, this.n)
  }

  private push(event: ViewEvent): void {
    this.feed.push(this.n, ++this.n, event)
    if (event.id !== undefined) this.number(event.id)
  }

  private number(id: string): void {
    this.numbers.set(id, this.n)
  }

  private took(events: ReadonlyArray<CutEvent>): void {
    for (const cut of events) {
      const event = eventOf(cut)
      if (event.event === "delta") this.delta(event)
      else {
        const whole = this.arriving.add(event)
        if (whole !== undefined) this.snapshot(whole)
      }
    }
    this.feed.flush()
  }

  private delta(event: ViewEvent): void {
    this.push(event)
    this.behindKept += bytesOf(event).length
    if (this.kept !== undefined && this.behindKept > Math.max(fewBytes, this.kept.bytes)) this.forget()
    if (event.id !== undefined) this.place(event.id)
  }

  /** Takes a complete snapshot: the first is the beginning, a later one is an event for all followers. */
  private snapshot(whole: ReadonlyArray<ViewEvent>): void {
    const { id } = whole[whole.length - 1]!
    if (this.numbers.size === 0) this.number(id!)
    else for (const part of whole) this.push(part)
    this.unplaced = undefined
    this.asked?.close()
    this.asked = undefined
    this.keep(whole, this.n)
  }

  /** Keeps a snapshot that stands behind event `n`, and sends it to the waiting clients. */
  private keep(parts: ReadonlyArray<ViewEvent>, n: number): void {
    this.forget()
    const bytes = lengthOf(parts)
    if (bytes <= maxKeptBytes) {
      this.kept = { parts, n, bytes }
      this.behindKept = 0
      this.parts.weighs(bytes)
    }
    const at = this.placeOf(n)
    for (const client of this.waiting) {
      this.waiting.delete(client)
      client.listens(this.feed.listen(client, parts, at))
    }
  }

  /** Requests a snapshot, unless one was requested already. */
  private ask(): void {
    if (this.waiting.size === 0 || this.numbers.size === 0 || this.asked !== undefined || this.unplaced !== undefined)
      return
    const parts = new Parts()
    let isDone = false
    const done = (): void => {
      isDone = true
      this.asked?.close()
      this.asked = undefined
    }
    const asked = this.parts.source(undefined, {
      took: (events) => {
        for (const cut of events) {
          const whole = isDone || cut.name !== "snapshot" ? undefined : parts.add(eventOf(cut))
          if (whole === undefined) continue
          done()
          this.unplaced = { parts: whole, atMs: this.parts.nowMs() }
          this.place(whole[whole.length - 1]!.id!)
        }
      },
      cut: () => parts.clear(),
      over: (last) => {
        isDone = true
        this.asked = undefined
        for (const client of this.waiting) {
          this.waiting.delete(client)
          client.take([last])
        }
      }
    })
    if (!isDone) this.asked = asked
  }

  /** Keeps the snapshot that stands behind this event, if there is one and its place is known. */
  private place(id: string): void {
    const { unplaced } = this
    if (unplaced === undefined || unplaced.parts[unplaced.parts.length - 1]!.id !== id) return
    const n = this.numbers.get(id)
    if (n === undefined || this.placeOf(n) === undefined) return
    this.unplaced = undefined
    this.keep(unplaced.parts, n)
  }

  private left(client: Client): void {
    this.clients.delete(client)
    this.waiting.delete(client)
    if (this.clients.size > 0) return
    this.main.close()
    this.end()
  }

  private over(last: ViewEvent): void {
    this.end()
    this.feed.end(last)
    for (const client of this.waiting) client.take([last])
  }

  private end(): void {
    this.asked?.close()
    this.asked = undefined
    this.forget()
    this.parts.gone()
  }
}
