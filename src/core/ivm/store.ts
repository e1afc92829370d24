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

const BTree = sortedBTree.default

/** One state of one record. `doc` holds the whole content, `id` included. */
export class Row {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj
  private cachedHash: Hash64 | undefined = undefined

  constructor(id: RecordId, version: number, doc: Obj) {
    this.id = id
    this.version = version
    this.doc = doc
  }

  hash(): Hash64 {
    return (this.cachedHash ??= rowHash(this.id.text, this.version, undefined))
  }
}

/** What one change does to one record. `before` and `after` are both undefined only for a tombstone being loaded. */
export interface Write {
  readonly id: RecordId
  readonly before: Row | undefined
  readonly after: Row | undefined
  /** The version this write leaves behind: of the row, or the last one of the deleted record. */
  readonly version: number
  /** Where the record stands, so that it need not be looked up again. */
  readonly cell?: Cell | undefined
}

/** Deleted records whose version is remembered exactly; beyond it a floor per store keeps versions growing. */
export const maxTombstones = 1_000_000

/** Where a record stands in its table: found once when a change is planned, written through when it is applied. */
interface Cell {
  row: Row | undefined
}

class TableRows {
  private readonly cells = new Map<string, Cell>()
  /** Ids in record-key order; built when somebody first scans the table, kept from then on. */
  private order: InstanceType<typeof BTree<RecordId, undefined>> | undefined = undefined

  get size(): number {
    return this.cells.size
  }

  cell(text: string): Cell | undefined {
    return this.cells.get(text)
  }

  *rows(): Iterable<Row> {
    for (const { row } of this.cells.values()) if (row !== undefined) yield row
  }

  put(row: Row): void {
    const cell = this.cells.get(row.id.text)
    if (cell !== undefined) cell.row = row
    else {
      this.order?.set(row.id, undefined)
      this.cells.set(row.id.text, { row })
    }
  }

  remove(id: RecordId): void {
    const cell = this.cells.get(id.text)
    if (cell === undefined) return
    cell.row = undefined
    this.cells.delete(id.text)
    this.order?.delete(id)
  }

  /** Rows in record-key order, from a key on. */
  *inOrder(from?: RecordId): Iterable<Row> {
    if (this.order === undefined) {
      this.order = new BTree<RecordId, undefined>(undefined, compareRecords)
      for (const row of this.rows()) this.order.set(row.id, undefined)
    }
    for (const id of this.order.keys(from)) {
      const row = this.cells.get(id.text)?.row
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
  private readonly tombstones = new Map<string, number>()
  /** Records not in `tombstones` were never deleted with a version above this. */
  private floor = 0
  private edgeIndex: EdgeIndex | undefined = undefined

  get(id: RecordId): Row | undefined {
    return this.tables.get(id.table)?.cell(id.text)?.row
  }

  /** The row with this id text, of a table already known. */
  byText(table: string, text: string): Row | undefined {
    return this.tables.get(table)?.cell(text)?.row
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
      const cell = this.tables.get(only.id.table)?.cell(only.id.text)
      const before = cell?.row
      return [planOne(only, before, before?.version ?? this.lastVersion(only.id.text), cell)]
    }
    const staged = new Map<string, Write>()
    return changes.map((change) => {
      const earlier = staged.get(change.id.text)
      const before = earlier === undefined ? this.get(change.id) : earlier.after
      const lastVersion = earlier?.version ?? before?.version ?? this.lastVersion(change.id.text)
      const write = planOne(change, before, lastVersion)
      if (write !== undefined) staged.set(change.id.text, write)
      return write
    })
  }

  apply(write: Write): void {
    const { after, before, cell, id } = write
    this.watcher?.moved(id.table, id.text)
    this.edgeIndex?.move(before, after)
    if (after !== undefined) {
      if (cell !== undefined && before !== undefined && cell.row === before) {
        cell.row = after
        return
      }
      let table = this.tables.get(id.table)
      if (table === undefined) this.tables.set(id.table, (table = new TableRows()))
      table.put(after)
      if (this.tombstones.size > 0) this.tombstones.delete(id.text)
      return
    }
    this.tables.get(id.table)?.remove(id)
    this.tombstones.set(id.text, write.version)
    if (id.table === lostTable) this.floor = Math.max(this.floor, write.version)
    if (this.tombstones.size > maxTombstones) this.forgetOldestTombstones()
  }

  clear(): void {
    this.tables.clear()
    this.tombstones.clear()
    this.edgeIndex = undefined
    this.floor = 0
    this.watcher?.cleared()
  }

  private lastVersion(text: string): number {
    return this.tombstones.get(text) ?? this.floor
  }

  private forgetOldestTombstones(): void {
    let left = maxTombstones / 2
    for (const [text, version] of this.tombstones) {
      if (left-- <= 0) return
      this.floor = Math.max(this.floor, version)
      this.tombstones.delete(text)
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

/** Whether two states of a record have the same content; numbers and the like first, since they stand in the document itself. */
const sameContent = (a: Obj, b: Obj): boolean => {
  for (const key in a) {
    const value = a[key]
    if (typeof value !== "object" && typeof value !== "string" && !Object.is(value, b[key])) return false
  }
  return identical(a, b)
}

const planOne = (change: Change, before: Row | undefined, lastVersion: number, cell?: Cell): Write | undefined => {
  if (change.op === "DELETE") {
    return before === undefined ? undefined : { id: before.id, before, after: undefined, version: before.version }
  }
  if (before === undefined) {
    const version = change.version ?? lastVersion + 1
    return { id: change.id, before, after: new Row(change.id, version, change.doc), version }
  }
  if (change.version !== undefined && change.version < before.version) return undefined
  const same = sameContent(before.doc, change.doc)
  if (same && (change.version === undefined || change.version === before.version)) return undefined
  // A version given twice with other content still makes a new state: nothing may be lost, and clients must see it.
  const version = change.version === undefined || change.version === before.version ? before.version + 1 : change.version
  return { id: before.id, before, after: new Row(before.id, version, change.doc), version, cell }
}
