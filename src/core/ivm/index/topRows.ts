/**
 * The first matching rows of an ordered index, as a list of their own: for pages whose filter has a part that no index
 * decides, and for pages that merge several lists.
 *
 * All matching rows up to an edge are known; behind it nothing has been looked at. A changed record is removed and
 * inserted again, if it matches and lies before the edge. To get more rows the index is walked on from the edge, and a
 * reserve of some more is collected, so that the next removed rows need no walk. Cost of a change: O(known rows) moves
 * of pointers; of a walk: each row walked over is filtered once.
 *
 * One object serves all views of a filter that read the same index, whatever their START, LIMIT and projection: it
 * knows as many rows as the most demanding view needs.
 *
 * Where few rows match, each walk would be long: then all matching rows are kept, as candidates. Statistics of earlier
 * walks decide that, a step adds a bounded part of the rest, and it ends when many rows match.
 */
import { firstWhere } from "../../bisect.ts"
import type { Value } from "../../surql/values/value.ts"
import { compareToProbe, isBehind, leadOf, type Probe } from "../store/ordering.ts"
import { isLive, type RecordSlot, type SlotRef } from "../store/recordSlot.ts"
import type { OrderedIndex } from "./orderedIndex.ts"
import { PageWalk, type RowFilter, type Walked } from "./pageWalk.ts"

/** A view that reads the first rows of its filter. */
interface TopReader extends Walked, RowFilter {}

/** Number of rows that a view needs: its page, the rows before it, and a reserve that saves walks. */
interface Need {
  wanted: number
  readonly reserve: number
}

/** Positions of a record among the known rows before and after a change; -1: not known. */
export interface KnownMove {
  readonly from: number
  readonly to: number
}

export class TopRows {
  /** The known rows, in order. */
  private readonly known: Array<SlotRef> = []
  /** All matching rows up to this place are known; undefined: none yet. */
  private edge: Probe | undefined = undefined
  /** All matching rows are known. */
  private isWhole = false
  private walk: PageWalk | undefined = undefined
  /** All matching rows are candidates, or are being collected as such. */
  private keepsAll = false
  /** Rows that recent walks have looked at, and how many of them match. */
  private looked = 0
  private passed = 0
  private readonly index: OrderedIndex
  /** Rows are filtered even if their key is exact. */
  private readonly filters: boolean
  private readonly forget: () => void
  private readonly needs = new Map<TopReader, Need>()
  /** One of the views; any will do, since all have the same filter. */
  private reader: TopReader | undefined = undefined
  /** Most rows that are kept: the need of the most demanding view. */
  private most = 0
  /** The last step whose changes were taken over, and the records that it changed. */
  private step = -1
  private renewed: ReadonlyArray<RecordSlot> = none
  /** The move of the record, if the step changed only one. */
  private move: KnownMove | undefined = undefined

  /** `forget` is called when the last view has left. */
  constructor(index: OrderedIndex, filters: boolean, forget: () => void) {
    this.index = index
    this.filters = filters
    this.forget = forget
  }

  /** Adds a view that will read `wanted` rows. */
  join(view: TopReader, wanted: number, reserve: number): void {
    this.reader ??= view
    this.needs.set(view, { wanted, reserve })
    this.most = Math.max(this.most, wanted + 2 * reserve)
  }

  leave(view: TopReader): void {
    if (!this.needs.delete(view)) return
    if (this.needs.size === 0) return this.forget()
    if (this.reader === view) this.reader = this.needs.keys().next().value
    this.most = this.mostNeeded()
  }

  private mostNeeded(): number {
    let most = 0
    for (const { reserve, wanted } of this.needs.values()) most = Math.max(most, wanted + 2 * reserve)
    return most
  }

  /** Whether a row at this place may be known, or has to be if it matches. */
  reaches(lead: Value, slot: RecordSlot): boolean {
    const { reach } = this
    return reach === undefined || !isBehind(this.index.ordering, lead, slot, reach)
  }

  /** Rows behind this place neither are known nor have to be; undefined: any row may be. */
  get reach(): Probe | undefined {
    return this.isWhole ? undefined : this.edge
  }

  /**
   * Takes over the new states of records that a step has changed; the first view that calls it does the work for all.
   * Answers the move if the step has changed only one record.
   */
  renew(changed: ReadonlyArray<RecordSlot>, step: number): KnownMove | undefined {
    const { known, renewed } = this
    const slots = step === this.step ? changed.filter((slot) => !renewed.includes(slot)) : changed
    if (slots.length === 0) return this.move
    this.renewed = step === this.step ? [...renewed, ...slots] : slots
    this.step = step
    let from = -1,
      to = -1
    for (const slot of slots) {
      from = known.indexOf(slot.ref)
      if (from >= 0) known.splice(from, 1)
    }
    for (const slot of slots)
      if (isLive(slot) && this.isInside(slot) && !known.includes(slot.ref) && this.reader!.admits(slot))
        to = this.insert(slot)
    this.move = this.renewed.length === 1 ? { from, to } : undefined
    return this.move
  }

