/**
 * The views of one shape filed by their arguments, and the rows filed the same way: which views does this change
 * concern, and which rows does this view start from?
 *
 * A shape has one view index, and one more for views whose IN has a range. Rule: a changed row is shown to the views
 * that its new state leads to, and removed from those that only its old state led to. Cost per change: one lookup per
 * key of the two states, with a range O(log n) more, and then the views found. A row without a fixed key is shown to
 * every view.
 */
import { compare } from "../../surql/values/order.ts"
import * as Ids from "../../surql/values/recordId.ts"
import { type Obj, RecordId, type Value } from "../../surql/values/value.ts"
import type { ViewKey } from "../query/indexPlan.ts"
import { type FiledKey, FiledMap, plainKey } from "../store/denseMap.ts"
import {
  absent,
  type KeySpec,
  type Keys,
  keysOf,
  rangeValueOf,
  sameKeys,
  someKey,
  unindexable
} from "../store/indexKey.ts"
import { holdsValue, IntervalTree } from "../store/intervalTree.ts"
import type { Write } from "../store/recordSlot.ts"
import { isLive, type Live, type RecordSlot } from "../store/recordSlot.ts"
import type { Store } from "../store/store.ts"
import type { RoutedView } from "./routedView.ts"
import type { CoveringView, SecondaryIndex } from "./secondaryIndex.ts"
import type { SecondaryIndexes } from "./secondaryIndexes.ts"

/** The views filed under one key; a single view is stored without a set. */
type Filed = RoutedView | Set<RoutedView> | IntervalTree<RoutedView>

/** A row for a new view to look at. `routed`: its indexed conjuncts are known to hold. */
export interface Candidate {
  readonly slot: Live
  readonly routed: boolean
}

/** The view index by conjuncts with paths of one step only, and the view's key there. */
interface Coarse {
  readonly viewIndex: ViewIndex
  readonly viewKey: ViewKey
}

/** Calls `found` with the views that a row state without a fixed key may concern. */
type Loose = (doc: Obj, found: (view: RoutedView) => void) => void

interface ViewIndexOptions {
  /** The key is the record id: rows are found in the store. */
  readonly byId: boolean
  /** An index hit implies all indexed conjuncts; otherwise the filter is evaluated whole. */
  readonly exact: boolean
  /** Identity of the shape of these views. */
  readonly shape: object
}

/** Rows that are filed in the time in which a fill looks at one. */
const rowsAtOnce = 8

export class ViewIndex {
  /** Number of views filed here. */
  size = 0
  private readonly table: string
  private readonly indexes: SecondaryIndexes
  private readonly index: SecondaryIndex
  private readonly options: ViewIndexOptions
  private readonly byKey = new FiledMap<Filed>()
  /** Number of views that are filed under several keys. */
  private several = 0
  /** Number of keys with several views. */
  private crowded = 0

  constructor(table: string, spec: KeySpec, indexes: SecondaryIndexes, options: ViewIndexOptions) {
    this.table = table
    this.indexes = indexes
    this.index = indexes.use(table, spec)
    this.options = options
  }

  add({ interval, keys }: ViewKey, view: RoutedView): void {
    this.size++
    if (!Array.isArray(keys)) return this.file(keys, interval, view)
    this.several++
    for (const key of keys) this.file(key, interval, view)
  }

  /** Lets a view that shows all rows of its key cover that key in the row index, if there is one. */
  cover({ interval, keys }: ViewKey, view: RoutedView): void {
    if (interval === undefined && !Array.isArray(keys) && this.index.spec.each === undefined)
      this.index.cover(keys, view)
  }

  remove({ interval, keys }: ViewKey, view: RoutedView): void {
    if (!Array.isArray(keys)) this.index.uncover(keys, view)
    if (--this.size === 0) this.indexes.release(this.table, this.index)
    if (!Array.isArray(keys)) return this.unfile(keys, interval, view)
    this.several--
    for (const key of keys) this.unfile(key, interval, view)
  }

  /** Files a view under the gained keys and removes it from the lost ones. */
  refile(lost: ViewKey, gained: ViewKey, view: RoutedView): void {
    for (const key of listOf(lost.keys)) this.unfile(key, lost.interval, view)
    for (const key of listOf(gained.keys)) this.file(key, gained.interval, view)
  }

