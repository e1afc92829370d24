/**
 * An ordered index of one table: the rows of each key in the order of an ORDER BY, shared by all views that show a page
 * of them.
 *
 * It follows the writes of its table like any index, and tells the views whose page a write may change: views that show
 * the record, and, if the record is added, removed or moved, views whose page does not end before it. Rows whose key is
 * not exact may meet every key; they stand in a list of their own, and views filter them one by one. Cost of a change:
 * O(log n), and the views it tells.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Obj } from "../../surql/values/value.ts"
import { type FiledKey, FiledMap } from "../store/denseMap.ts"
import { absent, type KeySpec, type Keys, keysOf, sameKeys, unindexable } from "../store/indexKey.ts"
import { compareToProbe, leadOf, type Ordering, type Probe, sameOrder } from "../store/ordering.ts"
import { isLive, type Live, type RecordSlot, type SlotRef } from "../store/recordSlot.ts"
import type { Store } from "../store/store.ts"
import type { TableIndex } from "../store/table.ts"
import { maxNode, noRank, OrderedRows, type TableOrder, tableOrderOf } from "./orderedRows.ts"
import { notifyFilteringView, notifyOfMove, type PageReader, PageViews, type Place } from "./pageViews.ts"
import { rowsPerSlice, SortedRows } from "./sortedRows.ts"

/** A view that shows a page of an ordered index, as the index knows it. */
export interface PageView extends PageReader {
  readonly index: OrderedIndex
  readonly keys: ReadonlyArray<FiledKey>
  /** A shown record has changed and keeps its place in the order. */
  touchInPlace(slot: RecordSlot): void
  /** Whether the view has looked at the record and does not show it. */
  passedOver(slot: RecordSlot): boolean
}

/** The rows of one key, and the views that show pages of them. */
class KeyRows extends OrderedRows {
  views: PageView | PageViews | undefined = undefined
  /**
   * The rows without order, as long as they are few and no view has asked for them: most keys of a table are never
   * read.
   */
  private unordered: Array<RecordSlot> | undefined = []

  /**
   * Adds a row while the index is built; answers the number of rows. `mayBeAgain`: the scan may meet the row a second
   * time; a large key then has it twice.
   */
  collect(slot: RecordSlot, mayBeAgain: boolean): number {
    const unordered = this.unordered!
    if (!mayBeAgain || unordered.length > maxNode || !unordered.includes(slot)) unordered.push(slot)
    return (this.size = unordered.length)
  }

  get isFew(): boolean {
    return this.unordered !== undefined && this.unordered.length <= maxNode
  }

  /** Sorts many rows except the left-out ones, which may have changed meanwhile. Pauses. */
  *orderMany(ordering: Ordering, leftOut: ReadonlySet<RecordSlot>): Slices<void> {
    const rows = this.unordered!
    this.unordered = undefined
    this.size = 0
    yield* new SortedRows(ordering, rows).all(leftOut, (lead, ref) => this.prepend(lead, ref))
  }

  order(ordering: Ordering): void {
    const { unordered } = this
    if (unordered === undefined) return
    this.unordered = undefined
    this.size = 0
    // Reads all documents in one loop without other work: most are in no cache, and the processor then fetches them
    // together.
    const docs: Array<Obj> = [],
      probes: Array<Probe> = []
    for (let i = 0; i < unordered.length; i++) docs.push(unordered[i]!.doc!)
    for (let i = 0; i < unordered.length; i++) probes.push(probeOf(ordering, unordered[i]!, docs[i]!))
    // The last one first, as rows stand in a leaf.
    probes.sort((a, b) => compareToProbe(ordering, b.lead, b.slot, a))
    this.fillWith(probes)
  }

  /** Removes the record; `probe` is the state it was filed with. */
  take(probe: Probe): Place {
    const { unordered } = this
    if (unordered === undefined) return { lead: probe.lead, rank: this.remove(probe) }
    const at = unordered.length > maxNode ? -1 : unordered.indexOf(probe.slot)
    if (at >= 0) {
      unordered[at] = unordered.at(-1)!
      unordered.pop()
      this.size--
    }
    return { lead: probe.lead, rank: noRank }
  }

  /** Inserts the record; `probe` is its new state. */
  put(ordering: Ordering, probe: Probe): Place {
    const { unordered } = this
    if (unordered?.includes(probe.slot) === true) return { lead: probe.lead, rank: noRank }
    if (unordered !== undefined && unordered.length < maxNode) {
      unordered.push(probe.slot)
      this.size++
      return { lead: probe.lead, rank: noRank }
    }
    this.order(ordering)
    return { lead: probe.lead, rank: this.add(probe) }
  }
}

