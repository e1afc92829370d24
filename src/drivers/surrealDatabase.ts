/**
 * `Database` in a SurrealDB: the store of a node whose database runs inside the process (`mem://`, `surrealkv://`).
 *
 * Records are stored in a table of ours in the service's own encoding, by the text of their id: no other process can
 * open such a database meanwhile, so no reader misses them, and every value comes back exactly. A real database has the
 * records in its own tables; there they are read (`Upstream`), never written.
 */
import { Effect, Layer, Option, Stream } from "effect"
import { chunksOf } from "../core/chunksOf.ts"
import * as Layout from "../core/storeLayout.ts"
import * as Docs from "../core/surql/values/docs.ts"
import * as Encode from "../core/surql/values/encode.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import { isObj, type Obj, Range, RecordId, RecordRange, type Value } from "../core/surql/values/value.ts"
import * as Schema from "../core/surreal/surrealSchema.ts"
import { isCount, isText } from "../core/typeGuards.ts"
import {
  type Commit,
  Database,
  DatabaseError,
  type DatabaseShape,
  type StoredPosition,
  type StoredRecord,
  type StoredView,
  startPosition
} from "../ports/Database.ts"
import { type Bindings, SurrealClient, type SurrealError, type SurrealShape } from "../ports/SurrealClient.ts"
import * as Rows from "./shared/surrealRows.ts"

/** Version of the rows' form. */
const layout = 1
const chunkSize = 2_000
/** Rows in one INSERT: the engine in memory needs time that grows with their square. */
const rowsPerInsert = 200
const positionId = Ids.make(Schema.stateTable, "position")

const failure = (error: SurrealError): DatabaseError =>
  new DatabaseError({
    reason: error.reason === "damaged" || error.reason === "locked" ? error.reason : "failed",
    message: error.message,
    cause: error
  })

const damaged = (message: string, cause?: unknown): DatabaseError =>
  new DatabaseError({ reason: "damaged", message, cause })

export const layer: Layer.Layer<Database, DatabaseError, SurrealClient> = Layer.effect(
  Database,
  Effect.flatMap(SurrealClient, (client) => make(client))
)

const make = (client: SurrealShape): Effect.Effect<DatabaseShape, DatabaseError> =>
  Effect.as(prepare(client), {
    kind: "surreal",
    exclusive: true,
    records: readRecords(client),
    views: rowsOf(client, `SELECT * FROM ${Schema.queryTable}`).pipe(Effect.flatMap(Effect.forEach(viewOf))),
    position: Effect.map(readPosition(client), (row) => row?.position ?? startPosition),
    commit: (commit) => write(client, commit),
    reset: run(
      client,
      `BEGIN; DELETE ${Schema.recordTable}; DELETE ${Schema.queryTable}; DELETE ${Schema.stateTable}; COMMIT`
    )
  })

const prepare = (client: SurrealShape): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function* () {
    yield* run(client, Schema.script(Schema.embeddedDefinitions))
    const found = yield* readPosition(client)
    const newer = Layout.layoutFault(found?.layout ?? 0, layout)
    if (newer !== undefined) return yield* new DatabaseError(newer)
  })

const run = (client: SurrealShape, statements: string, bindings?: Bindings): Effect.Effect<void, DatabaseError> =>
  client.query(statements, bindings).pipe(Effect.asVoid, Effect.mapError(failure), Effect.withTracerEnabled(false))

/** Rows of the last statement's answer. */
const rowsOf = (
  client: SurrealShape,
  statements: string,
  bindings?: Bindings
): Effect.Effect<ReadonlyArray<Obj>, DatabaseError> =>
  client.query(statements, bindings).pipe(
    Effect.mapError(failure),
    Effect.map((answers) => answers.at(-1)),
    Effect.filterOrFail(
      (rows): rows is ReadonlyArray<Obj> => Array.isArray(rows) && rows.every(isObj),
      () => damaged("a table of ours does not answer rows")
    )
  )

/** Later entries with the same id win. */
const recordRows = (records: ReadonlyArray<StoredRecord>): ReadonlyArray<Obj> => {
  const last = new Map<string, Obj>()
  for (const { doc, id, version } of records)
    last.set(id.text, { id: id.text, version, content: doc === undefined ? undefined : Encode.encode(doc) })
  return [...last.values()]
}

