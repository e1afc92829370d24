/**
 * The pull of a scheduler's snapshot (D20): every table in key order, page by page, typed once, all of one position.
 *
 * It only reads: what it has gathered is swapped in by who asked. A page that fails is asked for again a few times, because a
 * broken connection must not cost a bootstrap of a million records; a snapshot that moves means starting over.
 */
import { Data, Effect, Schedule } from "effect"
import { type Types, versionField } from "../core/change.ts"
import { isOwn } from "../core/surrealSchema.ts"
import * as Json from "../core/surql/json.ts"
import * as Ids from "../core/surql/recordId.ts"
import { tableName } from "../core/surql/text.ts"
import { type Obj, type RecordId, setField, type Value } from "../core/surql/value.ts"
import type { StoredPosition, StoredRecord } from "../ports/Database.ts"
import { type SchedulerClientShape, SchedulerError } from "../ports/SchedulerClient.ts"
import type { SspRegistered } from "../protocol/wire.ts"

/** The snapshot is not the one the registration froze: rows of two of them would be mixed. */
export class SnapshotMoved extends Data.TaggedError("SnapshotMoved")<{ readonly message: string }> {}

/** A whole snapshot, and where in the scheduler's log it stands. */
export interface Pulled {
  readonly records: ReadonlyArray<StoredRecord>
  readonly position: Omit<StoredPosition, "writes">
  readonly tables: ReadonlyArray<{ readonly name: string; readonly types: Types }>
}

/** Records asked for at once. */
export const pageSize = 1000

/** Waits between tries of one page. */
const patience = Schedule.intersect(Schedule.jittered(Schedule.exponential("200 millis")), Schedule.recurs(4))

const passing = ({ reason }: SchedulerError): boolean => reason === "unreachable" || reason === "overloaded"

const isMapping = (u: unknown): u is { readonly [key: string]: unknown } => typeof u === "object" && u !== null && !Array.isArray(u)

const unusable = (what: string): SchedulerError => new SchedulerError({ reason: "unreachable", message: `${what} is not answered as agreed` })

type Ask = (query: string, params?: { readonly [name: string]: unknown }) => Effect.Effect<unknown, SchedulerError | SnapshotMoved>

const asking = (client: SchedulerClientShape, seq: number): Ask => (query, params) =>
  Effect.gen(function*() {
    const answer = yield* Effect.retry(client.query(query, params), { while: passing, schedule: patience })
    if (answer.seq !== undefined && answer.seq !== seq) return yield* new SnapshotMoved({ message: `the snapshot is at ${answer.seq} and no longer at ${seq}` })
    return yield* Effect.try({ try: (): unknown => JSON.parse(answer.text), catch: () => unusable(query) })
  })

const tablesOf = (info: unknown): ReadonlyArray<string> | undefined =>
  isMapping(info) && isMapping(info["tables"]) ? Object.keys(info["tables"]).filter((name) => !isOwn(name)).sort() : undefined

/** A field as the database shows it (`DEFINE FIELD x ON t TYPE datetime ...`), or its type alone. */
const typeOf = (definition: unknown): string | undefined => {
  if (typeof definition !== "string") return undefined
  const declared = /\bTYPE\s+(.+?)(?=\s+(?:DEFAULT|VALUE|ASSERT|READONLY|REFERENCE|COMMENT|PERMISSIONS|FLEXIBLE|COMPUTED)\b|;?\s*$)/is.exec(definition)
  return declared?.[1] ?? (/^DEFINE\b/i.test(definition) ? undefined : definition)
}

export const typesOf = (info: unknown): Types => {
  const fields = isMapping(info) && isMapping(info["fields"]) ? info["fields"] : {}
  const types: Record<string, string> = {}
  for (const [path, definition] of Object.entries(fields)) {
    const type = typeOf(definition)
    if (type !== undefined && path !== "__proto__") types[path] = type
  }
  return types
}

/** A row as a record: its version taken out, its id and its fields typed (D1, D4). */
const toRecord = (row: unknown, table: string, types: Types): StoredRecord | undefined => {
  const idText = isMapping(row) ? row["id"] : undefined
  const id = typeof idText === "string" ? Ids.parseLenient(idText) : undefined
  if (!isMapping(row) || id === undefined || id.table !== table) return undefined
  const version = row[versionField]
  const typed = Json.fromJsonTyped(row, types) as Obj
  const doc: Record<string, Value> = {}
  for (const key of Object.keys(typed)) if (key !== versionField) setField(doc, key, typed[key])
  doc["id"] = id
  return { id, version: typeof version === "number" && Number.isSafeInteger(version) && version >= 0 ? version : 1, doc }
}

const toRecords = (rows: unknown, table: string, types: Types): ReadonlyArray<StoredRecord> | undefined => {
  if (!Array.isArray(rows)) return undefined
  const records: Array<StoredRecord> = []
  for (const row of rows) {
    const record = toRecord(row, table, types)
    if (record === undefined) return undefined
    records.push(record)
  }
  return records
}

const pullTable = (ask: Ask, table: string, types: Types, into: Array<StoredRecord>): Effect.Effect<void, SchedulerError | SnapshotMoved> =>
  Effect.gen(function*() {
    const name = tableName(table)
    let last: RecordId | undefined
    for (;;) {
      const query = `SELECT * FROM ${name}${last === undefined ? "" : " WHERE id > type::record($last)"} ORDER BY id LIMIT ${pageSize}`
      const page = toRecords(yield* ask(query, last === undefined ? undefined : { last: last.text }), table, types)
      if (page === undefined) return yield* unusable(query)
      for (const record of page) into.push(record)
      const end = page.at(-1)
      if (page.length < pageSize || end === undefined) return
      last = end.id
    }
  })

/** Everything that the snapshot frozen for this registration holds. */
export const pull = (client: SchedulerClientShape, { epoch, log_id: logId, snapshot_seq: seq }: typeof SspRegistered.Type): Effect.Effect<Pulled, SchedulerError | SnapshotMoved> =>
  Effect.gen(function*() {
    yield* client.signin
    yield* client.use
    const ask = asking(client, seq)
    const names = tablesOf(yield* ask("INFO FOR DB"))
    if (names === undefined) return yield* unusable("INFO FOR DB")
    const records: Array<StoredRecord> = []
    const tables: Array<Pulled["tables"][number]> = []
    for (const name of names) {
      const types = typesOf(yield* ask(`INFO FOR TABLE ${tableName(name)}`))
      tables.push({ name, types })
      yield* pullTable(ask, name, types, records)
    }
    return { records, tables, position: { seq, logId: logId ?? null, epoch: epoch ?? null } }
  })