const probeOf = (ordering: Ordering, slot: RecordSlot, doc: Obj): Probe => ({
  lead: leadOf(ordering, doc),
  doc,
  slot
})

/** Tells the views of a key that a row has moved from one place to another. */
const tell = ({ views }: KeyRows, slot: RecordSlot, from: Place | undefined, to: Place | undefined): void => {
  if (views === undefined) return
  if (views instanceof PageViews) views.tell(slot, from, to)
  else notifyOfMove(views, slot, from, to)
}

export class OrderedIndex implements TableIndex {
  readonly spec: KeySpec
  readonly ordering: Ordering
  private readonly of: TableOrder
  private readonly byKey = new FiledMap<KeyRows>()
  /** Rows without an exact key; views of every key read them. */
  readonly loose: KeyRows
  private readonly views = new Set<PageView>()
  /** Views that have passed over rows. */
  private readonly passingOver = new Set<PageView>()
  /** How often a page has come to end further behind than before. */
  edgesMoved = 0
  /** How many of the views filter the rows they walk over. */
  private filtering = 0
  private building: Iterator<undefined, void> | undefined
  /** Records that changed during the sort of all rows: they are filed after it. */
  private changed: Set<RecordSlot> | undefined = new Set()

  constructor(spec: KeySpec, ordering: Ordering, store: Store, table: string) {
    this.spec = spec
    this.ordering = ordering
    this.of = tableOrderOf(ordering, store.table(table))
    this.loose = new KeyRows(this.of)
    this.building = this.build(store, table)
  }

  get isBuilt(): boolean {
    return this.building === undefined
  }

  /** Builds the next slice of the index, until {@link isBuilt}; changes may be applied between slices. */
  buildOn(): void {
    if (this.building?.next().done === true) this.building = undefined
  }

  /** The record that a reference in its lists leads to. */
  slotOf(ref: SlotRef): RecordSlot {
    return this.of.table.slotOf(ref)
  }

  /** The rows of a key; undefined if it has none. */
  rowsOf(key: FiledKey): OrderedRows | undefined {
    const rows = this.byKey.get(key)
    rows?.order(this.ordering)
    return rows
  }

  /** Number of rows filed; walks the keys. */
  entries(): number {
    let entries = this.loose.size
    for (const rows of this.byKey.values()) entries += rows.size
    return entries
  }

  /** Number of rows filed and of views that read them; walks the keys. */
  figures(): { readonly rows: number; readonly readers: number } {
    return { rows: this.entries(), readers: this.views.size }
  }

  /** Subscribes a view to the changes that concern its page. Answers the rows of its key, if it has a single key. */
  follow(view: PageView): OrderedRows | undefined {
    this.views.add(view)
    if (view.filters) this.filtering++
    this.enter(view)
    return view.keys.length === 1 ? this.rowsFor(view.keys[0]) : undefined
  }

  leave(view: PageView): void {
    this.passingOver.delete(view)
    if (!this.views.delete(view)) return
    if (view.filters) this.filtering--
    this.quit(view, view.series)
    for (const key of view.keys) this.dropUnused(key, this.rowsFor(key))
  }

  /**
   * Moves a view to another series, and notes whether it has passed over rows. The `OrderedRows` that {@link follow}
   * answered stay valid.
   */
  refile(view: PageView, series: string | undefined, passesOver: boolean): void {
    if (passesOver) this.passingOver.add(view)
    else this.passingOver.delete(view)
    if (view.series === series) return
    this.quit(view, series)
    this.enter(view)
  }

  private enter(view: PageView): void {
    for (const key of view.keys) {
      const rows = this.rowsFor(key)
      rows.order(this.ordering)
      if (rows.views === undefined) rows.views = view
      else if (rows.views instanceof PageViews) rows.views.add(view)
      else {
        const alone = rows.views
        rows.views = new PageViews(this)
        rows.views.add(alone)
        rows.views.add(view)
      }
    }
  }

  private quit(view: PageView, series: string | undefined): void {
    for (const key of view.keys) {
      const rows = this.byKey.get(key)!
      if (rows.views instanceof PageViews) {
        rows.views.remove(view, series)
        if (rows.views.isEmpty) rows.views = undefined
      } else rows.views = undefined
    }
  }