  /**
   * The row at a position. Undefined if there is none, or if the budget of rows to look at is spent: then the caller
   * should pause.
   */
  at(position: number, budget: { left: number }): SlotRef | undefined {
    // A fill has a budget. A step has none, so it collects candidates in parts: see `close`.
    const isFill = budget.left !== Infinity
    while ((position >= this.known.length || (isFill && this.keepsAll)) && !this.isWhole && budget.left > 0) {
      budget.left--
      this.walkOn()
    }
    return this.known[position]
  }

  /**
   * Ends the reading of a view, or interrupts it if `isWhole` is false. After a walk the reserve is filled; rows that
   * no view needs are dropped.
   */
  close(view: TopReader, wanted: number, isWhole: boolean): void {
    const need = this.needs.get(view)!
    const { reserve } = need
    const walked = this.walk !== undefined && isWhole
    for (let left = maxReserveWalk; left > 0 && !this.isWhole; left--) {
      if (!(isWhole && this.keepsAll) && !(walked && this.known.length < wanted + reserve)) break
      this.walkOn()
    }
    this.walk = undefined
    const neededMost = need.wanted > wanted && need.wanted + 2 * reserve === this.most
    need.wanted = wanted
    this.most = neededMost ? this.mostNeeded() : Math.max(this.most, wanted + 2 * reserve)
    const { known, most } = this
    if (known.length <= most) return
    if (this.keepsAll && known.length * many <= this.rows()) return
    this.keepsAll = false
    this.looked = this.passed = 0
    known.length = most
    this.edge = this.probe(this.index.slotOf(known[most - 1]!))
    this.isWhole = false
  }

  private walkOn(): void {
    this.walk ??= new PageWalk(this.index, this.reader!, 0, stretch, this.edge)
    const ref = this.walk.next(this.reader!)
    // In both cases rows behind the former edge may matter now.
    this.index.edgesMoved++
    if (ref === undefined) {
      this.isWhole = true
      return
    }
    const slot = this.index.slotOf(ref)
    this.edge = this.probe(slot)
    const passes = (!this.filters && !this.walk.loose) || this.reader!.admits(slot)
    if (passes) this.known.push(ref)
    this.look(passes)
  }

  /** Counts one more row of a walk, and decides whether few rows match. */
  private look(passes: boolean): void {
    this.looked++
    if (passes) this.passed++
    if (this.looked < enough) return
    if (this.passed * few < this.looked) this.keepsAll = true
    // Halves the counts, since the data may have changed.
    this.looked >>= 1
    this.passed >>= 1
  }

  /** Number of rows that a walk may meet. */
  private rows(): number {
    return this.reader!.keys.reduce<number>((sum, key) => sum + (this.index.rowsOf(key)?.size ?? 0), 0)
  }

  /** For `/debug/view`: how the rows are found (`way`), and how many are known. */
  figures(): { readonly way: string; readonly rows: number } {
    const { keepsAll, known, needs } = this
    const kept = needs.size > 1 ? `, kept once for ${needs.size} views` : ""
    const way = keepsAll
      ? `candidates, all that match: fewer than 1 row in ${few} passed the filter`
      : `walk over the index, filtering: more than 1 row in ${few} passes`
    return { way: `${way}${kept}`, rows: known.length }
  }

  private probe(slot: RecordSlot): Probe {
    return { lead: leadOf(this.index.ordering, slot.doc!), doc: slot.doc!, slot }
  }

  private isInside(slot: RecordSlot): boolean {
    if (this.isWhole) return true
    return this.edge !== undefined && this.compare(slot, this.edge) <= 0
  }

  /** Inserts a row; answers its position. */
  private insert(slot: RecordSlot): number {
    const { index, known } = this
    const probe = this.probe(slot)
    const position = firstWhere(known.length, (at) => this.compare(index.slotOf(known[at]!), probe) >= 0)
    known.splice(position, 0, slot.ref)
    return position
  }

  private compare(slot: RecordSlot, probe: Probe): number {
    return compareToProbe(this.index.ordering, leadOf(this.index.ordering, slot.doc!), slot, probe)
  }
}

const none: ReadonlyArray<never> = []

/** Rows read at once while walking. */
const stretch = 32

/** Most rows looked at to fill the reserve, or to collect candidates in one step. */
const maxReserveWalk = 4096

/** Rows to look at before the share of matching ones is judged. */
const enough = 4096

/** If fewer than one row in this many matches, all matching rows are kept. */
const few = 256

/** If more than one row of the index in this many is known, candidates are given up. */
const many = 64
