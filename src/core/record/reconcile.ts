/**
 * Comparison of a record in memory with the same record in the database: whether they differ, and the change that
 * repairs memory (D4, D20).
 *
 * Apart from the services that read both sides, because bootstrap, restart, the periodic compare and integrity must
 * agree on what a difference is.
 */

import { encode } from "../surql/values/encode.ts"
import { identical } from "../surql/values/order.ts"
import * as Ids from "../surql/values/recordId.ts"
import { type Obj, Range, type RecordId, type RecordKey, type Value } from "../surql/values/value.ts"
import { type Change, lostTable } from "./change.ts"

/** A record as the database has it; `version` is its reserved field. */
export interface Found {
  readonly id: RecordId
  readonly doc: Obj
  readonly version: number | undefined
}

/** A record as memory has it. */
export interface Known {
  readonly id: RecordId
  readonly doc: Obj
  readonly version: number
}

/** Whether two readings are the same state of a record: records are replaced and never changed. */
export const isSameState = (a: Known | undefined, b: Known | undefined): boolean =>
  a?.doc === b?.doc && a?.version === b?.version

/** The two sides of one record; a side without the record is undefined. */
export interface Difference<K extends Known = Known> {
  readonly id: RecordId
  readonly known: K | undefined
  readonly found: Found | undefined
}

/**
 * A lower version in the database is no difference by itself: clients have the higher one, and versions never go back
 * for them.
 */
export const differs = (known: Known | undefined, found: Found | undefined): boolean =>
  known === undefined || found === undefined
    ? known !== undefined || found !== undefined
    : (found.version !== undefined && found.version > known.version) || !identical(known.doc, found.doc)

/**
 * The change that takes memory to the database's state. The database's version is used unless it is behind; otherwise
 * the known one plus 1.
 */
export const changeOf = ({ found, id, known }: Difference): Change => {
  const plain = { position: undefined, jobAssignee: undefined }
  if (found === undefined) return { op: "DELETE", id, doc: { id }, version: undefined, ...plain }
  const version = found.version !== undefined && found.version >= (known?.version ?? 0) ? found.version : undefined
  return { op: known === undefined ? "CREATE" : "UPDATE", id, doc: found.doc, version, ...plain }
}

/**
 * The differences in a stretch of a table: `found` are its records in the database, `between` the known ones between
 * its ends. Records are matched by id and not by order, so that keys which the database sorts differently show as
 * differences at worst, which are checked again.
 */
export const compare = <K extends Known>(
  found: ReadonlyArray<Found>,
  between: Iterable<K>,
  get: (id: RecordId) => K | undefined
): ReadonlyArray<Difference<K>> => {
  const differences: Array<Difference<K>> = []
  const here = new Set<string>()
  for (const record of found) {
    const known = get(record.id)
    here.add(record.id.text)
    if (differs(known, record)) differences.push({ id: record.id, known, found: record })
  }
  for (const known of between) if (!here.has(known.id.text)) differences.push({ id: known.id, known, found: undefined })
  return differences
}

/** Most bytes of text in a stretch, so that few large records do not fill the heap in flight. */
export const stretchBytes = 2 ** 20
/** Records in the first stretch of a table, whose size is still unknown. */
const firstStretch = 100
/** Number of records whose text is measured. */
const sampled = 8

/** Approximate bytes of the records' text. */
export const textBytes = (found: ReadonlyArray<Found>): number => {
  const step = Math.max(1, Math.floor(found.length / sampled))
  let bytes = 0
  let count = 0
  for (let i = 0; i < found.length; i += step, count++) bytes += encode(found[i]!.doc).length
  return count === 0 ? 0 : (bytes / count) * found.length
}

/**
 * Number of records for the next stretch of a table, at most `most` and about `bytes` of text, judged by the last
 * stretch.
 */
export const stretchSize = (found: ReadonlyArray<Found>, most: number, bytes = stretchBytes): number =>
  found.length === 0
    ? Math.min(firstStretch, most)
    : Math.max(1, Math.min(most, Math.floor((bytes * found.length) / textBytes(found))))

/** Range of the keys after `after` up to `last`; without `last` to the end of the table. */
export const stretchRange = (after: RecordKey | undefined, last: RecordKey | undefined): Range =>
  new Range(
    after === undefined ? undefined : { value: after as Value, inclusive: false },
    last === undefined ? undefined : { value: last as Value, inclusive: true }
  )

/** The record whose deletion carries the bound of {@link forgottenVersions}. */
export const lostId: RecordId = Ids.make(lostTable, "versions")

/**
 * Changes that set a lower bound for versions: versions up to this one were used and are forgotten, so new records
 * start above it. The changes make a record and delete it, so that the bound is durable like any other change.
 */
export const forgottenVersions = (version: number): ReadonlyArray<Change> => [
  changeOf({ id: lostId, known: undefined, found: { id: lostId, doc: { id: lostId }, version } }),
  changeOf({ id: lostId, known: undefined, found: undefined })
]
