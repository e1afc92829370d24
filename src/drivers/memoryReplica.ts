/**
 * `Replica` in memory: rows as text in a tree that is copied at no cost.
 *
 * For tests, simulations and schedulers without a disk. It keeps the same texts as the layer on disk, so that both
 * answer alike; a frozen state is a copy of the tree that shares all nodes until one side changes.
 */
import { Effect, Layer } from "effect"
import sortedBTree from "sorted-btree"
import { bucketOf } from "../core/integrity/merkle.ts"
import { keyText } from "../core/surql/values/keyText.ts"
import { compareStrings } from "../core/surql/values/order.ts"
import type { RecordId } from "../core/surql/values/value.ts"
import { idOf, recordOfRow } from "../node/database/replicaRecord.ts"
import { Replica, type ReplicaRecord, type ReplicaShape, type ReplicaTable } from "../ports/Replica.ts"
import { storedText } from "./shared/keptText.ts"
import {
  chunkOf,
  mayPass,
  type PageQuery,
  type PlacedRow,
  type StateReader,
  type StoredRecord,
  snapshotOf,
  storedRecord
} from "./shared/replicaRows.ts"

const BTree = sortedBTree.default
type Tree<A> = InstanceType<typeof BTree<string, A>>

/** One state of the replica. */
interface State {
  seq: number
  whole: boolean
  tables: ReadonlyArray<ReplicaTable>
  /** Rows by table, then key. */
  rows: Tree<StoredRecord>
  /** Edge records by direction, end, table and key. */
  ends: Tree<StoredRecord>
  /** Versions of deleted records by id text: never read in order. */
  tombstones: Map<string, number>
  /** Places of the rows of each Merkle bucket, by table; made on first use. */
  buckets: Map<string, Set<string>> | undefined
}

const tree = <A>(): Tree<A> => new BTree<string, A>(undefined, compareStrings)

const empty = (): State => ({
  seq: 0,
  whole: false,
  tables: [],
  rows: tree(),
  ends: tree(),
  tombstones: new Map(),
  buckets: undefined
})

/** Joins the parts of a key by a character that no stored table name contains. */
const place = (...parts: ReadonlyArray<string>): string => parts.join("\u0000")

const endsOf = ({ key, source, table, target }: StoredRecord): ReadonlyArray<string> =>
  source === undefined || target === undefined
    ? []
    : [
        place("out", storedText(source), storedText(table), key),
        place("in", storedText(target), storedText(table), key)
      ]

const bucketPlace = ({ id, table }: StoredRecord): string => place(storedText(table), String(bucketOf(id)))

const toBucket = (buckets: Map<string, Set<string>>, at: string, row: StoredRecord): void => {
  const wanted = bucketPlace(row)
  const places = buckets.get(wanted)
  if (places === undefined) buckets.set(wanted, new Set([at]))
  else places.add(at)
}

const inBucket = (state: State, table: string, index: number): ReadonlyArray<ReplicaRecord> => {
  if (state.buckets === undefined) {
    state.buckets = new Map()
    for (const [at, row] of state.rows.entries()) toBucket(state.buckets, at, row)
  }
  const places = state.buckets.get(place(storedText(table), String(index)))
  return [...(places ?? [])].sort(compareStrings).map((at) => recordOfRow(state.rows.get(at)!))
}

const remove = (state: State, at: string): void => {
  const old = state.rows.get(at)
  if (old === undefined) return
  for (const end of endsOf(old)) state.ends.delete(end)
  state.buckets?.get(bucketPlace(old))?.delete(at)
  state.rows.delete(at)
}

const write = (state: State, { doc, id, version }: ReplicaRecord): void => {
  const at = place(storedText(id.table), keyText(id.key))
  remove(state, at)
  if (doc === undefined) {
    state.tombstones.set(id.text, version)
    return
  }
  const row = storedRecord(id, version, doc)
  state.rows.set(at, row)
  if (state.buckets !== undefined) toBucket(state.buckets, at, row)
  for (const end of endsOf(row)) state.ends.set(end, row)
}

