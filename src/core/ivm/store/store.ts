/**
 * The records of this SSP, each held once: their slots by table, versions (D4), and deleted ids.
 *
 * Documents are never mutated, so a view may hold the one it last saw and compare by identity. Changes are applied in
 * two steps, `plan` (pure: what would each change do?) and `apply`, so that the plan can be made durable in between and
 * a failed write leaves nothing half done. Cost of either: O(1) per change plus the size of the record.
 */
import { type Change, lostTable } from "../../record/change.ts"
import * as Version from "../../record/version.ts"
import { drain, type Slices } from "../../surql/evaluate/scope.ts"
import { identical } from "../../surql/values/order.ts"
import * as Ids from "../../surql/values/recordId.ts"
import type { Obj, Range, RecordId } from "../../surql/values/value.ts"
import { isOwn } from "../../surreal/surrealSchema.ts"
import { EdgeIndex } from "./edgeIndex.ts"
import { type Live, RecordSlot, type Write } from "./recordSlot.ts"
import { Table } from "./table.ts"
import { defaultTombstones, Tombstones } from "./tombstones.ts"

/** One state of one record, read at one time. */
export interface RecordState {
  readonly id: RecordId
  readonly version: number
  /** The whole content, `id` included. */
  readonly doc: Obj
}

/** Receives every record that changes, whatever changed it. It must not read the store in the call, only later. */
interface StoreWatcher {
  readonly moved: (id: RecordId) => void
  readonly cleared: () => void
}

export class Store {
  watcher: StoreWatcher | undefined = undefined
  private readonly tables = new Map<string, Table>()
  private readonly deleted = new Tombstones()
  /** Deleted records of the service's own tables, until the step ends. */
  private readonly unremembered: Array<RecordSlot> = []
  /** Upper bound of the last versions of deleted records that have no slot any more. */
  private floor = 0
  private edgeIndex: EdgeIndex | undefined = undefined
  /** The remaining records while the index of edges is built. */
  private indexing: Slices<void> | undefined = undefined
  /** The table of the last look-up: each name from the wire is a new text, which a map would have to hash. */
  private last: Table
  private readonly maxTombstones: number

  /** Initial value of `last`. */
  private readonly none: Table
  /** Seed for the hashes of texts. */
  private readonly hashSeed: number

  constructor(maxTombstones = defaultTombstones, hashSeed = 0) {
    this.maxTombstones = maxTombstones
    this.hashSeed = hashSeed
    this.last = this.none = new Table("", hashSeed)
  }

  get(id: RecordId): RecordState | undefined {
    const slot = this.tables.get(id.table)?.slot(id)
    return slot && rowOf(slot)
  }

  docOf(id: RecordId): Obj | undefined {
    return this.tables.get(id.table)?.slot(id)?.doc
  }

  /** The record with this id text. */
  byText(table: string, text: string): RecordState | undefined {
    const id = Ids.parse(text)
    return id?.table === table ? this.get(id) : undefined
  }

  /** The table with this name; a missing one is made. */
  table(name: string): Table {
    let table = this.tables.get(name)
    if (table === undefined) this.tables.set(name, (table = new Table(name, this.hashSeed)))
    return table
  }

  /** Ends the following of a table; an unused table is forgotten. */
  quit(name: string, end: (table: Table) => void): void {
    const table = this.tables.get(name)
    if (table === undefined) return
    end(table)
    this.forgetUnused(table)
  }

  private forgetUnused(table: Table): void {
    if (!table.isUnused) return
    this.tables.delete(table.name)
    if (this.last === table) this.last = this.none
  }

  /** The slot of a record; for an unknown record a new one that the table does not keep yet. */
  slotOf(id: RecordId): RecordSlot {
    return this.slotIn(this.seen(id.table), id)
  }

  private slotIn(table: Table, id: RecordId): RecordSlot {
    return table.slot(id) ?? new RecordSlot(table, id, Math.max(this.floor, table.floor))
  }

  /** The table with this name; a missing one is made but not kept. */
  private seen(name: string): Table {
    if (this.last.name === name) return this.last
    const table = this.tables.get(name)
    return table === undefined ? new Table(name, this.hashSeed) : (this.last = table)
  }

  /** Records of a table in no particular order, each read when its turn comes. */
  rows(table: string): Iterable<Live> {
    return this.tables.get(table)?.rows() ?? []
  }

