/**
 * The instances of one shape filed by their arguments, and the rows filed the same way: which instances does this change
 * concern, and which rows does this instance start from?
 *
 * A shape has one lane, and one more for views whose IN has a range. Rule: a changed row is shown to the instances its new
 * state meets, and is taken from those that only its old state met. Cost per change: one lookup per key of the two states,
 * with a range O(log n) more, and then what is found. A row without a fixed key is shown to every instance.
 */
import { compare } from "../../surql/order.ts"
import * as Ids from "../../surql/recordId.ts"
import { type Obj, RecordId, type Value } from "../../surql/value.ts"
import type { Placement } from "../query/indexPlan.ts"
import type { Indexes } from "./secondaryIndexes.ts"
import { holdsValue, IntervalTree } from "./intervalTree.ts"
import { type FiledKey, FiledMap, plainKey } from "../store/denseMap.ts"
import type { Maintained } from "../view/incrementalView.ts"
import { isLive, type Live, type Place } from "../store/recordSlot.ts"
import type { RowIndex } from "./secondaryIndex.ts"
import { absent, dynamic, type Keys, keysOf, type KeySpec, orderOf, sameKeys, someKey } from "./indexKey.ts"
import type { Store, Write } from "../store/store.ts"

/** What is filed under one key; a lone instance stands for itself. */
type Filed = Maintained | Set<Maintained> | IntervalTree<Maintained>

/** A row for a new instance to look at, and whether its indexed conjuncts are known to hold. */
export interface Candidate {
  readonly place: Live
  readonly routed: boolean
}

/** The lane of an instance's conjuncts that never leave the row, and its place there. */
export interface Coarse {
  readonly lane: Lane
  readonly placement: Placement
}

/** Calls `found` with the instances that the state of a row without a fixed key may concern. */
export type Loose = (doc: Obj, found: (instance: Maintained) => void) => void

export interface LaneOptions {
  /** Rows are found by their ids. */
  readonly byId: boolean
  /** An index hit implies all that is indexed; else the filter is evaluated whole. */
  readonly exact: boolean
}

export class Lane {
  /** Instances filed here. */
  size = 0
  private readonly table: string
  private readonly indexes: Indexes
  private readonly index: RowIndex
  private readonly options: LaneOptions
  private readonly byKey = new FiledMap<Filed>()
  /** Instances under several keys. */
  private several = 0

  constructor(table: string, spec: KeySpec, indexes: Indexes, options: LaneOptions) {
    this.table = table
    this.indexes = indexes
    this.index = indexes.use(table, spec)
    this.options = options
  }

  add({ interval, keys }: Placement, instance: Maintained): void {
    this.size++
    if (!Array.isArray(keys)) return this.file(keys, interval, instance)
    this.several++
    for (const key of keys) this.file(key, interval, instance)
  }

  /** An instance that shows all rows of its key stands for them in the index, where there is one. */
  keep({ interval, keys }: Placement, instance: Maintained): void {
    if (interval === undefined && !Array.isArray(keys) && this.index.spec.each === undefined) this.index.keep(keys, instance)
  }

  remove({ interval, keys }: Placement, instance: Maintained): void {
    if (!Array.isArray(keys)) this.index.giveBack(keys, instance)
    if (--this.size === 0) this.indexes.release(this.table, this.index)
    if (!Array.isArray(keys)) return this.unfile(keys, interval, instance)
    this.several--
    for (const key of keys) this.unfile(key, interval, instance)
  }

  /** Files an instance under some keys more and others no more. */
  refile(lost: Placement, gained: Placement, instance: Maintained): void {
    for (const key of listOf(lost.keys)) this.unfile(key, lost.interval, instance)
    for (const key of listOf(gained.keys)) this.file(key, gained.interval, instance)
  }

  /** From here on rows are found by an index. */
  fileRows(): void {
    if (!this.options.byId) this.indexes.file(this.table, this.index)
  }

  /** Shows one changed record to the instances it concerns; `loose` finds those for a state without a fixed key. */
  route({ after, before, place }: Write, loose: Loose): void {
    const { newKeys, newValue, oldKeys, oldValue } = this.index.states(before, after)
    const simple = this.several === 0 && this.index.spec.each === undefined && this.index.spec.range === undefined
    if (simple && oldKeys !== dynamic && newKeys !== dynamic) {
      if (!sameKeys(oldKeys, newKeys)) this.show(oldKeys, place, undefined)
      this.show(newKeys, place, after)
      return
    }
    const shown = new Set<Maintained>()
    const show = (doc: Obj | undefined, routed: boolean) => (instance: Maintained): void => {
      if (shown.has(instance)) return
      shown.add(instance)
      instance.update(place, doc, routed)
    }
    if (newKeys === dynamic) loose(after!, show(after, false))
    else this.find(newKeys, newValue, show(after, this.options.exact))
    if (oldKeys === dynamic) loose(before!, show(undefined, true))
    else if (!sameKeys(oldKeys, newKeys) || compare(oldValue, newValue) !== 0) this.find(oldKeys, oldValue, show(undefined, true))
  }

  /** The instances a state meets; all of them where it has no fixed key. */
  meeting(doc: Obj, everyone: Iterable<Maintained>, found: (instance: Maintained) => void): void {
    const keys = keysOf(doc, this.index.spec)
    if (keys === dynamic) for (const instance of everyone) found(instance)
    else this.find(keys, orderOf(doc, this.index.spec), found)
  }

