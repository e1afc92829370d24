/**
 * Rows of records in a replica, and reads over them: common to all layers of `Replica`.
 *
 * A layer only gives pages of one state in key order; ranges, growing page sizes, counting and decoding are the same
 * for all, so that a query answers the same over each.
 */
import { contentOf } from "../../core/integrity/merkle.ts"
import { recordOf } from "../../core/surql/evaluate/paths.ts"
import { isInRange } from "../../core/surql/evaluate/select/sources.ts"
import { isKey, keyText, textRangeOf } from "../../core/surql/values/keyText.ts"
import { field, type Obj, type Range, type RecordId, type RecordKey } from "../../core/surql/values/value.ts"
import { idOf, recordOfRow } from "../../node/database/replicaRecord.ts"
import type { FilteredRows, ReplicaRecord, ReplicaRow, ReplicaSnapshot, RowFilter } from "../../ports/Replica.ts"

/** A record as a layer writes it. `source` and `target` are the ends of an edge record. */
export interface StoredRecord extends ReplicaRow {
  readonly table: string
  readonly key: string
  readonly source: string | undefined
  readonly target: string | undefined
}

export const storedRecord = (id: RecordId, version: number, doc: Obj): StoredRecord => {
  const source = recordOf(field(doc, "in")),
    target = source && recordOf(field(doc, "out"))
  return {
    table: id.table,
    key: keyText(id.key),
    id: id.text,
    version,
    content: contentOf(doc),
    source: target && source?.text,
    target: target?.text
  }
}

/** A bound of a page; `open`: the text itself is excluded. */
interface Edge {
  readonly text: string
  readonly open: boolean
}

export interface PageQuery {
  readonly table: string
  readonly from: Edge | undefined
  readonly to: Edge | undefined
  readonly size: number
  readonly where: RowFilter
}

/** A row with its key; without the row if the filter rules it out. */
export interface PlacedRow {
  readonly key: string
  readonly row: ReplicaRow | undefined
  /** Length of the content that was read for it. */
  readonly chars: number
}

/** One state of the replica, as a layer reads it. */
export interface StateReader {
  readonly seq: number
  readonly find: (table: string, key: string) => ReplicaRow | undefined
  readonly page: (page: PageQuery) => ReadonlyArray<PlacedRow>
  readonly edges: ReplicaSnapshot["edges"]
  readonly names: () => ReadonlyArray<string>
  readonly types: ReplicaSnapshot["types"]
}

const smallest = 64
const largest = 1_024
/** Characters of a page, which then takes a few milliseconds to read. */
const pageChars = 1_000_000

const weight = (page: ReadonlyArray<PlacedRow>): number => page.reduce((sum, { chars }) => sum + chars, 0)

const nextSize = (size: number, chars: number): number =>
  chars > pageChars ? Math.max(1, size >> 2) : chars < pageChars >> 2 ? Math.min(largest, size * 2) : size

const noFilter: RowFilter = []

const edgeOf = (bound: Range["from"], low: boolean): Edge | undefined | "none" => {
  if (bound === undefined) return undefined
  if (!isKey(bound.value)) return "none"
  const { first, last } = textRangeOf(bound.value)
  return { text: bound.inclusive === low ? first : last, open: !bound.inclusive }
}

/** A state of the replica, as `Replica` offers it. */
export const snapshotOf = (reader: StateReader): ReplicaSnapshot => {
  let read = 0
  function* rows(table: string, range: Range | undefined, atMost: number, where: RowFilter): FilteredRows {
    const low = edgeOf(range?.from, true),
      high = edgeOf(range?.to, false)
    // A bound that no key can equal: each key is compared with it.
    const check = range !== undefined && (low === "none" || high === "none") ? range : undefined
    const to = high === "none" ? undefined : high
    let from = low === "none" ? undefined : low
    let left = atMost,
      size = smallest
    while (left > 0) {
      const wanted = check === undefined ? Math.min(size, left) : size
      const page = reader.page({ table, from, to, size: wanted, where })
      read += page.length
      for (const { row } of page) {
        if (check !== undefined && row !== undefined && !isInRange(check, idOf(row).key)) continue
        yield row
        if (--left === 0) return
      }
      if (page.length < wanted) return
      from = { text: page.at(-1)!.key, open: true }
      size = nextSize(size, weight(page))
    }
  }
  return {
    seq: reader.seq,
    find: (id) => {
      const row = reader.find(id.table, keyText(id.key))
      if (row !== undefined) read++
      return row
    },
    rows: (table, range, options) => ({
      [Symbol.iterator]: () =>
        rows(table, range, options?.atMost ?? Infinity, options?.where ?? noFilter)[Symbol.iterator]()
    }),
    edges: reader.edges,
    tables: reader.names,
    types: reader.types,
    rowsRead: () => read
  }
}

/** Records behind a key, as `Replica.records` answers. */
export const chunkOf = (
  reader: StateReader,
  table: string,
  after: RecordKey | undefined,
  size: number
): ReadonlyArray<ReplicaRecord> => {
  const from = after === undefined ? undefined : { text: keyText(after), open: true }
  return reader.page({ table, from, to: undefined, size, where: noFilter }).map(({ row }) => recordOfRow(row!))
}

/** Whether a content may pass a filter: false only if it certainly does not. */
export const mayPass = (content: string, where: RowFilter): boolean => {
  if (where.length === 0) return true
  const doc = JSON.parse(content) as { readonly [key: string]: unknown }
  if (Object.hasOwn(doc, "$")) return true
  return where.every(([name, value]) => {
    const found = Object.hasOwn(doc, name) ? doc[name] : undefined
    return found === value || (typeof found === "object" && found !== null && !Array.isArray(found))
  })
}
