/**
 * Streams in format rows (D50): for each followed result its rows as text, the rows touched since the last event, and
 * the events.
 *
 * Views that share a result share its rows and the text of its events, each view under its own numbers. Events are made
 * one turn after the steps, so that one batch makes one event. Rows that no stream has followed for a minute are
 * dropped; until then a client that comes back gets the deltas it missed.
 */

import { Cause, Exit } from "effect"
import type { KeptBytes } from "../../../core/ivm/keptBytes.ts"
import type { Touched, View } from "../../../core/ivm/view/view.ts"
import { RowList, TooLarge } from "../../../core/rows/rowList.ts"
import * as RowsText from "../../../core/rows/rowsText.ts"
import { drain, type Slices } from "../../../core/surql/evaluate/scope.ts"
import { type EventReceiver, Feed, type Follower, type Subscription } from "../../../node/streams/feed.ts"
import { type EndReason, endEvent, type ViewEvent, WrittenEvent } from "../../../node/streams/viewEvent.ts"
import type { Slicer } from "../../../node/work/Slicer.ts"
import type { Turn } from "../../../ports/Turn.ts"
import { visibleErrors } from "../answerBytes.ts"
import { type RegisteredView, type Registry, resumePosition } from "../registry.ts"
import { resultBytes, type StreamLimits } from "../viewLimits.ts"

/** How long rows without a stream are kept. */
const idleMs = 60_000

/** Readings in slices of rows that keep changing; then they are read at once. */
const maxReadings = 3

/** Why a view is no longer followed, or was never. */
interface Ended {
  readonly reason: EndReason
  readonly message?: string
}

/** A follower that waits for the rows to be read. */
interface Waiting {
  readonly view: RegisteredView
  readonly ready: (ended: Ended | undefined) => void
}

/** A snapshot, valid until the rows change. */
interface CachedSnapshot {
  readonly view: RegisteredView
  readonly id: string
  readonly events: ReadonlyArray<ViewEvent>
}

/** The rows of one result, for all views that show it. */
interface Rows {
  readonly instance: View
  list: RowList | undefined
  /** Why the list cannot be built. */
  refused: Ended | undefined
  /** Generation of the instance that the list shows. */
  generation: number
  errors: string
  /** Rows touched by later steps. */
  touched: Map<string, boolean>
  readonly views: Set<RegisteredView>
  waiting: ReadonlyArray<Waiting>
  abandon: (() => void) | undefined
  kept: CachedSnapshot | undefined
  /** Characters counted in the budget of all views' rows. */
  charged: number
  /** When the last follower left; undefined while there is one. */
  idleSinceMs: number | undefined
}

export interface RowStreamsParts {
  readonly registry: Registry
  readonly slicer: Slicer
  readonly turn: Turn["Type"]
  readonly limits: StreamLimits
  readonly room: KeptBytes
  readonly nowMs: () => number
}

export class RowStreams {
  private readonly followed = new Map<View, Rows>()
  private due = new Set<Rows>()

  constructor(private readonly parts: RowStreamsParts) {}

  /** Characters of all rows that are kept. */
  get chars(): number {
    let chars = 0
    for (const { charged } of this.followed.values()) chars += charged
    return chars
  }

  /** Notes the rows that a step has changed in a result. */
  note({ delta, view }: Touched): void {
    const rows = this.followed.get(view)
    if (rows?.list === undefined) return
    RowsText.noteTouched(rows.touched, delta)
    const isDue = this.due.size > 0
    this.due.add(rows)
    if (!isDue) this.parts.turn.next(this.flush)
  }

