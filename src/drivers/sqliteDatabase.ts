/** The embedded store of an SSP: one SQLite file behind the generic `SqlClient`; the host picks the driver. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import * as Layout from "../core/storeLayout.ts"
import * as Docs from "../core/surql/values/docs.ts"
import * as Encode from "../core/surql/values/encode.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../core/surql/values/value.ts"
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
import { originalText, storedText } from "./shared/keptText.ts"
import { failure } from "./shared/sqliteFailure.ts"

const make = (sql: SqlClient.SqlClient): Effect.Effect<DatabaseShape, DatabaseError> =>
  Effect.as(prepare(sql), {
    kind: "sqlite",
    exclusive: true,
    records: readRecords(sql),
    views: readViews(sql),
    position: readPosition(sql),
    commit: (commit) => write(sql, commit),
    reset: Effect.all([sql`DELETE FROM record`, sql`DELETE FROM view`]).pipe(
      sql.withTransaction,
      Effect.asVoid,
      Effect.mapError(failure)
    )
  })

/** Version of the SQLite file's layout, kept in its `user_version`. */
const layout = 2
/** Records in the first chunk and in the largest chunk; in between, a chunk has about {@link chunkChars}. */
const firstChunk = 16
const largestChunk = 2_000
/**
 * Characters of a chunk: a start near the end of its heap must be able to hold one beside the records it has loaded
 * (D43).
 */
const chunkChars = 128 * 1024

const nextChunk = (size: number, rows: ReadonlyArray<{ readonly content: string | null }>): number => {
  const chars = rows.reduce((sum, { content }) => sum + (content?.length ?? 0), 1)
  return Math.max(1, Math.min(2 * size, largestChunk, Math.floor((chunkChars * rows.length) / chars)))
}

const decodePosition = Schema.decodeUnknown(
  Schema.parseJson(
    Schema.Struct({
      writes: Schema.Int,
      seq: Schema.NullOr(Schema.Int),
      logId: Schema.NullOr(Schema.String),
      epoch: Schema.NullOr(Schema.Int)
    })
  )
)

/**
 * Checks the file and sets it up. Full synchronous mode: a commit is on disk when it returns. Exclusive locking: a
 * second process on the same folder gets an error at once instead of writing between our reads.
 */
const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function* () {
    yield* sql`PRAGMA busy_timeout = 0`
    yield* sql`PRAGMA locking_mode = EXCLUSIVE`
    yield* sql`PRAGMA synchronous = FULL`
    const found = yield* sql<{ user_version: number }>`PRAGMA user_version`
    const version = found[0]?.user_version ?? 0
    const newer = Layout.layoutFault(version, layout)
    if (newer !== undefined) return yield* new DatabaseError(newer)
    const check = yield* sql<{ quick_check: string }>`PRAGMA quick_check(1)`
    const damaged = Layout.integrityFault(check[0]?.quick_check)
    if (damaged !== undefined) return yield* new DatabaseError(damaged)
    yield* createTables(sql, version).pipe(sql.withTransaction)
  }).pipe(Effect.mapError(failure))

/** Columns of texts that clients choose: stored so that no driver shortens them ({@link storedText}). */
const viewTexts = ["key", "id", "surql", "client_id"] as const

const createTables = (sql: SqlClient.SqlClient, version: number) =>
  Effect.gen(function* () {
    yield* sql`CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, version INTEGER NOT NULL, content TEXT)`
    yield* sql`CREATE TABLE IF NOT EXISTS view (key TEXT PRIMARY KEY, id TEXT NOT NULL, surql TEXT NOT NULL, client_id TEXT NOT NULL,
      ttl_ms INTEGER NOT NULL, params TEXT NOT NULL, format TEXT NOT NULL, last_active_at_ms INTEGER NOT NULL)`
    // Layout 1 stored these texts unchanged.
    if (version === 1)
      for (const column of viewTexts)
        yield* sql.unsafe(`UPDATE view SET ${column} = json_quote(${column}) WHERE substr(${column}, 1, 1) = '"'`)
    yield* sql.unsafe(`PRAGMA user_version = ${layout}`)
  })

/**
 * The position is kept as the record with no id, so that a commit of records is one statement and its own transaction.
 */
const positionId = ""

/**
 * Most rows bound one by one, in a statement per count that stays prepared. More rows go as one JSON text, which is
 * three times the work per row, but one statement for any number.
 */
const maxBoundRows = 100
const upsert = "ON CONFLICT (id) DO UPDATE SET version = excluded.version, content = excluded.content"
const upserts: ReadonlyArray<string> = Array.from(
  { length: maxBoundRows + 1 },
  (_, rows) => `INSERT INTO record (id, version, content) VALUES ${Array(rows).fill("(?,?,?)").join(",")} ${upsert}`
)
/** `WHERE true` lets the parser see ON. */
const upsertJson = `INSERT INTO record (id, version, content) SELECT value->>0, value->>1, value->>2 FROM json_each(?) WHERE true ${upsert}`

