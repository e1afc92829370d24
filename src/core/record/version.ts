/**
 * The version a change leaves its record with (D4).
 *
 * One rule for two places: the engine's store decides over records in memory, the scheduler decides for a whole cluster
 * and writes the version into the event.
 */

import { identical } from "../surql/values/order.ts"
import type { Obj } from "../surql/values/value.ts"
import type { Change } from "./change.ts"

/** A known record; `doc` undefined: deleted, `version` is its last one. */
export interface Known {
  readonly version: number
  readonly doc: Obj | undefined
}

/** Version of a new record; `last`: version of the deleted record, or the floor. */
export const createdVersion = (last: number, given: number | undefined): number => given ?? last + 1

/**
 * Version after a write of an existing record: `last` if nothing changes, undefined for a stale write, which is
 * dropped.
 */
export const writtenVersion = (
  last: number,
  given: number | undefined,
  before: Obj,
  doc: Obj,
  same: (before: Obj, doc: Obj) => boolean
): number | undefined => {
  if (given !== undefined && given !== last) return given < last ? undefined : given
  // Other content under the same version is a new state: it must not be lost, and clients must see it.
  return same(before, doc) ? last : last + 1
}

/**
 * The record after a change; undefined for a stale change, which is dropped. Deleting an unknown record leaves a
 * tombstone with version `floor`: the record may have had a forgotten version up to the floor.
 */
export const after = (known: Known | undefined, change: Change, floor = 0): Known | undefined => {
  if (change.op === "DELETE") return { version: known?.version ?? floor, doc: undefined }
  const { doc, version: given } = change
  if (known?.doc === undefined) return { version: createdVersion(known?.version ?? floor, given), doc }
  const version = writtenVersion(known.version, given, known.doc, doc, identical)
  if (version === undefined) return undefined
  return version === known.version ? known : { version, doc }
}
