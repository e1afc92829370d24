/**
 * Reads a scheduler's snapshot (D20): every table in key order, page by page, typed once, all at one position.
 *
 * Only reads: the caller swaps the records in. A failed page is asked for again a few times, because a broken
 * connection must not cost a bootstrap of a million records; a snapshot that moves means starting over. If the heap has
 * no room for the rest, the process ends with a fault (D43) and starts with an empty heap, instead of being aborted by
 * V8.
 */
import { Data, Effect, Schedule } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import { reasonOf } from "../../core/reason.ts"
import { type Types, versionField } from "../../core/record/change.ts"
import * as Memory from "../../core/record/memory.ts"
import * as Encode from "../../core/surql/values/encode.ts"
import * as Json from "../../core/surql/values/json.ts"
import { nameText } from "../../core/surql/values/names.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import { isObj, type Obj, RecordId, setField, type Value } from "../../core/surql/values/value.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import type { StoredPosition, StoredRecord } from "../../ports/Database.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import type { Step } from "../../ports/Progress.ts"
import { type ProxyAnswer, type SchedulerClientShape, SchedulerError } from "../../ports/SchedulerClient.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { SspRegistered } from "../../protocol/wire.ts"

/** The snapshot is not the one that the registration froze: rows of two snapshots would be mixed. */
export class SnapshotMoved extends Data.TaggedError("SnapshotMoved")<{ readonly message: string }> {}

/** A whole snapshot, and its position in the scheduler's log. */
export interface PulledSnapshot {
  readonly records: ReadonlyArray<StoredRecord>
  /** Names of the tables that were read. */
  readonly names: ReadonlyArray<string>
  readonly position: Omit<StoredPosition, "writes">
  /** Declared types of the tables. */
  readonly tables: ReadonlyArray<{ readonly name: string; readonly types: Types }>
  /** Definitions of the scheduler's database; undefined if the scheduler does not send them. */
  readonly defined: Definitions.Defined | undefined
}

/** Records per page, unless the scheduler names another number. */
const defaultPage = 1000

/** How a query is asked, and how many records per page. */
interface Pull {
  readonly ask: Ask
  readonly pageSize: number
  readonly heap: HeapShape
}

/** Estimate of the store's own bytes for a record. */
const slotBytes = 128

/** Pauses between attempts at one page. */
const patience = Schedule.intersect(Schedule.jittered(Schedule.exponential("200 millis")), Schedule.recurs(4))

/**
 * Whether the same query may succeed later. A query that fails at the scheduler (500) fails again: its answer is too
 * long, for example.
 */
const passing = ({ reason, status }: SchedulerError): boolean =>
  status !== 500 && ["unreachable", "overloaded", "notLeader"].includes(reason)

const unusable = (what: string, why = ""): SchedulerError =>
  new SchedulerError({ reason: "unreachable", message: `${what} is not answered as agreed${why}` })

/** An answer: exact values, or JSON whose types are still to be found. */
interface Read {
  readonly exact: boolean
  readonly value: Value
}

type Ask = (query: string, params?: Obj) => Effect.Effect<Read, SchedulerError | SnapshotMoved>

/**
 * The statement's value, if the answer lists statements with status, time and result as the database does. A record
 * with such fields also has an id, and is the value itself.
 */
const resultOf = (answer: Value): Value => {
  const [only, ...others]: ReadonlyArray<Value> = Array.isArray(answer) ? answer : []
  if (!isObj(only) || others.length > 0 || typeof only["status"] !== "string" || "id" in only) return answer
  if (only["status"] !== "OK") throw new Error(`the statement failed: ${String(only["result"])}`)
  return only["result"]
}

const values = (query: string, { exact, text }: ProxyAnswer): Effect.Effect<Read, SchedulerError> =>
  Effect.try({
    try: () => ({ exact, value: exact ? Encode.decode(text) : resultOf(JsonText.parse(text) as Value) }),
    catch: (error) => unusable(query, error instanceof SyntaxError ? "" : `: ${reasonOf(error)}`)
  })

const asking =
  (client: SchedulerClientShape, seq: number): Ask =>
  (query, params) =>
    Effect.gen(function* () {
      const answer = yield* Effect.retry(client.query(query, params), { while: passing, schedule: patience })
      if (answer.seq !== undefined && answer.seq !== seq)
        return yield* new SnapshotMoved({ message: `the snapshot is at ${answer.seq} and no longer at ${seq}` })
      return yield* values(query, answer)
    })

const tablesOf = ({ value: info }: Read): ReadonlyArray<string> | undefined =>
  isObj(info) && isObj(info["tables"]) ? Object.keys(info["tables"]).sort() : undefined

