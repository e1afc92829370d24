/**
 * The version a change leaves its record with (D4), for whoever decides versions over records as they are stored.
 *
 * The engine's store decides by the same rule over rows in memory; here it stands alone, because the scheduler decides
 * for a whole cluster and writes what it decided into the event.
 */
import type { Change } from "./change.ts"
import { identical } from "../surql/values/order.ts"
import type { Obj } from "../surql/values/value.ts"

/** A record as it is known; `doc` undefined: deleted, `version` is its last one. */
export interface Known {
  readonly version: number
  readonly doc: Obj | undefined
}

/**
 * What the record is afterwards; undefined for a change that is stale and dropped. Deleting the unknown leaves a
 * tombstone of the version `floor`: up to there versions were given out that nobody knows any more, so that what is
 * unknown may have had one of them.
 */
export const after = (known: Known | undefined, change: Change, floor = 0): Known | undefined => {
  if (change.op === "DELETE") return { version: known?.version ?? floor, doc: undefined }
  if (known?.doc === undefined) return { version: change.version ?? (known?.version ?? floor) + 1, doc: change.doc }
  if (change.version !== undefined && change.version < known.version) return undefined
  if (change.version !== undefined && change.version > known.version)
    return { version: change.version, doc: change.doc }
  // A version given twice with other content still makes a new state: nothing may be lost, and clients must see it.
  return identical(known.doc, change.doc) ? known : { version: known.version + 1, doc: change.doc }
}