/** The entries whose key begins with a prefix, in order. */
function* under(rows: Tree<StoredRecord>, prefix: string, from: string = prefix): Iterable<StoredRecord> {
  for (const [at, row] of rows.entries(from)) {
    if (!at.startsWith(prefix)) return
    yield row
  }
}

const page = (rows: Tree<StoredRecord>, { from, size, table, to, where }: PageQuery): ReadonlyArray<PlacedRow> => {
  const out: Array<PlacedRow> = []
  const prefix = place(storedText(table), "")
  for (const row of under(rows, prefix, prefix + (from?.text ?? ""))) {
    if (from?.open === true && row.key === from.text) continue
    if (to !== undefined) {
      const c = compareStrings(row.key, to.text)
      if (c > 0 || (c === 0 && to.open)) break
    }
    if (
      out.push({ key: row.key, row: mayPass(row.content, where) ? row : undefined, chars: row.content.length }) >= size
    )
      break
  }
  return out
}

const names = ({ rows, tables }: State): ReadonlyArray<string> => {
  const found = new Set(tables.map(({ name }) => name))
  let at = rows.minKey()
  while (at !== undefined) {
    const { table } = rows.get(at)!
    found.add(table)
    at = rows.nextHigherKey(`${storedText(table)}\u0001`)
  }
  return [...found].sort(compareStrings)
}

const readerOf = (state: State): StateReader => ({
  seq: state.seq,
  find: (table, key) => state.rows.get(place(storedText(table), key)),
  page: (wanted) => page(state.rows, wanted),
  edges: (record, direction, table) =>
    Array.from(
      under(
        state.ends,
        table === undefined
          ? place(direction, storedText(record.text), "")
          : place(direction, storedText(record.text), storedText(table), "")
      ),
      idOf
    ),
  names: () => names(state),
  types: (table) => state.tables.find(({ name }) => name === table)?.types
})

const make = (): ReplicaShape => {
  let state = empty()
  const frozen = new Map<number, State>()
  const copy = (): State => ({
    ...state,
    rows: state.rows.clone(),
    ends: state.ends.clone(),
    tombstones: new Map(),
    buckets: undefined
  })
  const current = (): StateReader => readerOf(state)
  const known = (id: RecordId): ReadonlyArray<ReplicaRecord> => {
    const row = current().find(id.table, keyText(id.key))
    const version = state.tombstones.get(id.text)
    return row !== undefined ? [recordOfRow(row)] : version !== undefined ? [{ id, version, doc: undefined }] : []
  }
  return {
    applied: Effect.sync(() => state.seq),
    current: (ids) => Effect.sync(() => new Map(ids.flatMap(known).map((record) => [record.id.text, record]))),
    commit: ({ records, through }) =>
      Effect.sync(() => {
        if (through < state.seq) return
        for (const record of records) write(state, record)
        state.seq = through
      }),
    catchUp: Effect.void,
    sync: Effect.void,
    freeze: (id) =>
      Effect.sync(() => {
        if (!frozen.has(id)) frozen.set(id, copy())
        return frozen.get(id)!.seq
      }),
    thaw: (id) => Effect.sync(() => void frozen.delete(id)),
    snapshot: Effect.sync(() => snapshotOf(readerOf([...frozen.values()].at(-1) ?? copy()))),
    records: (table, after, size) => Effect.sync(() => chunkOf(current(), table, after, size)),
    bucket: (table, index) => Effect.sync(() => inBucket(state, table, index)),
    names: Effect.sync(() => names(state)),
    tables: Effect.sync(() => state.tables),
    putTables: (tables) => Effect.sync(() => void (state.tables = tables)),
    whole: Effect.sync(() => state.whole),
    markWhole: Effect.sync(() => void (state.whole = true)),
    clear: Effect.sync(() => void (state = empty()))
  }
}

/** Keeps everything in memory alone. */
export const layer: Layer.Layer<Replica> = Layer.sync(Replica, make)