/** Reads the database's definitions from the record that holds them. */
const pullDefined = (ask: Ask): Effect.Effect<Definitions.Defined | undefined, SchedulerError | SnapshotMoved> => {
  const query = `SELECT * FROM ${Definitions.definitionsTable}`
  return Effect.flatMap(ask(query), ({ value }) => {
    const [row] = Array.isArray(value) ? (value as ReadonlyArray<Value>) : []
    const text = isObj(row) ? Definitions.textIn(row) : undefined
    return text === undefined ? Effect.fail(unusable(query)) : Effect.succeed(Definitions.ofText(text))
  })
}

/** Type of a field, from its definition (`DEFINE FIELD x ON t TYPE datetime ...`) or from the type alone. */
const typeOf = (definition: Value): string | undefined => {
  if (typeof definition !== "string") return undefined
  const declared =
    /\bTYPE\s+(.+?)(?=\s+(?:DEFAULT|VALUE|ASSERT|READONLY|REFERENCE|COMMENT|PERMISSIONS|FLEXIBLE|COMPUTED)\b|;?\s*$)/is.exec(
      definition
    )
  return declared?.[1] ?? (/^DEFINE\b/i.test(definition) ? undefined : definition)
}

/**
 * Declared types of a table; undefined if the scheduler knows none: it then types the table's records by their values,
 * and so must the SSP that gets their changes.
 */
const typesOf = ({ value: info }: Read): Types | undefined => {
  if (isObj(info) && info["declared"] === false) return undefined
  const fields = isObj(info) && isObj(info["fields"]) ? info["fields"] : {}
  const types: Record<string, string> = {}
  for (const [path, definition] of Object.entries(fields)) {
    const type = typeOf(definition)
    if (type !== undefined && path !== "__proto__") types[path] = type
  }
  return types
}

const versionOf = (row: Obj): number => {
  const version = row[versionField]
  return typeof version === "number" && Number.isSafeInteger(version) && version >= 0 ? version : 1
}

/** A row as a record: its version is taken out (D4), and JSON is typed, id and fields (D1). */
const toRecord = (row: Value, exact: boolean, table: string, types: Types): StoredRecord | undefined => {
  if (!isObj(row)) return undefined
  const own = row["id"]
  const id = own instanceof RecordId ? own : typeof own === "string" && !exact ? Ids.parseLenient(own) : undefined
  if (id === undefined || id.table !== table) return undefined
  const typed = exact ? row : (Json.fromJsonTyped(row, types) as Obj)
  const doc: Record<string, Value> = {}
  for (const key of Object.keys(typed)) if (key !== versionField) setField(doc, key, typed[key])
  doc["id"] = id
  return { id, version: versionOf(row), doc }
}

const toRecords = ({ exact, value }: Read, table: string, types: Types): ReadonlyArray<StoredRecord> | undefined => {
  if (!Array.isArray(value)) return undefined
  const records: Array<StoredRecord> = []
  for (const row of value) {
    const record = toRecord(row as Value, exact, table, types)
    if (record === undefined) return undefined
    records.push(record)
  }
  return records
}

/**
 * Query for the page behind a record. An exact id is bound; JSON would bind it as text, which compares as text, so
 * there it is written out.
 */
const pageAfter = (
  table: string,
  pageSize: number,
  { exact, id }: Reached
): readonly [query: string, params: Obj | undefined] => {
  if (id === undefined) return [`SELECT * FROM ${nameText(table)} ORDER BY id LIMIT ${pageSize}`, undefined]
  return exact
    ? [`SELECT * FROM ${nameText(table)} WHERE id > $last ORDER BY id LIMIT ${pageSize}`, { last: id }]
    : [`SELECT * FROM ${id.text}>.. LIMIT ${pageSize}`, undefined]
}

/** Where a table has been read to. */
interface Reached {
  readonly exact: boolean
  readonly id: RecordId | undefined
}

/** Asks for a page, and for half of it if that fails: large records make an answer longer than the scheduler allows. */
const askPage = <A, E>(
  ask: (query: string, params?: Obj) => Effect.Effect<A, SchedulerError | E>,
  table: string,
  size: number,
  last: Reached
): Effect.Effect<{ readonly answer: A; readonly query: string; readonly size: number }, SchedulerError | E> => {
  const [query, params] = pageAfter(table, size, last)
  return Effect.catchIf(
    Effect.map(ask(query, params), (answer) => ({ answer, query, size })),
    (error) => error instanceof SchedulerError && error.status === 500 && size > 1,
    () => askPage(ask, table, size >> 1, last)
  )
}

