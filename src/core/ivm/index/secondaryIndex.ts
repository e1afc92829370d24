/**
 * A secondary index of one table: which rows have this key, in this range of values?
 *
 * A lone view reads its table once without an index. The index is filled when a second view asks; all shapes that need
 * the same one share it, and it is dropped with the last of them (the engine counts). Rows without a fixed key are
 * `unindexable`. Cost per change: O(1) if the keys stay, two set operations per changed key; with an order two of
 * O(log n).
 *
 * A view that shows every row of a key covers the key: the view is filed under it, its rows are not, so they are not
 * listed twice and a change updates one list. A view that grows large stops covering its key: its rows are filed while
 * they still are few.
 */
import sortedBTree from "sorted-btree"
import { compare } from "../../surql/values/order.ts"
import type { Obj, Value } from "../../surql/values/value.ts"
import { type FiledKey, FiledMap, plainKey } from "../store/denseMap.ts"
import { absent, type KeySpec, type Keys, keysOf, rangeValueOf, sameKeys, unindexable } from "../store/indexKey.ts"
import type { Interval } from "../store/intervalTree.ts"
import { isLive, type Live, RecordSlot } from "../store/recordSlot.ts"

const BTree = sortedBTree.default

/** Index keys of the two states of a record. */
interface States {
  readonly before: Obj | undefined
  readonly after: Obj | undefined
  readonly oldKeys: Keys
  readonly newKeys: Keys
  readonly oldValue: Value
  readonly newValue: Value
  /** The views that cover the old and the new key, found when the record was moved. */
  oldCovering: CoveringView | undefined
  newCovering: CoveringView | undefined
}

interface Filing {
  /** `add` and `remove` answer the view that covers the key. */
  readonly add: (key: FiledKey, value: Value, slot: RecordSlot) => CoveringView | undefined
  readonly remove: (key: FiledKey, value: Value, slot: RecordSlot) => CoveringView | undefined
  readonly slots: (key: FiledKey, interval: Interval | undefined) => Iterable<RecordSlot>
  /** Rows filed, plus views that cover a key; walks all keys. */
  readonly entries: () => number
}

/** A view that holds all rows of a key. */
export interface CoveringView {
  /** Number of rows that the view holds. */
  readonly matches: number
  readonly keptPlaces: () => Iterable<RecordSlot>
}

/** A view with more rows covers no key: filing them all would hold up the caller that releases the view. */
export const maxCovered = 1024

/** Rows of one key up to which an array is searched: it takes few cache lines. More rows are a set. */
const few = 64

/**
 * Rows by key alone. A single row is stored without a set: unique keys are common, and a set for each costs more than
 * all else.
 */
class ByKey implements Filing {
  private readonly byKey = new FiledMap<RecordSlot | Array<RecordSlot> | Set<RecordSlot> | CoveringView>()
  private readonly spec: KeySpec

  constructor(spec: KeySpec) {
    this.spec = spec
  }

  slots(key: FiledKey): Iterable<RecordSlot> {
    const filed = this.byKey.get(key)
    if (filed === undefined) return none
    if (filed instanceof RecordSlot) return [filed]
    return Array.isArray(filed) || filed instanceof Set ? filed : filed.keptPlaces()
  }

  add(key: FiledKey, _: Value, slot: RecordSlot): CoveringView | undefined {
    const filed = this.byKey.get(key)
    if (filed === undefined) this.byKey.set(key, slot)
    else if (filed instanceof RecordSlot) this.byKey.set(key, [filed, slot])
    else if (filed instanceof Set) filed.add(slot)
    else if (!Array.isArray(filed)) {
      this.outgrow(key, filed, slot)
      return filed
    } else if (filed.length < few) filed.push(slot)
    else this.byKey.set(key, new Set(filed).add(slot))
    return undefined
  }

  remove(key: FiledKey, _: Value, slot: RecordSlot): CoveringView | undefined {
    const filed = this.byKey.get(key)
    if (filed === slot) this.byKey.delete(key)
    else if (filed instanceof Set) {
      if (filed.delete(slot) && filed.size === 0) this.byKey.delete(key)
    } else if (Array.isArray(filed)) {
      const at = filed.indexOf(slot)
      const last = at < 0 ? undefined : filed.pop()
      if (last !== undefined && last !== slot) filed[at] = last
      if (filed.length === 0) this.byKey.delete(key)
    } else if (!(filed instanceof RecordSlot)) return filed
    return undefined
  }

