/**
 * The events of one view, wherever in the cluster its owner is.
 *
 * When the view moves or its SSP dies the source follows it at its next owner, behind the last event: the missed deltas
 * come, or a snapshot if that SSP does not have them.
 */
import { type CutEvent, dataOf } from "../../node/streams/eventCutter.ts"
import { endEvent, type ViewEvent, withBytes } from "../../node/streams/viewEvent.ts"
import type { Target } from "../../ports/SspClient.ts"
import * as Errors from "../HttpErrors.ts"
import type * as ViewOwner from "../pool/viewOwner.ts"
import type { SspStream, StreamedView } from "./SspStream.ts"

/** End reasons that concern the SSP and not the view: it is followed elsewhere or later. */
const passing: ReadonlySet<unknown> = new Set(["moved", "shutdown", "rebootstrap", "behind"])

/** Codes of an SSP that was assigned the view and does not serve it yet. */
const notYet: ReadonlySet<unknown> = new Set(["VIEW_NOT_FOUND", "SSP_NOT_READY"])

/** Milliseconds for which a view may have no owner before its followers are told. */
const maxPauseMs = 20_000
/** Milliseconds between two attempts at one SSP: the first delay, and the longest. */
const retryMs = { first: 100, most: 2000 }
/** Milliseconds after which a stream counts as healthy. */
const goodMs = 5000

export interface SourceParts {
  readonly whereIs: (view: string) => ViewOwner.ViewOwner
  /** A stream at this SSP with room for one more view. */
  readonly streamAt: (target: Target) => SspStream
  /** Sources that look for an owner of their view. */
  readonly seeking: { readonly add: (source: ViewSource) => void; readonly delete: (source: ViewSource) => void }
  readonly nowMs: () => number
}

/** Callbacks of a source: snapshots and deltas, then the last event of all, unless the source was closed. */
export interface SourceListener {
  readonly took: (events: ReadonlyArray<CutEvent>) => void
  /** Called when a snapshot was cut off after some of its parts: it begins again. */
  readonly cut: () => void
  readonly over: (last: ViewEvent) => void
}

/** Follows one view at its owner, and at the next owner after a move. */
export class ViewSource implements StreamedView {
  private stream: SspStream | undefined
  /** The SSP at which the next attempt must wait, and until when. */
  private tried: { readonly target: Target; readonly untilMs: number; readonly attempts: number } | undefined
  private pausedAtMs: number | undefined
  private openedAtMs = 0

  constructor(
    private readonly parts: SourceParts,
    readonly view: string,
    public after: string | undefined,
    private readonly hearing: SourceListener
  ) {
    this.look()
  }

  close(): void {
    this.parts.seeking.delete(this)
    const { stream } = this
    this.stream = undefined
    stream?.drop(this)
  }

  readonly opened = (): void => {
    this.openedAtMs = this.parts.nowMs()
  }

  readonly took = (events: ReadonlyArray<CutEvent>): void => {
    const [first] = events
    if (first!.name === "end" || first!.name === "refused") return this.ended(first!)
    this.tried = undefined
    this.pausedAtMs = undefined
    for (const { id, name } of events) if (id !== undefined || name === "snapshot") this.after = id
    this.hearing.took(events)
  }

  readonly lost = (): void => this.seek()

  readonly denied = (message: string): void =>
    this.over({ event: "refused", id: undefined, data: Errors.unreachable({ message }) })

  /** Looks up the view's owner, and follows the view there. */
  look(): void {
    const { nowMs, seeking, streamAt, whereIs } = this.parts
    const now = nowMs()
    const found = whereIs(this.view)
    if ("isGone" in found) return this.over(endEvent("unregistered"))
    if ("owner" in found && this.mayTry(found.owner, now)) {
      seeking.delete(this)
      this.stream = streamAt(found.owner)
      return this.stream.add(this)
    }
    this.pausedAtMs ??= now
    seeking.add(this)
    if (now - this.pausedAtMs > maxPauseMs) this.over(endEvent("moved"))
  }

  private mayTry({ registration, ssp }: Target, now: number): boolean {
    const { tried } = this
    return tried?.target.ssp !== ssp || tried.target.registration !== registration || now >= tried.untilMs
  }

  private ended(event: CutEvent): void {
    const { code, reason } = (dataOf(event) ?? {}) as { readonly code?: unknown; readonly reason?: unknown }
    if (event.name === "end" ? passing.has(reason) : notYet.has(code)) return this.seek()
    const last = { event: event.name === "end" ? "end" : "refused", id: undefined, data: undefined } as const
    this.over(withBytes(last, event.bytes.slice()))
  }

  private seek(): void {
    const now = this.parts.nowMs()
    const { stream } = this
    this.stream = undefined
    if (stream === undefined) return
    this.hearing.cut()
    if (this.openedAtMs > 0 && now - this.openedAtMs > goodMs) this.pausedAtMs = this.tried = undefined
    this.openedAtMs = 0
    this.pausedAtMs ??= now
    const attempts = (this.tried?.attempts ?? 0) + 1
    const waitMs = Math.min(retryMs.most, retryMs.first * 2 ** (attempts - 1))
    this.tried = { target: stream.target, untilMs: now + waitMs, attempts }
    this.parts.seeking.add(this)
  }

  private over(last: ViewEvent): void {
    this.parts.seeking.delete(this)
    this.stream = undefined
    this.hearing.over(last)
  }
}