const pullTable = (
  { ask, heap, pageSize }: Pull,
  table: string,
  types: Types,
  into: Array<StoredRecord>,
  step: Pick<Step, "add">
): Effect.Effect<void, SchedulerError | SnapshotMoved | StartFault> =>
  Effect.gen(function* () {
    let last: Reached = { exact: false, id: undefined }
    for (let most = pageSize; ; ) {
      const { answer: read, query, size } = yield* askPage(ask, table, most, last)
      most = size
      const page = toRecords(read, table, types)
      if (page === undefined) return yield* unusable(query)
      for (const record of page) into.push(record)
      step.add(page.length)
      const memory = heap.measured()
      if (!Memory.isLoadable(memory, into.length * slotBytes))
        return yield* new StartFault({ exitCode: 1, message: Memory.notReadable(memory, into.length, "scheduler") })
      if (page.length < size) return
      last = { exact: read.exact, id: page.at(-1)?.id }
    }
  })

/** Reads the snapshot frozen for this registration: all tables, or `only` these. */
export const pullSnapshot = (
  client: SchedulerClientShape,
  { bootstrap_chunk_size: pageSize = defaultPage, epoch, log_id: logId, snapshot_seq: seq }: typeof SspRegistered.Type,
  step: Pick<Step, "add" | "at">,
  only?: ReadonlySet<string>
): Effect.Effect<PulledSnapshot, SchedulerError | SnapshotMoved | StartFault> =>
  Effect.gen(function* () {
    yield* client.signin
    yield* client.use
    const ask = asking(client, seq)
    const heap = yield* Heap
    const all = tablesOf(yield* ask("INFO FOR DB"))
    if (all === undefined) return yield* unusable("INFO FOR DB")
    const defined = all.includes(Definitions.definitionsTable) ? yield* pullDefined(ask) : undefined
    const definedTypes = new Map(defined?.tables.map((table) => [table.name, table.types]))
    const records: Array<StoredRecord> = []
    const tables: Array<PulledSnapshot["tables"][number]> = []
    const names = all.filter((name) => !isOwn(name) && (only === undefined || only.has(name)))
    for (const name of names) {
      const types = definedTypes.get(name) ?? typesOf(yield* ask(`INFO FOR TABLE ${nameText(name)}`))
      if (types !== undefined) tables.push({ name, types })
      step.at(`table ${name}`)
      yield* pullTable({ ask, heap, pageSize: Math.max(1, pageSize) }, name, types ?? {}, records, step)
    }
    return { records, names, tables, defined, position: { seq, logId: logId ?? null, epoch: epoch ?? null } }
  })

/** Reads tables while the log moves on; each answer has a position (D61). */
export interface TableReader {
  /** Names of all tables. */
  readonly tables: Effect.Effect<{ readonly seq: number; readonly tables: ReadonlyArray<string> }, SchedulerError>
  /** Declared types of a table; undefined if there are none. */
  readonly typesOf: (table: string) => Effect.Effect<Types | undefined, SchedulerError>
  /** Reads a table page by page in key order. */
  readonly pages: (
    table: string,
    types: Types,
    page: (seq: number, records: ReadonlyArray<StoredRecord>) => Effect.Effect<void>
  ) => Effect.Effect<void, SchedulerError>
}

const noRoom = (memory: Memory.Memory, read: number): SchedulerError =>
  new SchedulerError({ reason: "overloaded", message: Memory.notReadable(memory, read, "scheduler") })

export const makeTableReader = (
  client: SchedulerClientShape,
  pageSize: number | undefined,
  heap: HeapShape
): TableReader => {
  const mostRecords = Math.max(1, pageSize ?? defaultPage)
  const ask = (query: string, params?: Obj) =>
    Effect.gen(function* () {
      const answer = yield* Effect.retry(client.query(query, params), { while: passing, schedule: patience })
      // A scheduler that has a feed sends positions.
      if (answer.seq === undefined) return yield* unusable(query)
      return { seq: answer.seq, read: yield* values(query, answer) }
    })
  return {
    tables: Effect.flatMap(ask("INFO FOR DB"), ({ read, seq }) => {
      const tables = tablesOf(read)
      return tables === undefined
        ? Effect.fail(unusable("INFO FOR DB"))
        : Effect.succeed({ seq, tables: tables.filter((name) => !isOwn(name)) })
    }),
    typesOf: (table) => Effect.map(ask(`INFO FOR TABLE ${nameText(table)}`), ({ read }) => typesOf(read)),
    pages: (table, types, page) =>
      Effect.gen(function* () {
        let last: Reached = { exact: false, id: undefined }
        for (let count = 0, most = mostRecords; ; ) {
          const { answer, query, size } = yield* askPage(ask, table, most, last)
          const { read, seq } = answer
          most = size
          const records = toRecords(read, table, types)
          if (records === undefined) return yield* unusable(query)
          count += records.length
          const memory = heap.measured()
          if (!Memory.isHoldable(memory, count * slotBytes)) return yield* noRoom(memory, count)
          yield* page(seq, records)
          if (records.length < size) return
          last = { exact: read.exact, id: records.at(-1)?.id }
        }
      })
  }
}