  /** From here on candidate rows are found by an index. */
  fileRows(): void {
    if (!this.options.byId) this.indexes.file(this.table, this.index)
  }

  /** Shows one changed record to the views it concerns; `loose` finds the views for a state without a fixed key. */
  route({ after, before, slot }: Write, loose: Loose): void {
    const states = this.index.states(before, after)
    const { newKeys, newValue, oldKeys, oldValue } = states
    const simple = this.several === 0 && this.index.spec.each === undefined && this.index.spec.range === undefined
    if (simple && oldKeys !== unindexable && newKeys !== unindexable) {
      if (!sameKeys(oldKeys, newKeys)) this.show(oldKeys, states.oldCovering, slot, undefined)
      this.show(newKeys, states.newCovering, slot, after)
      return
    }
    const shown = new Set<RoutedView>()
    const show =
      (doc: Obj | undefined, routed: boolean) =>
      (view: RoutedView): void => {
        if (shown.has(view)) return
        shown.add(view)
        view.update(slot, doc, routed)
      }
    if (newKeys === unindexable) loose(after!, show(after, false))
    else this.find(newKeys, newValue, show(after, this.options.exact))
    if (oldKeys === unindexable) loose(before!, show(undefined, true))
    else if (!sameKeys(oldKeys, newKeys) || compare(oldValue, newValue) !== 0)
      this.find(oldKeys, oldValue, show(undefined, true))
  }

  /** The views that a row state leads to; every view if the state has no fixed key. */
  meeting(doc: Obj, everyone: Iterable<RoutedView>, found: (view: RoutedView) => void): void {
    const keys = keysOf(doc, this.index.spec)
    if (keys === unindexable) for (const view of everyone) found(view)
    else this.find(keys, rangeValueOf(doc, this.index.spec), found)
  }

  /**
   * The candidate rows of a new view; undefined for a skipped row, where the caller may pause. Changes may be applied
   * meanwhile, so a row is read, and its keys compared, only when its turn comes. `coarse` leads to rows without a
   * fixed key.
   */
  *candidates(
    { interval, keys }: ViewKey,
    store: Store,
    coarse?: Coarse
  ): Generator<Candidate | undefined, void, void> {
    const { byId, exact } = this.options
    if (!byId && this.size > 1) yield* this.indexes.filing(this.table, this.index, rowsAtOnce)
    const { spec } = this.index
    const wanted = listOf(keys)
    const plain = plainOf(wanted)
    for (const slot of byId || this.index.filed
      ? this.found(wanted, interval, store, coarse)
      : store.rows(this.table)) {
      const { doc } = slot
      const own = keysOf(doc, spec)
      const meets =
        own === unindexable
          ? coarse === undefined || coarse.viewIndex.mayMeet(coarse.viewKey, doc)
          : meet(own, plain, interval, rangeValueOf(doc, spec))
      yield meets ? { slot, routed: own !== unindexable && exact } : undefined
    }
  }

  /** Shows a new view the record that its key names, if it exists. False if several rows may match; only for `byId`. */
  showOnly({ inRange, keys }: ViewKey, view: RoutedView, store: Store): boolean {
    if (inRange || Array.isArray(keys) || this.index.unindexableSlots.size > 0) return false
    const slot = this.slotById(keys, store)
    if (slot === undefined || !isLive(slot)) return true
    const own = keysOf(slot.doc, this.index.spec)
    if (own === unindexable) return false
    if (sameKeys(own, keys)) view.update(slot, slot.doc, this.options.exact)
    return true
  }

  private *found(
    wanted: ReadonlyArray<FiledKey>,
    interval: ViewKey["interval"],
    store: Store,
    coarse?: Coarse
  ): Iterable<Live> {
    const { unindexableSlots } = this.index
    if (wanted.length === 1 && unindexableSlots.size === 0 && !this.options.byId) {
      // Under one key no row stands twice. Copied, because the index may change while the reader pauses.
      for (const slot of Array.from(this.index.slots(wanted[0], interval))) if (isLive(slot)) yield slot
      return
    }
    const slots = new Set<RecordSlot>()
    for (const key of wanted) {
      if (!this.options.byId) for (const slot of this.index.slots(key, interval)) slots.add(slot)
      else {
        const slot = this.slotById(key, store)
        if (slot !== undefined) slots.add(slot)
      }
    }
    for (const slot of unindexableSlots.size === 0
      ? none
      : (coarse?.viewIndex.placesOf(coarse.viewKey) ?? unindexableSlots))
      slots.add(slot)
    for (const slot of slots) if (isLive(slot)) yield slot
  }

