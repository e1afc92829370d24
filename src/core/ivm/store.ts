/**
 * The records of this SSP, each held once: tables of immutable rows, versions (D4), and what was deleted.
 *
 * Rows are snapshots and never mutated, so a view may hold the row it last saw and compare by identity. Changes are
 * applied in two steps, `plan` (pure: what would each change do?) and `apply`, so that the plan can be made durable
 * in between and a failed write leaves nothing half done. Cost of either: O(1) per change plus the size of the record.
 */
import sortedBTree from "sorted-btree"
import { type Change, lostTable } from "../change.ts"
import { compareRecords, identical } from "../surql/order.ts"
import * as Ids from "../surql/recordId.ts"
import { inKeys } from "../surql/sources.ts"
import type { Obj, Range, RecordId, RecordKey } from "../surql/value.ts"
import { EdgeIndex } from "./edgeIndex.ts"
import { type Hash64, rowHash } from "./hash.ts"
import { Place } from "./place.ts"

const BTree = sortedBTree.default

/** One state of one record. `doc` holds the whole content, `id` included. */
export class Row {
  readonly place: Place
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj
  private high = 0
  private low = 0
  private hashed = false

  constructor(place: Place, id: RecordId, version: number, doc: Obj) {
    this.place = place
    this.id = id
    this.version = version
    this.doc = doc
  }

  hash(): Hash64 {
    if (!this.hashed) {
      const { high, low } = rowHash(this.id.text, this.version, undefined)
      this.high = high
      this.low = low
      this.hashed = true
    }
    return { high: this.high, low: this.low }
  }
}

/** What one change does to one record. `before` and `after` are both undefined only for a tombstone being loaded. */
export interface Write {
  readonly id: RecordId
  readonly place: Place
  readonly before: Row | undefined
  readonly after: Row | undefined
  /** The version this write leaves behind: of the row, or the last one of the deleted record. */
  readonly version: number
}

/** Deleted records whose version is remembered exactly; beyond it a floor per store keeps versions growing. */
export const maxTombstones = 1_000_000

class TableRows {
  /** Records and tombstones by key; those with other keys than numbers and text by their text. */
  private readonly places = new Map<number | string, Place>()
  private readonly others = new Map<string, Place>()
  private live = 0
  /** Ids in record-key order; built when somebody first scans the table, kept from then on. */
  private order: InstanceType<typeof BTree<RecordId, undefined>> | undefined = undefined

  get size(): number {
    return this.live
  }

  place({ key, text }: RecordId): Place | undefined {
    return typeof key === "number" || typeof key === "string" ? this.places.get(key) : this.others.get(text)
  }

  *rows(): Iterable<Row> {
    for (const { row } of this.places.values()) if (row !== undefined) yield row
    for (const { row } of this.others.values()) if (row !== undefined) yield row
  }

  /** Puts a record's state in its place; undefined: it is gone, and the place remembers its version. */
  put(place: Place, row: Row | undefined, version: number): void {
    const { row: before } = place
    if (!place.kept) {
      place.kept = true
      const { key, text } = place.id
      if (typeof key === "number" || typeof key === "string") this.places.set(key, place)
      else this.others.set(text, place)
    }
    if (row !== undefined) place.id = row.id
    place.row = row
    place.version = version
    if ((before === undefined) === (row === undefined)) return
    if (row === undefined) {
      this.live--
      this.order?.delete(place.id)
    } else {
      this.live++
      this.order?.set(place.id, undefined)
    }
  }

  forget(place: Place): void {
    const { key, text } = place.id
    place.kept = false
    if (typeof key === "number" || typeof key === "string") this.places.delete(key)
    else this.others.delete(text)
  }

  /** Rows in record-key order, from a key on. */
  *inOrder(from?: RecordId): Iterable<Row> {
    if (this.order === undefined) {
      this.order = new BTree<RecordId, undefined>(undefined, compareRecords)
      for (const row of this.rows()) this.order.set(row.id, undefined)
    }
    for (const id of this.order.keys(from)) {
      const row = this.place(id)?.row
      if (row !== undefined) yield row
    }
  }
}

/** Who is told of every record that moves, whatever moved it; it must not look at the store before it is asked. */
export interface StoreWatcher {
  readonly moved: (table: string, id: string) => void
  readonly cleared: () => void
}

export class Store {
  watcher: StoreWatcher | undefined = undefined
  private readonly tables = new Map<string, TableRows>()
  /** Places of deleted records, the longest deleted first. */
  private readonly tombstones = new Set<Place>()
  /** Records without a place were never deleted with a version above this. */
  private floor = 0
  private edgeIndex: EdgeIndex | undefined = undefined

  get(id: RecordId): Row | undefined {
    return this.tables.get(id.table)?.place(id)?.row
  }

  /** The row with this id text. */
  byText(table: string, text: string): Row | undefined {
    const id = Ids.parse(text)
    return id?.table === table ? this.get(id) : undefined
  }

  /** Where a record stands; a place of its own, not kept, where it was never seen. */
  placeOf(id: RecordId): Place {
    return this.tables.get(id.table)?.place(id) ?? new Place(id, this.floor)
  }

  /** Rows of a table in no particular order. */
  rows(table: string): Iterable<Row> {
    return this.tables.get(table)?.rows() ?? []
  }

  /** Rows of a table in record-key order. */
  rowsInOrder(table: string): Iterable<Row> {
    return this.tables.get(table)?.inOrder() ?? []
  }