  entries(): number {
    let entries = 0
    for (const filed of this.byKey.values())
      entries += Array.isArray(filed) ? filed.length : filed instanceof Set ? filed.size : 1
    return entries
  }

  keep(key: FiledKey, covering: CoveringView): void {
    const filed = this.byKey.get(key)
    if (filed === undefined || filed instanceof RecordSlot || Array.isArray(filed) || filed instanceof Set)
      this.byKey.set(key, covering)
  }

  /** Files the rows of a key that the view covered. */
  giveBack(key: FiledKey, covering: CoveringView): void {
    if (this.byKey.get(key) !== covering) return
    this.byKey.delete(key)
    for (const slot of this.keptUnder(key, covering)) this.add(key, undefined, slot)
  }

  /**
   * An entry with twice the allowed rows covers its key no longer: the row that exceeds the limit files them all. No
   * row of this step is missed: indexes are updated before views, so the first row of the step has already been checked
   * here.
   */
  private outgrow(key: FiledKey, covering: CoveringView, slot: RecordSlot): void {
    if (covering.matches >= 2 * maxCovered) this.byKey.set(key, new Set(this.keptUnder(key, covering)).add(slot))
  }

  /** The view's rows that have this key now; others have no fixed key, or were moved by this step. */
  private *keptUnder(key: FiledKey, covering: CoveringView): Iterable<RecordSlot> {
    for (const slot of covering.keptPlaces()) if (isLive(slot) && sameKeys(keysOf(slot.doc, this.spec), key)) yield slot
  }
}

/** A place in the order; `edge` is 0 for a row, -1 or 1 for the place before or after all rows of a value. */
interface Spot {
  readonly key: unknown
  readonly value: Value
  readonly edge: -1 | 0 | 1
  readonly text: string
  readonly slot: RecordSlot | undefined
}

const rankOf = (key: unknown): number =>
  typeof key === "number" ? 0 : typeof key === "string" ? 1 : typeof key === "boolean" ? 2 : key === null ? 3 : 4

/** Any total order of keys works. */
const compareKeys = (a: unknown, b: unknown): number => {
  if (a === b || (a !== a && b !== b)) return 0
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : 1
  if (typeof a === "number" && typeof b === "number" && a === a && b === b) return a < b ? -1 : 1
  return rankOf(a) - rankOf(b) || Number(a !== a) - Number(b !== b) || Number(a) - Number(b)
}

const compareSpots = (a: Spot, b: Spot): number =>
  compareKeys(a.key, b.key) ||
  compare(a.value, b.value) ||
  a.edge - b.edge ||
  (a.text === b.text ? 0 : a.text < b.text ? -1 : 1)

/** Rows by key, then by value. */
class ByValue implements Filing {
  private readonly tree = new BTree<Spot, undefined>(undefined, compareSpots)

  add(key: FiledKey, value: Value, slot: RecordSlot): undefined {
    this.tree.set({ key: plainKey(key), value, edge: 0, text: slot.id.text, slot }, undefined)
  }

  remove(key: FiledKey, value: Value, slot: RecordSlot): undefined {
    this.tree.delete({ key: plainKey(key), value, edge: 0, text: slot.id.text, slot })
  }

  entries(): number {
    return this.tree.size
  }

  *slots(filed: FiledKey, interval: Interval | undefined): Iterable<RecordSlot> {
    const key = plainKey(filed)
    const from = interval?.from,
      to = interval?.to
    const first: Spot = {
      key,
      value: from?.value,
      edge: from === undefined || from.inclusive ? -1 : 1,
      text: "",
      slot: undefined
    }
    const last: Spot | undefined = to && {
      key,
      value: to.value,
      edge: to.inclusive ? 1 : -1,
      text: "",
      slot: undefined
    }
    for (const spot of this.tree.keys(first)) {
      if (compareKeys(spot.key, key) !== 0 || (last !== undefined && compareSpots(spot, last) > 0)) return
      yield spot.slot!
    }
  }
}

export class SecondaryIndex {
  readonly spec: KeySpec
  private filing: ByKey | ByValue | undefined = undefined
  /** The rows that are still to be filed. */
  private rest: Iterator<Live> | undefined = undefined
  private readonly loose = new Set<RecordSlot>()
  /** Keys of the last pair of states: the index and the shapes that share it ask one after the other. */
  private last: States = {
    before: undefined,
    after: undefined,
    oldKeys: absent,
    newKeys: absent,
    oldValue: undefined,
    newValue: undefined,
    oldCovering: undefined,
    newCovering: undefined
  }

