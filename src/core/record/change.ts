/**
 * A record change inside the service, and the decoder of `/ingest` bodies (D3, D4, D5).
 *
 * Why by hand and not by a Schema: this is the hottest decoder of the service, and its faults must name every wrong
 * field at once. `protocol/wire.ts` declares the same shape; a test holds the two together.
 */
import { Either } from "effect"
import * as JsonText from "../jsonText.ts"
import * as Docs from "../surql/values/docs.ts"
import * as Json from "../surql/values/json.ts"
import * as Ids from "../surql/values/recordId.ts"
import { type Obj, type RecordId, sameRecord } from "../surql/values/value.ts"
import * as Trace from "../telemetry/traceContext.ts"
import { isCount, isMapping } from "../typeGuards.ts"

export type Op = "CREATE" | "UPDATE" | "DELETE"

/** Position of a change in the scheduler's log (D5). */
interface Position {
  readonly seq: number
  readonly logId: string | undefined
  readonly epoch: number | undefined
  /** The change at the next position belongs to the same step; views show neither without the other. */
  readonly continues?: true
}

/** A checked and typed change. */
export interface Change {
  readonly op: Op
  readonly id: RecordId
  /** The full new record with `id` as a record id and without `_svc_rv`; for DELETE only `id`. */
  readonly doc: Obj
  /** The version the record brought along (`_svc_rv`), if any; always undefined for DELETE. */
  readonly version: number | undefined
  readonly position: Position | undefined
  /** The SSP that is to run the job whose record this is (D5, D35), if the scheduler named one. */
  readonly jobAssignee: string | undefined
  /** W3C trace context of the change, well-formed. */
  readonly traceparent?: string
}

interface Fault {
  /** Where: `record.id`, `[3].op`; empty for the body itself. */
  readonly path: string
  readonly reason: string
}

/** Why a change is refused: the fault, and where in the JSON it lies. */
export interface ChangeRefused {
  readonly code: "INVALID_REQUEST" | "INVALID_OPERATION"
  readonly message: string
  readonly details: ReadonlyArray<Fault>
}

/** The reserved field that carries a record's version (D4). */
export const versionField = "_svc_rv"

/**
 * Deleting this record stands for all records whose versions were lost: no new record starts at or below its version
 * (D4).
 */
export const lostTable = "_svc_lost"

const ops: { readonly [text: string]: Op } = { CREATE: "CREATE", UPDATE: "UPDATE", DELETE: "DELETE" }

const opOf = (value: unknown): Op | undefined => {
  if (typeof value !== "string") return undefined
  const exact = value === "CREATE" || value === "UPDATE" || value === "DELETE"
  const upper = exact ? value : value.toUpperCase()
  return Object.hasOwn(ops, upper) ? ops[upper] : undefined
}

const shown = (value: unknown): string => {
  const text = value === undefined ? "nothing" : JsonText.write(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** Declared types by path (`tags.*` for elements), as the database writes them. */
export type Types = { readonly [path: string]: string }

/** The declared types of a table; undefined if the table is unknown. */
export type Schema = (table: string) => Types | undefined

/**
 * Types a record once (D1). For a known table, a change that names its types names all that JSON cannot tell apart: an
 * unnamed text that looks like a datetime is text. A change that names none is typed as declared, and undeclared values
 * by their form.
 */
const typedBy = (record: object, types: Types | undefined, declared: Types | undefined): Obj => {
  if (types !== undefined) return Json.fromJsonTyped(record, types, declared === undefined ? "untyped" : "plain") as Obj
  return (declared === undefined ? Json.fromJson(record) : Json.fromJsonTyped(record, declared)) as Obj
}

/** The typed document without the reserved field. `DELETE` needs only the id. */
const docOf = (
  id: RecordId,
  op: Op,
  record: { readonly [key: string]: unknown },
  types: Types | undefined,
  schema: Schema | undefined
): Obj => {
  if (op === "DELETE") return { id }
  const typed = typedBy(record, types, schema?.(id.table))
  const doc = Docs.docOf(id.table, typed, versionField)
  doc["id"] = id
  return doc
}

const recordFaults = (
  record: { readonly [key: string]: unknown },
  id: RecordId | undefined,
  op: Op | undefined,
  at: string
): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  if (op === "DELETE") return faults
  const own = Object.hasOwn(record, "id") ? record["id"] : undefined
  if (own !== undefined && id !== undefined) {
    const parsed = typeof own === "string" ? Ids.parseLenient(own) : undefined
    if (parsed === undefined || !sameRecord(parsed, id))
      faults.push({ path: `${at}record.id`, reason: `must be the same record as id (${id.text}), got ${shown(own)}` })
  }
  const version = Object.hasOwn(record, versionField) ? record[versionField] : undefined
  if (version !== undefined && !isCount(version))
    faults.push({
      path: `${at}record.${versionField}`,
      reason: `must be a non-negative integer, got ${shown(version)}`
    })
  return faults
}

/** Faults of the optional fields beyond the specification's four. */
const extensionFaults = (json: { readonly [key: string]: unknown }, at: string): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  const types = json["types"]
  if (
    types !== undefined &&
    types !== null &&
    !(isMapping(types) && Object.values(types).every((type) => typeof type === "string"))
  ) {
    faults.push({ path: `${at}types`, reason: "must be an object of { path: type name }" })
  }
  for (const key of ["seq", "epoch"] as const) {
    if (json[key] !== undefined && json[key] !== null && !isCount(json[key]))
      faults.push({ path: `${at}${key}`, reason: `must be a non-negative integer, got ${shown(json[key])}` })
  }
  const continues = json["step_continues"]
  if (continues !== undefined && continues !== null && typeof continues !== "boolean")
    faults.push({ path: `${at}step_continues`, reason: `must be true or false, got ${shown(continues)}` })
  for (const key of ["log_id", "job_assignee", "traceparent"] as const) {
    if (json[key] !== undefined && json[key] !== null && typeof json[key] !== "string")
      faults.push({ path: `${at}${key}`, reason: `must be a string, got ${shown(json[key])}` })
  }
  return faults
}