  /** Rows with keys in a range, in order. Cost: O(log n) and the rows that are taken. */
  *rowsBetween(table: string, range: Range): Iterable<Row> {
    const from = range.from && Ids.make(table, range.from.value as RecordKey)
    for (const row of this.tables.get(table)?.inOrder(from) ?? []) {
      if (inKeys(range, row.id.key)) yield row
      // Before the range there is at most the key it excludes.
      else if (row.id.text !== from?.text) return
    }
  }

  size(table: string): number {
    return this.tables.get(table)?.size ?? 0
  }

  /** Whether anybody has asked for edges yet. */
  get hasEdges(): boolean {
    return this.edgeIndex !== undefined
  }

  /** The edges among the records, indexed from the first call on. */
  edges(): EdgeIndex {
    if (this.edgeIndex === undefined) {
      this.edgeIndex = new EdgeIndex()
      for (const table of this.tables.values()) for (const row of table.rows()) this.edgeIndex.move(undefined, row)
    }
    return this.edgeIndex
  }

  /** Tables that hold at least one record, sorted. */
  tableNames(): ReadonlyArray<string> {
    return [...this.tables].filter(([, table]) => table.size > 0).map(([name]) => name).sort()
  }

  /**
   * What each change would do, in order, later ones seeing earlier ones. `undefined` where a change does nothing:
   * deleting the unknown, a stale version, or content that is already so.
   */
  plan(changes: ReadonlyArray<Change>): ReadonlyArray<Write | undefined> {
    const [only] = changes
    if (changes.length === 1 && only !== undefined) {
      const place = this.placeOf(only.id)
      return [planOne(only, place, place.row, place.version)]
    }
    const staged = new Map<string, Write>()
    return changes.map((change) => {
      const earlier = staged.get(change.id.text)
      const place = earlier?.place ?? this.placeOf(change.id)
      const write = earlier === undefined ? planOne(change, place, place.row, place.version) : planOne(change, place, earlier.after, earlier.version)
      if (write !== undefined) staged.set(change.id.text, write)
      return write
    })
  }

  apply({ after, before, id, place, version }: Write): void {
    this.watcher?.moved(id.table, id.text)
    this.edgeIndex?.move(before, after)
    let table = this.tables.get(id.table)
    if (table === undefined) this.tables.set(id.table, (table = new TableRows()))
    if (after === undefined) {
      this.tombstones.add(place)
      if (id.table === lostTable) this.floor = Math.max(this.floor, version)
      if (this.tombstones.size > maxTombstones) this.forgetOldestTombstones()
    } else if (place.kept && place.row === undefined) this.tombstones.delete(place)
    table.put(place, after, version)
  }

  clear(): void {
    this.tables.clear()
    this.tombstones.clear()
    this.edgeIndex = undefined
    this.floor = 0
    this.watcher?.cleared()
  }

  private forgetOldestTombstones(): void {
    let left = maxTombstones / 2
    for (const place of this.tombstones) {
      if (left-- <= 0) return
      this.floor = Math.max(this.floor, place.version)
      this.tombstones.delete(place)
      this.tables.get(place.id.table)?.forget(place)
    }
  }
}

/** Several writes as one: per record from its first state to its last; what ends where it began is left out. */
export const netOf = (writes: ReadonlyArray<Write>): ReadonlyArray<Write> => {
  const net = new Map<string, Write>()
  for (const write of writes) {
    const first = net.get(write.id.text)
    net.set(write.id.text, first === undefined ? write : { ...write, before: first.before })
  }
  return [...net.values()]
}

/**
 * Whether two states of one record have the same content, its id aside. What stands in the document itself comes first, then
 * text, then what has parts: nearly always an early difference says it, and the rest is not even loaded.
 */
const sameContent = (a: Obj, b: Obj): boolean => {
  let left = 0
  let texts = false, parts = false
  for (const name in a) {
    const x = a[name], y = b[name]
    left++
    if (typeof x === "string" && typeof y === "string") texts = true
    else if (typeof x === "object" && typeof y === "object") parts = true
    else if (x !== y ? !Object.is(x, y) : y === undefined && !Object.hasOwn(b, name)) return false
  }
  for (const _ in b) left--
  if (left !== 0) return false
  if (texts) for (const name in a) if (typeof a[name] === "string" && a[name] !== b[name]) return false
  if (parts) for (const name in a) if (typeof a[name] === "object" && name !== "id" && a[name] !== b[name] && !(Object.hasOwn(b, name) && identical(a[name], b[name]))) return false
  return true
}

/** The id is the one that came: the same as before, but what a change brings is at hand, and the old one is cold. */
const planOne = (change: Change, place: Place, before: Row | undefined, lastVersion: number): Write | undefined => {
  const { id } = change
  if (change.op === "DELETE") return before === undefined ? undefined : { id, place, before, after: undefined, version: before.version }
  if (before === undefined) {
    const version = change.version ?? lastVersion + 1
    return { id, place, before, after: new Row(place, id, version, change.doc), version }
  }
  if (change.version !== undefined && change.version < before.version) return undefined
  const same = sameContent(before.doc, change.doc)
  if (same && (change.version === undefined || change.version === before.version)) return undefined
  // A version given twice with other content still makes a new state: nothing may be lost, and clients must see it.
  const version = change.version === undefined || change.version === before.version ? before.version + 1 : change.version
  return { id, place, before, after: new Row(place, id, version, change.doc), version }
}