  constructor(spec: KeySpec) {
    this.spec = spec
  }

  /** Whether the index has all rows. */
  get filed(): boolean {
    return this.filing !== undefined && this.rest === undefined
  }

  get isBegun(): boolean {
    return this.filing !== undefined
  }

  /** Number of rows and covering views here; walks all keys. */
  entries(): number {
    return this.loose.size + (this.filing?.entries() ?? 0)
  }

  /**
   * Begins to fill the index; from here on it must be told of each change by {@link move}. Between two pieces
   * ({@link fileOn}) a row may change before it is filed: it is then filed as it is, and filing it again does nothing
   * in an index with an order. An index without one takes a third of the time, and is filled in one piece.
   */
  file(rows: Iterable<Live>): void {
    this.filing = this.spec.range === undefined ? new ByKey(this.spec) : new ByValue()
    this.rest = rows[Symbol.iterator]()
    if (this.spec.range === undefined) this.fileOn(Infinity)
  }

  /** Files up to so many more rows. */
  fileOn(most: number): void {
    const { filing, rest, spec } = this
    if (filing === undefined || rest === undefined) return
    for (let left = most; left > 0; left--) {
      const next = rest.next()
      if (next.done === true) {
        this.rest = undefined
        return
      }
      this.add(filing, keysOf(next.value.doc, spec), rangeValueOf(next.value.doc, spec), next.value)
    }
  }

  /** The rows filed under a key, with a value in the interval. */
  slots(key: FiledKey, interval: Interval | undefined): Iterable<RecordSlot> {
    return this.filing?.slots(key, interval) ?? none
  }

  /** Makes a view cover a key until {@link uncover}; does nothing if another view covers it. */
  cover(key: FiledKey, covering: CoveringView): void {
    if (this.filing instanceof ByKey) this.filing.keep(key, covering)
  }

  /** Files the rows of a covered key. Cost: O(these rows), at most some thousands. */
  uncover(key: FiledKey, covering: CoveringView): void {
    if (this.filing instanceof ByKey) this.filing.giveBack(key, covering)
  }

  /** The rows without a fixed key. */
  get unindexableSlots(): ReadonlySet<RecordSlot> {
    return this.loose
  }

  /** Index keys of a record's two states. */
  states(before: Obj | undefined, after: Obj | undefined): States {
    const { last, spec } = this
    if (last.before === before && last.after === after) return last
    const ordered = spec.range !== undefined
    return (this.last = {
      before,
      after,
      oldKeys: before === undefined ? absent : keysOf(before, spec),
      newKeys: after === undefined ? absent : keysOf(after, spec),
      oldValue: ordered && before !== undefined ? rangeValueOf(before, spec) : undefined,
      newValue: ordered && after !== undefined ? rangeValueOf(after, spec) : undefined,
      oldCovering: undefined,
      newCovering: undefined
    })
  }

  /** Files a record under its new keys. */
  move(slot: RecordSlot, before: Obj | undefined, after: Obj | undefined): void {
    const { filing } = this
    if (filing === undefined) return
    const states = this.states(before, after)
    const { newKeys, newValue, oldKeys, oldValue } = states
    if (sameKeys(oldKeys, newKeys) && (this.spec.range === undefined || compare(oldValue, newValue) === 0)) return
    if (before !== undefined) states.oldCovering = this.remove(filing, oldKeys, oldValue, slot)
    if (after !== undefined) states.newCovering = this.add(filing, newKeys, newValue, slot)
  }

  private add(filing: Filing, keys: Keys, value: Value, slot: RecordSlot): CoveringView | undefined {
    if (keys === unindexable) this.loose.add(slot)
    else if (Array.isArray(keys)) for (const key of keys) filing.add(key, value, slot)
    else return filing.add(keys, value, slot)
    return undefined
  }

  private remove(filing: Filing, keys: Keys, value: Value, slot: RecordSlot): CoveringView | undefined {
    if (keys === unindexable) this.loose.delete(slot)
    else if (Array.isArray(keys)) for (const key of keys) filing.remove(key, value, slot)
    else return filing.remove(keys, value, slot)
    return undefined
  }
}

const none: ReadonlyArray<RecordSlot> = []
