/**
 * Converts a row of the replica to its record. The id is kept apart from the content, so that most contents are plain
 * JSON and can be copied without being parsed.
 */
import * as Encode from "../../core/surql/values/encode.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { Obj, RecordId, Value } from "../../core/surql/values/value.ts"
import { ReplicaError, type ReplicaRecord, type ReplicaRow } from "../../ports/Replica.ts"

const damaged = (row: ReplicaRow, what: string, cause?: unknown): ReplicaError =>
  new ReplicaError({ reason: "damaged", message: `record ${row.id} of the replica: ${what}`, cause })

export const idOf = (row: ReplicaRow): RecordId => {
  const id = Ids.parse(row.id)
  if (id === undefined) throw damaged(row, "its id is not a record id")
  return id
}

/** The record's document, `id` included. */
export const docOf = (row: ReplicaRow, id: RecordId = idOf(row)): Obj => {
  let doc: Value
  try {
    doc = Encode.decode(row.content)
  } catch (cause) {
    throw damaged(row, "its content does not decode", cause)
  }
  // The document was just decoded, so no other code holds it.
  ;(doc as Record<string, Value>)["id"] = id
  return doc as Obj
}

export const recordOfRow = (row: ReplicaRow): ReplicaRecord => {
  const id = idOf(row)
  return { id, version: row.version, doc: docOf(row, id) }
}