  /** Follows a view: the first events are a snapshot in parts, or the delta after `lastEventId`. */
  follow(view: RegisteredView, id: string, lastEventId: string | undefined, receiver: EventReceiver): Subscription {
    const rows = this.of(view)
    let follower: Follower | undefined
    let isClosed = false
    let isAsked = false
    const ready = (ended: Ended | undefined): void => {
      follower = ended === undefined ? this.listen(rows, view, id, lastEventId, receiver) : endedAtOnce(ended, receiver)
      if (isAsked) follower.resume()
    }
    const waiting = { view, ready }
    if (rows.list !== undefined) ready(undefined)
    else if (rows.refused !== undefined) ready(rows.refused)
    else rows.waiting = [...rows.waiting, waiting]
    return {
      resume: () => {
        isAsked = true
        follower?.resume()
      },
      close: () => {
        if (isClosed) return
        isClosed = true
        rows.waiting = rows.waiting.filter((other) => other !== waiting)
        follower?.close()
        this.idle(rows)
      }
    }
  }

  /** Ends the streams of a view that is removed. */
  end(view: RegisteredView, reason: EndReason): void {
    const rows = this.followed.get(view.instance)
    view.rowsFeed?.end(endEvent(reason))
    view.rowsFeed = undefined
    if (rows === undefined) return
    const { waiting } = rows
    rows.waiting = waiting.filter((other) => other.view !== view)
    for (const one of waiting) if (one.view === view) one.ready({ reason })
    if (rows.views.delete(view) && rows.views.size === 0) this.letGo(rows)
  }

  /** Drops rows that no stream has followed for a while. */
  sweep(): void {
    const nowMs = this.parts.nowMs()
    for (const rows of this.followed.values())
      if (rows.idleSinceMs !== undefined && rows.idleSinceMs + idleMs <= nowMs) this.letGo(rows)
  }

  private of(view: RegisteredView): Rows {
    const { instance } = view
    let rows = this.followed.get(instance)
    if (rows === undefined) {
      rows = {
        instance,
        list: undefined,
        refused: undefined,
        generation: 0,
        errors: "[]",
        touched: new Map(),
        views: new Set(),
        waiting: [],
        abandon: undefined,
        kept: undefined,
        charged: 0,
        idleSinceMs: undefined
      }
      this.followed.set(instance, rows)
    }
    rows.views.add(view)
    rows.idleSinceMs = undefined
    view.rowsFeed ??= new Feed(this.parts.limits.streamBuffer, (feed) => feed.flush())
    if (rows.list === undefined && rows.abandon === undefined) this.fill(rows)
    return rows
  }

  private fill(rows: Rows): void {
    const { slicer } = this.parts
    rows.abandon = slicer.begin(
      () => this.reading(rows),
      (exit) => {
        rows.abandon = undefined
        if (Exit.isSuccess(exit)) this.filled(rows, exit.value)
        // A stopping service ends its streams elsewhere. A fault is raised again by a plain reading, and ends the
        // process.
        else if (Cause.isDie(exit.cause)) this.filled(rows, drain(this.reading(rows)))
      }
    )
  }

  private *reading(rows: Rows): Slices<RowList | undefined> {
    const { instance } = rows
    for (let reading = 1; ; reading++) {
      const list = new RowList(instance, this.parts.limits.resultBytes)
      const { generation } = instance
      const slices = list.fill()
      try {
        for (;;) {
          const isDone = this.parts.registry.during(instance, () =>
            reading > maxReadings ? (drain(slices), true) : slices.next().done === true
          )
          if (isDone) return list
          yield
          if (generation !== instance.generation) break
        }
      } catch (error) {
        if (error instanceof TooLarge) return undefined
        throw error
      }
    }
  }

  private filled(rows: Rows, list: RowList | undefined): void {
    const { room } = this.parts
    if (list !== undefined && room.hasRoom(list.chars)) {
      rows.list = list
      rows.generation = rows.instance.generation
      rows.errors = errorsOf(rows.instance)
      this.charge(rows, list.chars)
    } else rows.refused = { reason: "tooLarge", message: list === undefined ? this.tooLarge : room.reason }
    const { waiting } = rows
    rows.waiting = []
    for (const { ready } of waiting) ready(rows.refused)
    if (rows.refused !== undefined) this.letGo(rows)
  }

  private get tooLarge(): string {
    return `the result takes more than ${this.parts.limits.resultBytes} bytes to write out; ask for fewer rows (LIMIT) or raise ${resultBytes.setting} and the heap's limit`
  }