  /** The slot of a record by its key, which is the id or its text. */
  private slotById(key: FiledKey, store: Store): RecordSlot | undefined {
    const id = key instanceof RecordId ? key : typeof key === "string" ? Ids.parse(key) : undefined
    return id?.table === this.table ? store.slotOf(id) : undefined
  }

  private mayMeet({ interval, keys }: ViewKey, doc: Obj): boolean {
    const own = keysOf(doc, this.index.spec)
    return own === unindexable || meet(own, plainOf(listOf(keys)), interval, rangeValueOf(doc, this.index.spec))
  }

  /** The rows with one of these keys. */
  private *placesOf({ interval, keys }: ViewKey): Iterable<RecordSlot> {
    this.indexes.file(this.table, this.index)
    yield* this.index.unindexableSlots
    for (const key of listOf(keys)) yield* this.index.slots(key, interval)
  }

  /** Shows a row (`doc` undefined: its removal) to the views under one key, in a view index without ranges. */
  private show(key: FiledKey, covering: CoveringView | undefined, slot: RecordSlot, doc: Obj | undefined): void {
    if (key === absent) return
    // The row index has just looked the key up: if each key has one view, the covering view is that one.
    if (covering !== undefined && this.crowded === 0 && (covering as RoutedView).plainShape === this.options.shape)
      return (covering as RoutedView).update(slot, doc, true)
    const filed = this.byKey.get(key)
    if (filed instanceof Set) for (const view of filed) view.update(slot, doc, true)
    else if (filed !== undefined) (filed as RoutedView).update(slot, doc, true)
  }

  private find(keys: Keys, value: Value, found: (view: RoutedView) => void): void {
    if (Array.isArray(keys)) {
      for (const key of keys) this.find(key, value, found)
      return
    }
    const filed = keys === absent ? undefined : this.byKey.get(keys)
    if (filed instanceof IntervalTree) filed.find(value, found)
    else if (filed instanceof Set) for (const view of filed) found(view)
    else if (filed !== undefined) found(filed)
  }

  private file(key: FiledKey, interval: ViewKey["interval"], view: RoutedView): void {
    const filed = this.byKey.get(key)
    if (interval !== undefined) {
      const tree = filed instanceof IntervalTree ? filed : new IntervalTree<RoutedView>()
      tree.add(interval, view)
      if (tree !== filed) this.byKey.set(key, tree)
    } else if (filed === undefined) this.byKey.set(key, view)
    else if (filed instanceof Set) filed.add(view)
    else {
      this.crowded++
      this.byKey.set(key, new Set([filed as RoutedView, view]))
    }
  }

  private unfile(key: FiledKey, interval: ViewKey["interval"], view: RoutedView): void {
    const filed = this.byKey.get(key)
    if (filed instanceof IntervalTree) {
      filed.remove(interval!, view)
      if (filed.isEmpty) this.byKey.delete(key)
    } else if (filed === view) this.byKey.delete(key)
    else if (filed instanceof Set && filed.delete(view) && filed.size === 0) {
      this.crowded--
      this.byKey.delete(key)
    }
  }
}

const listOf = (keys: Keys): ReadonlyArray<FiledKey> => (Array.isArray(keys) ? keys : [keys])

const plainOf = (keys: ReadonlyArray<FiledKey>): ReadonlySet<unknown> => new Set(keys.map(plainKey))

const meet = (own: Keys, wanted: ReadonlySet<unknown>, interval: ViewKey["interval"], value: Value): boolean =>
  someKey(own, (key) => wanted.has(plainKey(key))) && (interval === undefined || holdsValue(interval, value))

const none: ReadonlyArray<RecordSlot> = []
