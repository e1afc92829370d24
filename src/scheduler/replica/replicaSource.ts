/**
 * A state of the replica as the evaluator reads it: records by id, tables and ranges in key order, edges.
 *
 * Rows are decoded one by one as they are taken. Records that links lead to are kept for the length of a query, because
 * many rows link to few. Rows that SQLite has ruled out are handed on as an empty record, which fails the same filter,
 * so that they are counted and the evaluator can pause among them.
 */
import type { Source } from "../../core/surql/evaluate/scope.ts"
import type { Obj, Range, RecordId } from "../../core/surql/values/value.ts"
import { docOf, idOf } from "../../node/replicaRows.ts"
import type { ReplicaRow, ReplicaSnapshot, RowFilter } from "../../ports/Replica.ts"

export interface ReplicaSource extends Source {
  /** The version of a record that has been read, or of any other. */
  readonly version: (id: RecordId) => number | undefined
  /** What the next reads of tables leave out, and how many rows they give at most. */
  readonly narrow: (where: RowFilter, atMost: number) => void
}

const keptRecords = 10_000
const ruledOut: Obj = {}

export const sourceOf = (snapshot: ReplicaSnapshot): ReplicaSource => {
  const versions = new WeakMap<RecordId, number>()
  const records = new Map<string, Obj | undefined>()
  let where: RowFilter = [],
    atMost = Infinity
  const read = (row: ReplicaRow): Obj => {
    const id = idOf(row)
    versions.set(id, row.version)
    return docOf(row, id)
  }
  function* rows(table: string, range?: Range): Iterable<Obj> {
    for (const row of snapshot.rows(table, range, { where, atMost })) yield row === undefined ? ruledOut : read(row)
  }
  return {
    record: (id) => {
      if (records.has(id.text)) return records.get(id.text)
      const row = snapshot.find(id)
      const doc = row && read(row)
      if (records.size >= keptRecords) records.clear()
      records.set(id.text, doc)
      return doc
    },
    rows,
    rowsBetween: rows,
    edges: snapshot.edges,
    tables: snapshot.tables,
    fields: snapshot.types,
    version: (id) => versions.get(id) ?? snapshot.find(id)?.version,
    narrow: (filter, most) => {
      where = filter
      atMost = most
    }
  }
}
