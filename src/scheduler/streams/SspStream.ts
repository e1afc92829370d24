/**
 * One `POST /stream` at an SSP, with some of the views that clients of this scheduler follow; views are added and
 * dropped while it is open.
 *
 * The stream numbers its views by place, as the SSP does: first the views of the opening, then those of each change in
 * order. Changes are therefore sent one at a time.
 */
import { Effect } from "effect"
import { secretFault } from "../../core/cluster/state.ts"
import { isRefused } from "../../core/reason.ts"
import { type CutEvent, dataOf, EventCutter } from "../../node/streams/eventCutter.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import type { OpenCall, SspClientShape, Target } from "../../ports/SspClient.ts"

/** A view that the stream carries. */
export interface StreamedView {
  readonly view: string
  /** Id of the last event received; undefined to begin with a snapshot. */
  readonly after: string | undefined
  /** Receives events in order; the last of all is an `end` or a `refused`, and comes alone. */
  readonly took: (events: ReadonlyArray<CutEvent>) => void
  /** Called when the stream is open with this view on it. */
  readonly opened: () => void
  /** Called when the stream ended without an `end` of this view. */
  readonly lost: () => void
  /** Called when the SSP refuses the stream. */
  readonly denied: (message: string) => void
}

export interface SspStreamParts {
  readonly client: Pick<SspClientShape, "changeStream" | "open">
  readonly format: StreamFormat
  /** Forks an effect. */
  readonly start: (work: Effect.Effect<void>) => void
  /** Called when the SSP refuses so many views on one connection. */
  readonly tooMany: (views: number) => void
  /** Called when the SSP refuses connections. */
  readonly refused: (target: Target) => void
}

/** Most bytes of one event: an SSP sends large snapshots in parts, and a delta holds the changes of one step. */
const maxEventBytes = 64 * 1024 * 1024

const isFinal = ({ name }: CutEvent): boolean => name === "end" || name === "refused"

/** Whether the SSP may accept the stream later. */
const mayPass = (status: number): boolean => status >= 500 || status === 404 || status === 409 || status === 429

export class SspStream {
  readonly format: StreamFormat
  private readonly cutter = new EventCutter(maxEventBytes)
  /** Views by their place at the SSP; undefined where a view is no longer followed. */
  private readonly places: Array<StreamedView | undefined> = []
  private waiting: Array<StreamedView> = []
  private dropped: Array<number> = []
  private flow: OpenCall | undefined
  private stream: string | undefined
  private isChanging = false
  /** Number of views that are followed or wait to be. */
  live = 0
  isOver = false

  constructor(
    readonly target: Target,
    private readonly parts: SspStreamParts
  ) {
    this.format = parts.format
    // The stream opens in the next turn, so that the opening names all views added in this turn.
    parts.start(Effect.andThen(Effect.yieldNow(), () => this.open()))
  }

  add(view: StreamedView): void {
    this.waiting.push(view)
    this.live++
    this.change()
  }

  /** Ends the stream with the last view. */
  drop(view: StreamedView): void {
    this.waiting = this.waiting.filter((each) => each !== view)
    const place = this.places.indexOf(view)
    if (place !== -1) {
      this.places[place] = undefined
      this.dropped.push(place)
    }
    this.left()
    this.change()
  }

  /** Notes that a view has left; the last one ends the stream. */
  private left(): void {
    this.live--
    if (this.live === 0) this.close()
  }

  /** Ends the stream as if the connection had broken. */
  readonly lose = (): void => {
    if (this.isOver) return
    for (const view of this.close()) view.lost()
  }

  /** Ends the stream; returns the views that it carried. */
  private close(): ReadonlyArray<StreamedView> {
    this.isOver = true
    this.flow?.close()
    const all = [...this.places.filter((view) => view !== undefined), ...this.waiting]
    this.places.length = 0
    this.waiting = []
    return all
  }

  private taken(): ReadonlyArray<object> {
    const taken = this.waiting
    this.waiting = []
    this.places.push(...taken)
    return taken.map(({ after, view }) => ({ view, after }))
  }

  private open(): void {
    if (this.isOver) return
    const body = JSON.stringify({ views: this.taken(), format: this.format })
    const heard = {
      head: (status: number) => this.answered(status),
      data: (bytes: Uint8Array) => this.guarded(() => this.take(bytes)),
      end: (error: unknown) => {
        if (isRefused(error)) this.parts.refused(this.target)
        this.lose()
      }
    }
    this.parts.start(
      Effect.match(this.parts.client.open(this.target, { method: "POST", path: "/stream", body }, heard), {
        onFailure: ({ message }) => this.deny(message),
        onSuccess: (flow) => {
          this.flow = flow
          if (this.isOver) flow.close()
        }
      })
    )
  }

  private answered(status: number): void {
    if (this.isOver || status === 200) return
    if (mayPass(status)) return this.lose()
    if (status === 400 && this.live > 1) {
      this.parts.tooMany(this.live)
      this.lose()
    } else if (status === 401) this.deny(`SSP ${secretFault(this.target.ssp)}`)
    else this.deny(`SSP ${this.target.ssp} answers ${status} to the stream that this scheduler asks it for`)
  }

  private deny(message: string): void {
    if (this.isOver) return
    for (const view of this.close()) view.denied(message)
  }

  /**
   * Runs a callback of the connection. A thrown exception would count as the connection's end, so it is reported here.
   */
  private guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.parts.start(Effect.logError("a stream met a fault of the service itself", error))
      this.deny("a fault of the service itself; its log says more")
    }
  }

  private take(bytes: Uint8Array): void {
    if (this.isOver) return
    const events = this.cutter.push(bytes)
    if (events === undefined)
      return this.deny(`SSP ${this.target.ssp} sends an event of more than ${maxEventBytes} bytes (fixed)`)
    for (let at = 0; at < events.length && !this.isOver; ) {
      const { name, place } = events[at]!
      let end = at + 1
      if (!isFinal(events[at]!))
        while (end < events.length && events[end]!.place === place && !isFinal(events[end]!)) end++
      if (place !== undefined) this.tell(place, events.slice(at, end))
      else if (name === "open") this.opened(events[at]!)
      at = end
    }
  }

  private tell(place: number, events: ReadonlyArray<CutEvent>): void {
    const view = this.places[place]
    if (view === undefined) return
    if (isFinal(events[0]!)) {
      this.places[place] = undefined
      this.left()
    }
    view.took(events)
  }

  private opened(event: CutEvent): void {
    const { stream } = (dataOf(event) ?? {}) as { readonly stream?: unknown }
    if (typeof stream !== "string") return this.lose()
    this.stream = stream
    for (const view of this.places) view?.opened()
    this.change()
  }

  /** Sends the SSP the views that were added and dropped; one change at a time. */
  private change(): void {
    const { stream } = this
    if (stream === undefined || this.isChanging || this.isOver || this.waiting.length + this.dropped.length === 0)
      return
    this.isChanging = true
    const first = this.places.length
    const body = JSON.stringify({ drop: this.dropped, add: this.taken() })
    this.dropped = []
    this.parts.start(
      Effect.map(this.parts.client.changeStream(this.target, stream, body), (isTaken) => {
        this.isChanging = false
        if (!isTaken) return this.lose()
        for (const view of this.places.slice(first)) view?.opened()
        this.change()
      })
    )
  }
}
