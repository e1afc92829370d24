/**
 * A state of the replica as the evaluator reads it: records by id, tables and ranges in key order, edges.
 *
 * Rows are decoded one by one. Records that links lead to are kept for the length of a query, because many rows link to
 * few. Rows that SQLite has ruled out are passed on as an empty record, which fails the same filter, so that they are
 * counted and the evaluator can pause among them.
 */
import { type Budget, type Source, spendBytes } from "../../core/surql/evaluate/scope.ts"
import type { Obj, Range, RecordId } from "../../core/surql/values/value.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { docOf, idOf } from "../../node/database/replicaRecord.ts"
import type { ReplicaRow, ReplicaSnapshot, RowFilter } from "../../ports/Replica.ts"

export interface ReplicaSource extends Source {
  /** Version of a record, also of one that the query has not read. */
  readonly version: (id: RecordId) => number | undefined
  /** Sets the filter and the most rows of the next reads of tables. */
  readonly narrow: (where: RowFilter, atMost: number) => void
}

const keptRecords = 10_000
const keptShare = 4
const ruledOut: Obj = {}

/** Memory of a decoded record: a fixed part, and this many bytes for each stored character. */
const recordBytes = 256
const bytesPerCharacter = 2

const bytesOf = ({ content }: ReplicaRow): number => recordBytes + bytesPerCharacter * content.length

/** Version and memory of a record that was read. */
interface Known {
  readonly version: number
  readonly bytes: number
}

/**
 * Makes a source. A linked record is charged to the budget when it is read; kept records take a part of the budget's
 * bytes. `ownTables`: whether the service's own tables are listed.
 */
export const sourceOf = (snapshot: ReplicaSnapshot, budget: Budget, ownTables: boolean): ReplicaSource => {
  const keptBytes = budget.byteLimit / keptShare
  const known = new WeakMap<RecordId, Known>()
  const records = new Map<string, Obj | undefined>()
  let where: RowFilter = [],
    atMost = Infinity,
    kept = 0
  const read = (row: ReplicaRow): Obj => {
    const id = idOf(row)
    known.set(id, { version: row.version, bytes: bytesOf(row) })
    return docOf(row, id)
  }
  function* rows(table: string, range?: Range): Iterable<Obj> {
    for (const row of snapshot.rows(table, range, { where, atMost })) yield row === undefined ? ruledOut : read(row)
  }
  return {
    record: (id) => {
      if (records.has(id.text)) return records.get(id.text)
      const row = snapshot.find(id)
      const bytes = row === undefined ? recordBytes : bytesOf(row)
      spendBytes(budget, bytes)
      const doc = row && read(row)
      if (records.size >= keptRecords || kept + bytes > keptBytes) {
        records.clear()
        kept = 0
      }
      kept += bytes
      records.set(id.text, doc)
      return doc
    },
    rows,
    rowsBetween: rows,
    edges: snapshot.edges,
    tables: ownTables ? snapshot.tables : () => snapshot.tables().filter((table) => !isOwn(table)),
    fields: snapshot.types,
    bytesOf: (id) => known.get(id)?.bytes ?? 0,
    version: (id) => known.get(id)?.version ?? snapshot.find(id)?.version,
    narrow: (filter, most) => {
      where = filter
      atMost = most
    }
  }
}