  /**
   * The rows a new instance has to look at; undefined for one that is passed over, where the caller may pause. Changes may
   * come meanwhile: a row is looked up, and its keys compared, when its turn comes. `coarse` leads to rows without a fixed key.
   */
  *candidates({ interval, keys }: Placement, store: Store, coarse?: Coarse): Generator<Candidate | undefined, void, void> {
    const { byId, exact } = this.options
    if (!byId && this.size > 1) this.indexes.file(this.table, this.index)
    const { spec } = this.index
    const wanted = listOf(keys)
    const plain = plainOf(wanted)
    for (const place of byId || this.index.filed ? this.found(wanted, interval, store, coarse) : store.rows(this.table)) {
      const { doc } = place
      const own = keysOf(doc, spec)
      const meets = own === dynamic ? coarse === undefined || coarse.lane.mayMeet(coarse.placement, doc) : meet(own, plain, interval, orderOf(doc, spec))
      yield meets ? { place, routed: own !== dynamic && exact } : undefined
    }
  }

  private *found(wanted: ReadonlyArray<FiledKey>, interval: Placement["interval"], store: Store, coarse?: Coarse): Iterable<Live> {
    const { dynamicPlaces } = this.index
    if (wanted.length === 1 && dynamicPlaces.size === 0 && !this.options.byId) {
      // Under one key no row stands twice. Copied all the same: what is found may move while its reader pauses.
      for (const place of Array.from(this.index.places(wanted[0], interval))) if (isLive(place)) yield place
      return
    }
    const places = new Set<Place>()
    for (const key of wanted) {
      if (!this.options.byId) for (const place of this.index.places(key, interval)) places.add(place)
      else this.findById(key, store, places)
    }
    for (const place of dynamicPlaces.size === 0 ? none : coarse?.lane.placesOf(coarse.placement) ?? dynamicPlaces) places.add(place)
    for (const place of places) if (isLive(place)) yield place
  }

  /** The key of a record id is the id or its text. */
  private findById(key: FiledKey, store: Store, places: Set<Place>): void {
    const id = key instanceof RecordId ? key : typeof key === "string" ? Ids.parse(key) : undefined
    if (id?.table === this.table) places.add(store.placeOf(id))
  }

  private mayMeet({ interval, keys }: Placement, doc: Obj): boolean {
    const own = keysOf(doc, this.index.spec)
    return own === dynamic || meet(own, plainOf(listOf(keys)), interval, orderOf(doc, this.index.spec))
  }

  /** The rows that may meet a placement. */
  private *placesOf({ interval, keys }: Placement): Iterable<Place> {
    this.indexes.file(this.table, this.index)
    yield* this.index.dynamicPlaces
    for (const key of listOf(keys)) yield* this.index.places(key, interval)
  }

  /** Shows a row, or that it is no more, to the instances under one key of a lane without ranges. */
  private show(key: FiledKey, place: Place, doc: Obj | undefined): void {
    const filed = key === absent ? undefined : this.byKey.get(key)
    if (filed instanceof Set) for (const instance of filed) instance.update(place, doc, true)
    else if (filed !== undefined) (filed as Maintained).update(place, doc, true)
  }

  private find(keys: Keys, value: Value, found: (instance: Maintained) => void): void {
    if (Array.isArray(keys)) {
      for (const key of keys) this.find(key, value, found)
      return
    }
    const filed = keys === absent ? undefined : this.byKey.get(keys)
    if (filed instanceof IntervalTree) filed.find(value, found)
    else if (filed instanceof Set) for (const instance of filed) found(instance)
    else if (filed !== undefined) found(filed)
  }

  private file(key: FiledKey, interval: Placement["interval"], instance: Maintained): void {
    const filed = this.byKey.get(key)
    if (interval !== undefined) {
      const tree = filed instanceof IntervalTree ? filed : new IntervalTree<Maintained>()
      tree.add(interval, instance)
      if (tree !== filed) this.byKey.set(key, tree)
    } else if (filed === undefined) this.byKey.set(key, instance)
    else if (filed instanceof Set) filed.add(instance)
    else this.byKey.set(key, new Set([filed as Maintained, instance]))
  }

  private unfile(key: FiledKey, interval: Placement["interval"], instance: Maintained): void {
    const filed = this.byKey.get(key)
    if (filed instanceof IntervalTree) {
      filed.remove(interval!, instance)
      if (filed.isEmpty) this.byKey.delete(key)
    } else if (filed === instance || (filed instanceof Set && filed.delete(instance) && filed.size === 0)) this.byKey.delete(key)
  }
}

const listOf = (keys: Keys): ReadonlyArray<FiledKey> => (Array.isArray(keys) ? keys : [keys])

const plainOf = (keys: ReadonlyArray<FiledKey>): ReadonlySet<unknown> => new Set(keys.map(plainKey))

const meet = (own: Keys, wanted: ReadonlySet<unknown>, interval: Placement["interval"], value: Value): boolean =>
  someKey(own, (key) => wanted.has(plainKey(key))) && (interval === undefined || holdsValue(interval, value))

const none: ReadonlyArray<Place> = []