  private listen(
    rows: Rows,
    view: RegisteredView,
    id: string,
    lastEventId: string | undefined,
    receiver: EventReceiver
  ): Follower {
    this.catchUp(rows)
    const feed = view.rowsFeed
    if (rows.refused !== undefined || feed === undefined)
      return endedAtOnce(rows.refused ?? { reason: "replaced" }, receiver)
    const current = rows.generation + view.generationOffset
    const missed = resumePosition(view, feed, current, lastEventId)
    return missed === undefined
      ? feed.listen(receiver, this.snapshot(rows, view, id, current))
      : feed.listen(receiver, [], missed)
  }

  private snapshot(rows: Rows, view: RegisteredView, id: string, n: number): ReadonlyArray<ViewEvent> {
    const { instance, kept, list } = rows
    if (kept?.view === view && kept.id === id) return kept.events
    const errors = visibleErrors(instance.errors(), "kinds")
    const parts = RowsText.snapshotParts(id, list!.texts(), {
      only: instance.only,
      result_hash: instance.hash(),
      ...(errors.length === 0 ? {} : { errors })
    })
    const events = parts.map(
      (text, part) =>
        new WrittenEvent("snapshot", part === parts.length - 1 ? `${view.incarnation}.${n}` : undefined, text)
    )
    rows.kept = { view, id, events }
    return events
  }

  private readonly flush = (): void => {
    const { due } = this
    this.due = new Set()
    for (const rows of due) this.catchUp(rows)
  }

  /** Sends the followers one delta of all steps since the last event. */
  private catchUp(rows: Rows): void {
    const { instance, list, touched } = rows
    if (list === undefined || touched.size === 0) return
    rows.touched = new Map()
    const { generation } = rows
    let text: string
    try {
      const delta = this.parts.registry.during(instance, () => list.turn(touched))
      const errors = errorsOf(instance)
      text = RowsText.deltaText(delta, instance.hash(), errors === rows.errors ? undefined : errors)
      rows.errors = errors
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      return this.refuse(rows, this.tooLarge)
    }
    if (!this.parts.room.hasRoom(list.chars - rows.charged)) return this.refuse(rows, this.parts.room.reason)
    this.charge(rows, list.chars)
    rows.generation = instance.generation
    rows.kept = undefined
    const written = () => text
    for (const view of rows.views) {
      const from = generation + view.generationOffset
      const n = instance.generation + view.generationOffset
      view.rowsFeed!.push(from, n, new WrittenEvent("delta", `${view.incarnation}.${n}`, written))
    }
  }

  private refuse(rows: Rows, message: string): void {
    rows.refused = { reason: "tooLarge", message }
    for (const view of rows.views) view.rowsFeed?.end(endEvent("tooLarge", message))
    this.letGo(rows)
  }

  private idle(rows: Rows): void {
    for (const { rowsFeed } of rows.views) if ((rowsFeed?.listening ?? 0) > 0) return
    if (rows.waiting.length === 0) rows.idleSinceMs = this.parts.nowMs()
  }

  private letGo(rows: Rows): void {
    rows.abandon?.()
    this.charge(rows, 0)
    for (const view of rows.views) view.rowsFeed = undefined
    rows.list = undefined
    rows.touched.clear()
    if (this.followed.get(rows.instance) === rows) this.followed.delete(rows.instance)
  }

  private charge(rows: Rows, chars: number): void {
    this.parts.room.used += chars - rows.charged
    rows.charged = chars
  }
}

const errorsOf = (instance: View): string => {
  const errors = instance.errors()
  return errors.length === 0 ? "[]" : JSON.stringify(visibleErrors(errors, "kinds"))
}

/** A follower that gets an `end` event and nothing else. */
const endedAtOnce = ({ message, reason }: Ended, receiver: EventReceiver): Follower => {
  const feed = new Feed(1, () => {})
  feed.end(endEvent(reason, message))
  return feed.listen(receiver, [])
}