  /** Records of a table in the order of their keys, each read when its turn comes. */
  rowsInOrder(table: string): Iterable<Live> {
    return this.tables.get(table)?.inOrder() ?? []
  }

  /** Records with keys in a range, in order. */
  liveBetween(table: string, range: Range): Iterable<Live> {
    return this.tables.get(table)?.between(range) ?? []
  }

  /** States of the records with keys in a range, to be stored by the caller. */
  *rowsBetween(table: string, range: Range): Iterable<RecordState> {
    for (const slot of this.liveBetween(table, range)) yield rowOf(slot)!
  }

  /** Number of deleted records whose version is remembered. */
  get tombstones(): number {
    return this.deleted.size
  }

  /** Number of rows that views hold of records, deleted ones included; walks all records. */
  holdings(): number {
    let holdings = 0
    for (const table of this.tables.values()) for (const slot of table.all()) holdings += slot.holdings
    return holdings
  }

  size(table: string): number {
    return this.tables.get(table)?.size ?? 0
  }

  /** Approximate bytes of a table's records. */
  bytes(table: string): number {
    return this.tables.get(table)?.bytes ?? 0
  }

  /** Whether the index of edges was ever asked for. */
  get hasEdges(): boolean {
    return this.edgeIndex !== undefined
  }

  /** Approximate bytes of the index of edges. */
  get edgeBytes(): number {
    return this.edgeIndex === undefined ? 0 : this.edgeIndex.bytes
  }

  /** The index of edges between the records; built by the first call. */
  edges(): EdgeIndex {
    if (this.edgeIndex === undefined || this.indexing !== undefined) drain(this.indexEdges())
    return this.edgeIndex!
  }

  /** Builds the index of edges in slices. It follows changes made in a pause; {@link edges} completes it at once. */
  *indexEdges(): Slices<void> {
    if (this.edgeIndex === undefined) {
      this.edgeIndex = new EdgeIndex()
      this.indexing = this.indexInto(this.edgeIndex)
    }
    // Several callers may build it in turn: each continues the same iterator.
    for (let { indexing } = this; indexing !== undefined; indexing = this.indexing)
      if (indexing.next().done !== true) yield
      else if (this.indexing === indexing) this.indexing = undefined
  }

  private *indexInto(index: EdgeIndex): Slices<void> {
    let n = 0
    for (const table of this.tables.values())
      for (const { doc, id } of table.rows()) {
        index.move(id, undefined, doc)
        if (++n % 500 === 0) yield
      }
  }

  /** Tables that hold at least one record, sorted. */
  tableNames(): ReadonlyArray<string> {
    return [...this.tables]
      .filter(([, table]) => table.size > 0)
      .map(([name]) => name)
      .sort()
  }

  /**
   * The writes of some changes, in order; later ones see earlier ones. `undefined` for a change without effect:
   * deletion of an unknown record, an old version, or equal content.
   */
  plan(changes: ReadonlyArray<Change>): ReadonlyArray<Write | undefined> {
    const only = changes[0]
    if (changes.length === 1 && only !== undefined) {
      const table = this.seen(only.id.table)
      const slot = this.slotIn(table, only.id)
      return [planOne(only, slot, table.docOf(slot, only.id), slot.version)]
    }
    const staged = new Map<string, Write>()
    return changes.map((change) => {
      const earlier = staged.get(change.id.text)
      const slot = earlier?.slot ?? this.slotOf(change.id)
      const write =
        earlier === undefined
          ? planOne(change, slot, slot.doc, slot.version)
          : planOne(change, slot, earlier.after, earlier.version)
      if (write !== undefined) staged.set(change.id.text, write)
      return write
    })
  }

  /** Applies one write as a step of its own. */
  apply(write: Write): void {
    this.write(write)
    this.forgetDeleted()
  }

  /**
   * Writes a record's new state and updates the indexes of its table. A deleted record is forgotten only at the end of
   * the step: until then a page that shows it finds it by its position.
   */
  write({ after, before, id, slot, version }: Write): void {
    this.watcher?.moved(id)
    this.edgeIndex?.move(slot, before, after)
    const buried = before === undefined && slot.kept
    const table = slot.kept ? slot.keeper : this.table(id.table)
    table.put(slot, after, version)
    const { indexes } = table
    for (let i = 0; i < indexes.length; i++) indexes[i]!.move(slot, before, after)
    if (after !== undefined) {
      if (buried) this.deleted.remove()
      return
    }
    if (id.table === lostTable) this.floor = Math.max(this.floor, version)
    if (buried) return
    if (isOwn(id.table)) this.unremembered.push(slot)
    else this.deleted.add(slot)
  }