const positionOf = (json: { readonly [key: string]: unknown }): Position | undefined => {
  const seq = json["seq"]
  if (typeof seq !== "number") return undefined
  const logId = json["log_id"]
  const epoch = json["epoch"]
  const position: Position = {
    seq,
    logId: typeof logId === "string" ? logId : undefined,
    epoch: typeof epoch === "number" ? epoch : undefined
  }
  return json["step_continues"] === true ? { ...position, continues: true } : position
}

const refusal = (faults: ReadonlyArray<Fault>, code: ChangeRefused["code"]): ChangeRefused => ({
  code,
  message:
    faults.length === 1
      ? `${faults[0]!.path === "" ? "body" : faults[0]!.path} ${faults[0]!.reason}`
      : `${faults.length} faults in the record change, see details`,
  details: faults
})

const decodeAt = (json: unknown, at: string, schema: Schema | undefined): Either.Either<Change, ChangeRefused> => {
  if (!isMapping(json))
    return Either.left(
      refusal(
        [{ path: at === "" ? "" : at.slice(0, -1), reason: `must be a record change object, got ${shown(json)}` }],
        "INVALID_REQUEST"
      )
    )
  const { table, id: idText, op: opText, record } = json
  const faults: Array<Fault> = []
  if (typeof table !== "string" || table === "")
    faults.push({ path: `${at}table`, reason: `must be a non-empty string, got ${shown(table)}` })
  const op = opOf(opText)
  if (op === undefined)
    faults.push({ path: `${at}op`, reason: `must be CREATE, UPDATE or DELETE, got ${shown(opText)}` })
  const id = typeof idText === "string" ? Ids.parseLenient(idText) : undefined
  if (id === undefined)
    faults.push({ path: `${at}id`, reason: `must be a record id of the form <table>:<key>, got ${shown(idText)}` })
  else if (typeof table === "string" && id.table !== table)
    faults.push({ path: `${at}id`, reason: `must be a record of table ${shown(table)}, got ${shown(idText)}` })
  if (!isMapping(record)) faults.push({ path: `${at}record`, reason: `must be an object, got ${shown(record)}` })
  else faults.push(...recordFaults(record, id, op, at))
  faults.push(...extensionFaults(json, at))
  if (faults.length > 0 || op === undefined || id === undefined || !isMapping(record)) {
    return Either.left(
      refusal(
        faults,
        typeof opText === "string" && op === undefined && faults.length === 1 ? "INVALID_OPERATION" : "INVALID_REQUEST"
      )
    )
  }
  const types = isMapping(json["types"]) ? (json["types"] as Types) : undefined
  const version = op !== "DELETE" && Object.hasOwn(record, versionField) ? record[versionField] : undefined
  const assignee = json["job_assignee"]
  const traceparent = json["traceparent"] === undefined ? undefined : Trace.valid(json["traceparent"])
  const change: Change = {
    op,
    id,
    doc: docOf(id, op, record, types, schema),
    version: typeof version === "number" ? version : undefined,
    position: positionOf(json),
    jobAssignee: typeof assignee === "string" ? assignee : undefined
  }
  return Either.right(traceparent === undefined ? change : { ...change, traceparent })
}

/** Reads one record change from JSON. Every fault is named; nothing is guessed. */
export const decodeChange = (json: unknown, schema?: Schema): Either.Either<Change, ChangeRefused> =>
  decodeAt(json, "", schema)

/**
 * Reads one record change or a non-empty array of them (D5); one bad element refuses the whole array, naming its index.
 */
export const decodeChanges = (json: unknown, schema?: Schema): Either.Either<ReadonlyArray<Change>, ChangeRefused> => {
  if (!Array.isArray(json)) return Either.map(decodeAt(json, "", schema), (change) => [change])
  if (json.length === 0)
    return Either.left(refusal([{ path: "", reason: "must not be an empty array" }], "INVALID_REQUEST"))
  const changes: Array<Change> = []
  const faults: Array<Fault> = []
  let code: ChangeRefused["code"] = "INVALID_OPERATION"
  for (let i = 0; i < json.length; i++) {
    const change = decodeAt(json[i], `[${i}].`, schema)
    if (Either.isRight(change)) changes.push(change.right)
    else {
      faults.push(...change.left.details)
      if (change.left.code === "INVALID_REQUEST") code = "INVALID_REQUEST"
    }
  }
  return faults.length > 0 ? Either.left(refusal(faults.slice(0, 100), code)) : Either.right(changes)
}
