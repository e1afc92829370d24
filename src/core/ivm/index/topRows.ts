/**
 * The first rows of an ordered index that match, known one by one: for pages whose filter has a part that no index
 * decides, and for those that merge several lists.
 *
 * Known are all rows that match up to an edge; behind it nothing has been looked at. A changed record is taken out and
 * put in again, if it matches and does not stand behind the edge. Where rows are wanted that are not known, the index
 * is walked on from the edge, and some more rows are collected, so that the next rows that go need no walk. Cost of a
 * change: O(rows known) moves of pointers; of a walk: each row walked over is filtered once.
 *
 * One object serves all views of a filter that read the same index, whatever their START, LIMIT and projection: as much
 * is known as the one needs that needs most.
 *
 * Where few rows pass, each walk would be long: then all that match are kept, as candidates. That is decided by what
 * walks have seen, a step adds a bounded part of the rest, and it ends when many rows match.
 */
import { firstWhere } from "../../bisect.ts"
import type { Value } from "../../surql/values/value.ts"
import { compareToProbe, isBehind, leadOf, type Probe } from "../store/ordering.ts"
import { isLive, type RecordSlot, type SlotRef } from "../store/recordSlot.ts"
import type { OrderedIndex } from "./orderedIndex.ts"
import { PageWalk, type RowFilter, type Walked } from "./pageWalk.ts"

/** A view that reads the first rows of its filter. */
interface TopReader extends Walked, RowFilter {}

/** What a view needs: its rows and those before them, and so many more, that the next rows that go need no walk. */
interface Need {
  wanted: number
  readonly reserve: number
}

/** A record has gone from one position among the known rows to another; -1: it was or is not known. */
export interface KnownMove {
  readonly from: number
  readonly to: number
}

export class TopRows {
  /** The known rows, in order. */
  private readonly known: Array<SlotRef> = []
  /** The row up to which all are known; undefined: none is yet. */
  private edge: Probe | undefined = undefined
  /** All rows are known. */
  private isWhole = false
  private walk: PageWalk | undefined = undefined
  /** All rows that match are kept, or are on their way to be. */
  private keepsAll = false
  /** Rows that walks have looked at lately, and those of them that match. */
  private looked = 0
  private passed = 0
  private readonly index: OrderedIndex
  /** Rows are filtered even where their key is exact. */
  private readonly filters: boolean
  private readonly forget: () => void
  private readonly needs = new Map<TopReader, Need>()
  /** One of the views, all of which filter alike. */
  private reader: TopReader | undefined = undefined
  /** So many rows are kept at most: what the view needs that needs most. */
  private most = 0
  /** The step in which changed records were taken over last, and these. */
  private step = -1
  private renewed: ReadonlyArray<RecordSlot> = none
  /** Where it was one record alone: how that has moved. */
  private move: KnownMove | undefined = undefined

  /** `forget` is called when the last view has left. */
  constructor(index: OrderedIndex, filters: boolean, forget: () => void) {
    this.index = index
    this.filters = filters
    this.forget = forget
  }

  /** A view comes, which will read `wanted` rows. */
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

  /** Whether a row at this place may be known, or must be once it matches. */
  reaches(lead: Value, slot: RecordSlot): boolean {
    const { reach } = this
    return reach === undefined || !isBehind(this.index.ordering, lead, slot, reach)
  }

  /** No row behind this place is known or must be; undefined: any row may have to be. */
  get reach(): Probe | undefined {
    return this.isWhole ? undefined : this.edge
  }

  /**
   * Takes over the states of records that a step has changed: once, whichever of its views are told of them. Where the
   * step has changed but one of its records, the answer is how that has moved.
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
   * The row at a position; undefined where there is none, and where the budget of rows to look at is spent, so that the
   * caller should pause.
   */
  at(position: number, budget: { left: number }): SlotRef | undefined {
    // In a step, where no budget bounds it, candidates come in parts: see `close`.
    const isFill = budget.left !== Infinity
    while ((position >= this.known.length || (isFill && this.keepsAll)) && !this.isWhole && budget.left > 0) {
      budget.left--
      this.walkOn()
    }
    return this.known[position]
  }

  /**
   * The reading of a view ends, here or, if it is not whole, for now. Where it had to walk, the reserve is filled; rows
   * that no view needs are forgotten.
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
    // Either way rows may be reached that were not before.
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

  /** Notes whether one more row passes, and decides whether few do. */
  private look(passes: boolean): void {
    this.looked++
    if (passes) this.passed++
    if (this.looked < enough) return
    if (this.passed * few < this.looked) this.keepsAll = true
    // Half of the former bound: the data may be another by now.
    this.looked >>= 1
    this.passed >>= 1
  }

  /** The rows that a walk may meet. */
  private rows(): number {
    return this.reader!.keys.reduce<number>((sum, key) => sum + (this.index.rowsOf(key)?.size ?? 0), 0)
  }

  /** How it comes by its rows, in words of `/debug/view`. */
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

  /** Answers the position. */
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

/** Rows that are looked at, at most, to fill the reserve, or to come by candidates in one step. */
const maxReserveWalk = 4096

/** So many rows are looked at before it is judged how many pass. */
const enough = 4096

/** Fewer than one row in so many: all that match are kept. */
const few = 256

/** More than one row of the index in so many is known: they are kept no longer. */
const many = 64