  /** Forgets deleted records: all of the service's own tables, and of others the oldest above the limit. */
  forgetDeleted(): void {
    const { unremembered } = this
    while (unremembered.length > 0) {
      const slot = unremembered.pop()!
      slot.keeper.forgetDeleted(slot)
    }
    while (this.deleted.size > this.maxTombstones) this.forgetOldestTombstones()
  }

  /** Whether no index or router follows this table and no view has a row of it. */
  isUnread(name: string): boolean {
    const table = this.tables.get(name)
    if (table === undefined) return true
    if (table.routers.length + table.indexes.length > 0) return false
    for (const slot of table.all()) if (slot.holdings > 0) return false
    return true
  }

  /** Forgets an unread table and its deleted records, with pauses. */
  *forgetTable(name: string): Slices<void> {
    const table = this.tables.get(name)
    if (table === undefined) return
    let n = 0
    for (const slot of [...table.all()]) {
      const { doc, id } = slot
      if (doc === undefined) this.deleted.remove()
      else {
        this.watcher?.moved(id)
        this.edgeIndex?.move(id, doc, undefined)
        table.put(slot, undefined, slot.version)
      }
      table.forget(slot)
      if (++n % 500 === 0) yield
    }
    this.forgetUnused(table)
  }

  clear(): void {
    for (const table of this.tables.values()) table.clear()
    this.tables.clear()
    this.last = this.none
    this.deleted.clear()
    this.edgeIndex = this.indexing = undefined
    this.floor = 0
    this.watcher?.cleared()
  }

  /** Forgets half of the tombstones at once, because finding the oldest ones walks all of them. */
  private forgetOldestTombstones(): void {
    for (const slot of this.deleted.oldest(Math.ceil(this.deleted.size / 2))) {
      this.floor = Math.max(this.floor, slot.version)
      slot.keeper.forget(slot)
    }
  }
}

/** Combines writes: one for each record, from its first state to its last; without those that end where they began. */
export const netWrites = (writes: ReadonlyArray<Write>): ReadonlyArray<Write> => {
  const net = new Map<string, Write>()
  for (const write of writes) {
    const first = net.get(write.id.text)
    net.set(write.id.text, first === undefined ? write : { ...write, before: first.before })
  }
  return [...net.values()]
}

/**
 * Whether two states of one record have the same content, ids aside. Compares plain fields first, then texts, then
 * lists and objects: nearly always an early difference decides. The new state decides which is which, since the old one
 * is cold and even the type of its values is not read before its turn.
 */
const sameContent = (old: Obj, now: Obj): boolean => {
  let left = 0
  let texts = false,
    parts = false
  for (const name in now) {
    const y = now[name]
    left++
    if (typeof y === "string") texts = true
    else if (typeof y === "object") parts = true
    else if (old[name] !== y ? !Object.is(old[name], y) : y === undefined && !Object.hasOwn(old, name)) return false
  }
  for (const _ in old) left--
  if (left !== 0) return false
  if (texts) for (const name in now) if (typeof now[name] === "string" && now[name] !== old[name]) return false
  if (parts)
    for (const name in now)
      if (
        typeof now[name] === "object" &&
        name !== "id" &&
        now[name] !== old[name] &&
        !(Object.hasOwn(old, name) && identical(old[name], now[name]))
      )
        return false
  return true
}

const rowOf = ({ doc, id, version }: RecordSlot): RecordState | undefined => doc && { id, version, doc }

/** Uses the id of the change: it equals the stored one, but is in the cache, and the stored one is cold. */
const planOne = (
  { doc, id, op, version: given }: Change,
  slot: RecordSlot,
  before: Obj | undefined,
  last: number
): Write | undefined => {
  if (op === "DELETE") return before === undefined ? undefined : { id, slot, before, after: undefined, version: last }
  if (before === undefined) return { id, slot, before, after: doc, version: Version.createdVersion(last, given) }
  const version = Version.writtenVersion(last, given, before, doc, sameContent)
  return version === undefined || version === last ? undefined : { id, slot, before, after: doc, version }
}