const write = (
  client: SurrealShape,
  { position, putViews, records, removeViews }: Commit
): Effect.Effect<void, DatabaseError> => {
  const bindings = {
    parts: chunksOf(recordRows(records), rowsPerInsert),
    views: putViews.map(Rows.fromView),
    removed: removeViews.map(Rows.queryId),
    position: {
      writes: position.writes,
      seq: position.seq ?? undefined,
      logId: position.logId ?? undefined,
      epoch: position.epoch ?? undefined,
      layout
    }
  }
  return run(
    client,
    `BEGIN;
    FOR $part IN $parts { INSERT INTO ${Schema.recordTable} $part ON DUPLICATE KEY UPDATE version = $input.version, content = $input.content RETURN NONE };
    ${putViews.length === 0 ? "" : "FOR $view IN $views { UPSERT $view.id MERGE $view RETURN NONE };"}
    ${removeViews.length === 0 ? "" : "DELETE $removed RETURN NONE;"}
    UPSERT ${positionId.text} CONTENT $position RETURN NONE; COMMIT`,
    bindings
  )
}

/**
 * Reads all records in key order. The LET makes the engine stop at the limit: without it the same SELECT reads
 * everything behind the start each time, and with `WHERE id > ..` everything before it too.
 */
const readRecords = (client: SurrealShape): Stream.Stream<ReadonlyArray<StoredRecord>, DatabaseError> =>
  Stream.paginateEffect(undefined as string | undefined, (after) => {
    const range = new RecordRange(
      Schema.recordTable,
      new Range(after === undefined ? undefined : { value: after, inclusive: false }, undefined)
    )
    return rowsOf(client, "LET $rows = (SELECT * FROM $range LIMIT $size); RETURN $rows", {
      range,
      size: chunkSize
    }).pipe(
      Effect.flatMap((rows) =>
        Effect.map(
          Effect.forEach(rows, recordOf),
          (records) => [records, rows.length < chunkSize ? Option.none() : Option.some(keyOf(rows.at(-1)))] as const
        )
      )
    )
  })

const viewOf = (row: Obj): Effect.Effect<StoredView, DatabaseError> => {
  const view = Rows.toView(row)
  return view === undefined
    ? Effect.fail(damaged(`registration ${keyOf(row)}: its row is not one of ours`))
    : Effect.succeed(view)
}

const keyOf = (row: Obj | undefined): string => (row?.["id"] instanceof RecordId ? String(row["id"].key) : "")

const recordOf = (row: Obj): Effect.Effect<StoredRecord, DatabaseError> =>
  Effect.suspend((): Effect.Effect<StoredRecord, DatabaseError> => {
    const { content, version } = row
    const text = keyOf(row)
    const id = Ids.parse(text)
    if (id === undefined || typeof version !== "number")
      return Effect.fail(damaged(`record ${text}: its row is not one of ours`))
    if (content === undefined) return Effect.succeed({ id, version, doc: undefined })
    return Effect.try({
      try: () => ({ id, version, doc: Docs.docOf(id.table, Encode.decode(String(content)) as Obj) }),
      catch: (cause) => damaged(`record ${text}: its content does not decode`, cause)
    })
  })

const isCountOrNone = (value: Value): value is number | undefined => value === undefined || isCount(value)

const readPosition = (
  client: SurrealShape
): Effect.Effect<{ readonly position: StoredPosition; readonly layout: number } | undefined, DatabaseError> =>
  Effect.flatMap(rowsOf(client, `SELECT * FROM ${positionId.text}`), ([row]) => {
    if (row === undefined) return Effect.succeed(undefined)
    const { epoch, layout: found, logId, seq, writes } = row
    return isCount(found) &&
      isCount(writes) &&
      isCountOrNone(seq) &&
      isCountOrNone(epoch) &&
      (logId === undefined || isText(logId))
      ? Effect.succeed({
          position: { writes, seq: seq ?? null, logId: logId ?? null, epoch: epoch ?? null },
          layout: found
        })
      : Effect.fail(damaged("the stored position does not decode"))
  })