/** One statement for any number of rows: the cost is per call, not per row. */
const writeRecords = (sql: SqlClient.SqlClient, { position, records }: Commit) => {
  const rows: Array<readonly [id: string, version: number, content: string | null]> = [
    [positionId, 0, JSON.stringify(position)]
  ]
  for (const { doc, id, version } of records)
    rows.push([storedText(id.text), version, doc === undefined ? null : Encode.encode(doc)])
  return rows.length <= maxBoundRows
    ? sql.unsafe(upserts[rows.length]!, rows.flat())
    : sql.unsafe(upsertJson, [JSON.stringify(rows)])
}

const writeAll = (sql: SqlClient.SqlClient, commit: Commit) =>
  Effect.gen(function* () {
    yield* writeRecords(sql, commit)
    for (const view of commit.putViews) {
      yield* sql`INSERT OR REPLACE INTO view (key, id, surql, client_id, ttl_ms, params, format, last_active_at_ms)
        VALUES (${storedText(view.key)}, ${storedText(view.id)}, ${storedText(view.surql)}, ${storedText(view.clientId)}, ${view.ttlMs}, ${view.params}, ${view.format}, ${view.lastActiveAtMs})`
    }
    if (commit.removeViews.length > 0)
      yield* sql`DELETE FROM view WHERE key IN (SELECT value FROM json_each(${JSON.stringify(commit.removeViews.map(storedText))}))`
  }).pipe(sql.withTransaction)

const write = (sql: SqlClient.SqlClient, commit: Commit): Effect.Effect<void, DatabaseError> =>
  (commit.putViews.length + commit.removeViews.length === 0 ? writeRecords(sql, commit) : writeAll(sql, commit)).pipe(
    Effect.asVoid,
    Effect.mapError(failure),
    // Spans are built even when none are collected, and this runs once per flush.
    Effect.withTracerEnabled(false)
  )

const readRecords = (sql: SqlClient.SqlClient): Stream.Stream<ReadonlyArray<StoredRecord>, DatabaseError> =>
  Stream.paginateEffect({ after: 0, size: firstChunk }, ({ after, size }) =>
    sql<{ row: number; id: string; version: number; content: string | null }>`
      SELECT rowid AS row, id, version, content FROM record WHERE rowid > ${after} AND id <> ${positionId} ORDER BY rowid LIMIT ${size}`.pipe(
      Effect.mapError(failure),
      Effect.flatMap((rows) => Effect.map(Effect.forEach(rows, readRecord), (records) => ({ rows, records }))),
      Effect.map(
        ({ rows, records }) =>
          [
            records,
            rows.length < size ? Option.none() : Option.some({ after: rows.at(-1)!.row, size: nextChunk(size, rows) })
          ] as const
      )
    )
  )

const readRecord = (row: {
  readonly id: string
  readonly version: number
  readonly content: string | null
}): Effect.Effect<StoredRecord, DatabaseError> =>
  Effect.suspend((): Effect.Effect<StoredRecord, DatabaseError> => {
    const id = idOf(row.id)
    const damaged = (message: string, cause?: unknown) =>
      new DatabaseError({ reason: "damaged", message: `record ${row.id}: ${message}`, cause })
    if (id === undefined) return Effect.fail(damaged("its id is not a record id"))
    if (row.content === null) return Effect.succeed({ id, version: row.version, doc: undefined })
    const { content } = row
    return Effect.try({
      try: () => ({ id, version: row.version, doc: Docs.docOf(id.table, Encode.decode(content) as Obj) }),
      catch: (cause) => damaged("its content does not decode", cause)
    })
  })

const idOf = (text: string): RecordId | undefined => {
  try {
    return Ids.parse(originalText(text))
  } catch {
    return undefined
  }
}

const readViews = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<StoredView>, DatabaseError> =>
  sql<StoredView>`SELECT key, id, surql, client_id AS clientId, ttl_ms AS ttlMs, params, format, last_active_at_ms AS lastActiveAtMs
    FROM view ORDER BY rowid`.pipe(
    Effect.mapError(failure),
    Effect.flatMap((views) =>
      Effect.try({
        try: () =>
          views.map((view) => ({
            ...view,
            key: originalText(view.key),
            id: originalText(view.id),
            surql: originalText(view.surql),
            clientId: originalText(view.clientId)
          })),
        catch: (cause) => new DatabaseError({ reason: "damaged", message: "a registration does not decode", cause })
      })
    )
  )

const readPosition = (sql: SqlClient.SqlClient): Effect.Effect<StoredPosition, DatabaseError> =>
  sql<{ content: string }>`SELECT content FROM record WHERE id = ${positionId}`.pipe(
    Effect.flatMap(([row]) =>
      row === undefined
        ? Effect.succeed(startPosition)
        : Effect.mapError(
            decodePosition(row.content),
            (cause) => new DatabaseError({ reason: "damaged", message: "the stored position does not decode", cause })
          )
    ),
    Effect.mapError(failure)
  )

export const layer: Layer.Layer<Database, DatabaseError, SqlClient.SqlClient> = Layer.effect(
  Database,
  Effect.flatMap(SqlClient.SqlClient, make)
)
