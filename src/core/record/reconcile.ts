/**
 * What a record in memory and the same record in the database say about each other: whether they differ, and the change
 * that takes memory to what the database has (D4, D20).
 *
 * Apart from the service that reads both, because bootstrap, restart, the periodic compare and integrity must never
 * disagree about what a difference is.
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

/** The same state of a record: records are replaced and never changed. */
export const same = (a: Known | undefined, b: Known | undefined): boolean =>
  a?.doc === b?.doc && a?.version === b?.version

/** The two sides of one record, which is missing where there is none. */
export interface Difference<K extends Known = Known> {
  readonly id: RecordId
  readonly known: K | undefined
  readonly found: Found | undefined
}

/**
 * A version that went back is no difference by itself: clients hold the higher one, and it never goes back for them.
 */
export const differs = (known: Known | undefined, found: Found | undefined): boolean =>
  known === undefined || found === undefined
    ? known !== undefined || found !== undefined
    : (found.version !== undefined && found.version > known.version) || !identical(known.doc, found.doc)

/**
 * Brings memory to what the database has. The database's own version wins where it is not behind; elsewhere the known
 * one grows by one.
 */
export const changeOf = ({ found, id, known }: Difference): Change => {
  const plain = { position: undefined, jobAssignee: undefined }
  if (found === undefined) return { op: "DELETE", id, doc: { id }, version: undefined, ...plain }
  const version = found.version !== undefined && found.version >= (known?.version ?? 0) ? found.version : undefined
  return { op: known === undefined ? "CREATE" : "UPDATE", id, doc: found.doc, version, ...plain }
}

/**
 * The differences in a stretch of a table: `found` are the records there, `between` the known ones between its ends,
 * and the known state of each found record is looked up. Records are matched by id and not by order, so that keys which
 * the database sorts otherwise show as differences at most, which are looked at again.
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

/** Most bytes of text in a stretch, so that few large records do not fill the heap on their way. */
export const stretchBytes = 2 ** 20
/** Records in the first stretch of a table, whose size is still unknown. */
const firstStretch = 100
/** Records whose text is measured. */
const sampled = 8

/** About how much text these records are. */
export const textBytes = (found: ReadonlyArray<Found>): number => {
  const step = Math.max(1, Math.floor(found.length / sampled))
  let bytes = 0
  let count = 0
  for (let i = 0; i < found.length; i += step, count++) bytes += encode(found[i]!.doc).length
  return count === 0 ? 0 : (bytes / count) * found.length
}

/**
 * How many records the next stretch of a table should have, `most` at most and about so many bytes of text, after
 * these; none of a new table.
 */
export const stretchSize = (found: ReadonlyArray<Found>, most: number, bytes = stretchBytes): number =>
  found.length === 0
    ? Math.min(firstStretch, most)
    : Math.max(1, Math.min(most, Math.floor((bytes * found.length) / textBytes(found))))

/** Keys behind `after` up to `last`; to the end of the table where there is no last. */
export const stretch = (after: RecordKey | undefined, last: RecordKey | undefined): Range =>
  new Range(
    after === undefined ? undefined : { value: after as Value, inclusive: false },
    last === undefined ? undefined : { value: last as Value, inclusive: true }
  )

/** The record that says that versions up to its own were given out and are not known any more. */
export const lostId: RecordId = Ids.make(lostTable, "versions")

/**
 * Says that versions up to this one were given out and are not known any more: records that are new from now on start
 * above it. A record made and deleted at once, so that it is durable like any other.
 */
export const lostVersions = (version: number): ReadonlyArray<Change> => [
  changeOf({ id: lostId, known: undefined, found: { id: lostId, doc: { id: lostId }, version } }),
  changeOf({ id: lostId, known: undefined, found: undefined })
]