  move(slot: RecordSlot, before: Obj | undefined, after: Obj | undefined): void {
    const { changed, ordering, spec } = this
    if (changed !== undefined) return this.defer(changed, slot, before)
    const oldKey = before === undefined ? absent : keysOf(before, spec)
    const newKey = after === undefined ? absent : keysOf(after, spec)
    if (before !== undefined && after !== undefined && sameKeys(oldKey, newKey)) {
      const old = probeOf(ordering, slot, before),
        now = probeOf(ordering, slot, after)
      if (sameOrder(ordering, old, now)) this.stayed(newKey, now)
      else this.moved(newKey, old, now)
      return
    }
    const isLoose = oldKey === unindexable || newKey === unindexable
    if (before !== undefined) {
      const rows = this.rowsUnder(oldKey)
      const from = rows.take(probeOf(ordering, slot, before))
      if (!isLoose) tell(rows, slot, from, undefined)
      if (rows !== this.loose) this.dropUnused(oldKey, rows)
    }
    if (after !== undefined) {
      const rows = this.rowsUnder(newKey)
      const to = rows.put(ordering, probeOf(ordering, slot, after))
      if (!isLoose) tell(rows, slot, undefined, to)
    }
    if (isLoose) this.touchAll(slot)
  }

  /** Moves a record to another place of its key. */
  private moved(key: Keys, before: Probe, after: Probe): void {
    const rows = this.rowsUnder(key)
    const from = rows.take(before)
    const to = rows.put(this.ordering, after)
    if (rows === this.loose) this.touchAll(after.slot)
    else tell(rows, after.slot, from, to)
  }

  /** Tells every view of a row without an exact key: only the views know whether it matches. */
  private touchAll(slot: RecordSlot): void {
    for (const view of this.views) view.touch(slot, undefined, undefined)
  }

  /** A record has changed and keeps its place: tells the views that show it, have passed it over or filter it. */
  private stayed(key: Keys, { lead, slot }: Probe): void {
    if (this.views.size === 0) return
    if (key === unindexable) return this.touchAll(slot)
    const views = this.byKey.get(key)?.views
    if (views === undefined) return
    if (views instanceof PageViews)
      slot.eachHolding(({ owner }) => {
        if ((owner as Partial<PageView>).index === this) (owner as PageView).touchInPlace(slot)
      })
    else if (slot.heldBy(views) !== undefined) views.touchInPlace(slot)
    if (this.passingOver.size > 0)
      for (const view of this.passingOver) if (view.passedOver(slot)) view.touch(slot, undefined, undefined)
    if (this.filtering === 0) return
    const place: Place = { lead, rank: noRank }
    if (views instanceof PageViews) views.tellFiltering(slot, place)
    else notifyFilteringView(views, slot, place)
  }

  /** Files all rows by key, sorts the large keys, then files the records that changed meanwhile. */
  private *build(store: Store, table: string): Slices<void> {
    const changed = this.changed!
    const large: Array<readonly [Keys, KeyRows]> = []
    const rows = store.rows(table)[Symbol.iterator]()
    while (this.collect(rows, changed, large)) yield
    for (const [, rows] of large) yield* rows.orderMany(this.ordering, changed)
    this.loose.order(this.ordering)
    // From here on each write files its record; filing it twice changes nothing.
    this.changed = undefined
    let filed = 0
    for (const slot of changed) {
      if (isLive(slot))
        this.rowsUnder(keysOf(slot.doc, this.spec)).put(this.ordering, probeOf(this.ordering, slot, slot.doc))
      if (++filed % rowsPerSlice === 0) yield
    }
    for (const [key, rows] of large) if (rows !== this.loose) this.dropUnused(key, rows)
  }

  /** Files the next slice of rows by key; false at the end. Adds to `large` the keys that have become large. */
  private collect(
    rows: Iterator<Live>,
    changed: ReadonlySet<RecordSlot>,
    large: Array<readonly [Keys, KeyRows]>
  ): boolean {
    for (let left = rowsPerSlice; left > 0; left--) {
      const next = rows.next()
      if (next.done === true) return false
      const slot = next.value
      const others = changed.size > 0
      if (others && changed.has(slot)) continue
      const key = keysOf(slot.doc, this.spec)
      const under = this.rowsUnder(key)
      if (under.collect(slot, others) === maxNode + 1) large.push([key, under])
    }
    return true
  }

  /** Removes a changing record again if it is filed already: the sort compares records by their current state. */
  private defer(changed: Set<RecordSlot>, slot: RecordSlot, before: Obj | undefined): void {
    changed.add(slot)
    if (before === undefined) return
    const key = keysOf(before, this.spec)
    const rows = this.rowsUnder(key)
    rows.take(probeOf(this.ordering, slot, before))
    if (rows !== this.loose && rows.isFew) this.dropUnused(key, rows)
  }

  private rowsUnder(key: Keys): KeyRows {
    return key === unindexable ? this.loose : this.rowsFor(key)
  }

  private rowsFor(key: FiledKey): KeyRows {
    let rows = this.byKey.get(key)
    if (rows === undefined) this.byKey.set(key, (rows = new KeyRows(this.of)))
    return rows
  }

  private dropUnused(key: FiledKey, { size, views }: KeyRows): void {
    if (size === 0 && views === undefined) this.byKey.delete(key)
  }
}
