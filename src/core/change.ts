/**
 * A record change as it travels inside the service: what `/ingest` accepts once it is checked and typed.
 *
 * Why here: the same reading of the wire shape serves the SSP, the scheduler and bootstrap, and it is pure.
 */
import type { Obj, RecordId } from "./surql/value.ts"

export type Op = "CREATE" | "UPDATE" | "DELETE"

/** A checked change. `content` is the typed record without `id` and `_svc_rv`; ignored for DELETE. */
export interface Change {
  readonly op: Op
  readonly id: RecordId
  readonly content: Obj
  /** The version the record brought along (`_svc_rv`), if any. */
  readonly version: number | undefined
}
