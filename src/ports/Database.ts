/**
 * The database as an SSP sees it: where records and view registrations are kept, and where they come from at start.
 *
 * The port speaks typed values; how they are encoded is each layer's business. A commit is all or nothing and durable
 * when it returns (as durable as the layer is: `layerMemory` keeps nothing beyond the process, `layerNone` nothing at
 * all).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Data, Effect, Layer, Option, Schema, Stream } from "effect"
import * as Docs from "../core/surql/docs.ts"
import * as Encode from "../core/surql/encode.ts"
import * as Ids from "../core/surql/recordId.ts"
import type { Obj, RecordId } from "../core/surql/value.ts"
import { kept, unkept } from "./keptText.ts"
import { sorted } from "./sqliteFailure.ts"

/** One record's state: `doc` undefined means deleted, `version` then is its last one (D4). */
export interface StoredRecord {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj | undefined
}

/** A registered view as it is kept. */
export interface StoredView {
  /** Key below `_svc_query:` (D10); unique. */
  readonly key: string
  /** The id as the request gave it. */
  readonly id: string
  readonly surql: string
  readonly clientId: string
  readonly ttlMs: number
  /** Parameters as the request's JSON text. */
  readonly params: string
  /** Empty where the registration names none. */
  readonly format: string
  readonly lastActiveAtMs: number
}

/** What a commit leaves behind besides records and views. */
export interface StoredPosition {
  /** Record writes committed since the store was made; never goes back. */
  readonly writes: number
  /** Position in the scheduler's log (D5), once known. */
  readonly seq: number | null
  readonly logId: string | null
  readonly epoch: number | null
}

export const startPosition: StoredPosition = { writes: 0, seq: null, logId: null, epoch: null }

/** One durable step. Later entries win over earlier ones with the same id or key. */
export interface Commit {
  readonly records: ReadonlyArray<StoredRecord>
  readonly putViews: ReadonlyArray<StoredView>
  readonly removeViews: ReadonlyArray<string>
  readonly position: StoredPosition
}

/**
 * A store that could not do its work. `damaged`: its content is not what was written; `locked`: another process has
 * it; `newer`: written by a later version; `failed`: anything else, a full disk included, and worth another try.
 */
export class DatabaseError extends Data.TaggedError("DatabaseError")<{
  readonly reason: "damaged" | "locked" | "newer" | "failed"
  readonly message: string
  readonly cause?: unknown
}> {}

export interface DatabaseShape {
  /**
   * What it is, for people; `memory` is known by its name: nothing is flushed there, so nobody waits for others to
   * flush with.
   */
  readonly kind: string
  /**
   * True: while it is open here no other process can have it open, so who left something unfinished in it has ended.
   */
  readonly exclusive?: boolean
  /** All records and tombstones, in chunks, each once; in the order their ids were first written, or of their ids. */
  readonly records: Stream.Stream<ReadonlyArray<StoredRecord>, DatabaseError>
  readonly views: Effect.Effect<ReadonlyArray<StoredView>, DatabaseError>
  readonly position: Effect.Effect<StoredPosition, DatabaseError>
  readonly commit: (commit: Commit) => Effect.Effect<void, DatabaseError>
  /** Forgets everything, as one step. */
  readonly reset: Effect.Effect<void, DatabaseError>
  /**
   * Moves a store that is damaged out of the way and goes on with an empty one; answers where it went. Only where there
   * is something to rebuild it from (D23).
   */
  readonly setAside?: Effect.Effect<string, DatabaseError>
}

/**
 * Where an SSP keeps records, registrations and positions. A layer of your own passes `conformance.database` of
 * `testing`.
 */
export class Database extends Context.Tag("ports/Database")<Database, DatabaseShape>() {
  /**
   * Keeps nothing: what is committed is in the engine, and a node that starts with this store starts empty. For
   * `memory://`, and for an SSP of a cluster, whose records the scheduler keeps. A copy beside the engine would only
   * cost memory: stores are read at the start.
   */
  static readonly layerNone: Layer.Layer<Database> = Layer.succeed(Database, {
    kind: "memory",
    records: Stream.empty,
    views: Effect.succeed([]),
    position: Effect.succeed(startPosition),
    commit: () => Effect.void,
    reset: Effect.void
  })

  /**
   * Keeps everything in the process and nothing beyond it, deleted records included: for a node that is built again
   * over the same store, as tests do.
   */
  static readonly layerMemory: Layer.Layer<Database> = Layer.sync(Database, (): DatabaseShape => {
    const records = new Map<string, StoredRecord>()
    const views = new Map<string, StoredView>()
    let position = startPosition
    return {
      kind: "memory",
      records: Stream.suspend(() => Stream.make([...records.values()])),
      views: Effect.sync(() => [...views.values()]),
      position: Effect.sync(() => position),
      commit: (commit) =>
        Effect.sync(() => {
          for (const record of commit.records) records.set(record.id.text, record)
          for (const view of commit.putViews) views.set(view.key, view)
          for (const key of commit.removeViews) views.delete(key)
          position = commit.position
        }),
      reset: Effect.sync(() => {
        records.clear()
        views.clear()
        position = startPosition
      })
    }
  })

  /** The embedded store: one SQLite file behind the generic `SqlClient`; the door picks the driver. */
  static readonly layerSqlite: Layer.Layer<Database, DatabaseError, SqlClient.SqlClient> = Layer.effect(
    Database,
    Effect.flatMap(SqlClient.SqlClient, (sql) => makeSqlite(sql))
  )
}

const makeSqlite = (sql: SqlClient.SqlClient): Effect.Effect<DatabaseShape, DatabaseError> =>
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
const chunkSize = 2_000

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

/** What SQLite says, as this port's error. */
export const failure = (error: unknown): DatabaseError => {
  if (error instanceof DatabaseError) return error
  const { message, reason } = sorted(error)
  return new DatabaseError({ reason: reason === "full" ? "failed" : reason, message, cause: error })
}

/**
 * Checks the file and makes it ours. Full synchronous mode: a commit is on disk when it returns. Exclusive locking:
 * a second process on the same folder is told at once instead of writing between our reads.
 */
const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function* () {
    yield* sql`PRAGMA busy_timeout = 0`
    yield* sql`PRAGMA locking_mode = EXCLUSIVE`
    yield* sql`PRAGMA synchronous = FULL`
    const found = yield* sql<{ user_version: number }>`PRAGMA user_version`
    const version = found[0]?.user_version ?? 0
    if (version > layout) {
      return yield* new DatabaseError({
        reason: "newer",
        message: `written by a later version of this service (layout ${version}, this one knows ${layout})`
      })
    }
    const check = yield* sql<{ quick_check: string }>`PRAGMA quick_check(1)`
    if (check[0]?.quick_check !== "ok")
      return yield* new DatabaseError({
        reason: "damaged",
        message: check[0]?.quick_check ?? "integrity check gave no answer"
      })
    yield* createTables(sql, version).pipe(sql.withTransaction)
  }).pipe(Effect.mapError(failure))

/** The texts of a registration that clients choose: kept so that no driver shortens them ({@link kept}). */
const viewTexts = ["key", "id", "surql", "client_id"] as const

const createTables = (sql: SqlClient.SqlClient, version: number) =>
  Effect.gen(function* () {
    yield* sql`CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, version INTEGER NOT NULL, content TEXT)`
    yield* sql`CREATE TABLE IF NOT EXISTS view (key TEXT PRIMARY KEY, id TEXT NOT NULL, surql TEXT NOT NULL, client_id TEXT NOT NULL,
      ttl_ms INTEGER NOT NULL, params TEXT NOT NULL, format TEXT NOT NULL, last_active_at_ms INTEGER NOT NULL)`
    // Layout 1 had them as they came.
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
 * Rows that are bound one by one, in a statement per count that stays prepared. More go as one JSON text: it is three
 * times the work per row, but a text of any length is one statement.
 */
const maxBoundRows = 100
const upsert = "ON CONFLICT (id) DO UPDATE SET version = excluded.version, content = excluded.content"
const upserts: ReadonlyArray<string> = Array.from(
  { length: maxBoundRows + 1 },
  (_, rows) => `INSERT INTO record (id, version, content) VALUES ${Array(rows).fill("(?,?,?)").join(",")} ${upsert}`
)
/** `WHERE true` lets the parser see ON. */
const upsertJson = `INSERT INTO record (id, version, content) SELECT value->>0, value->>1, value->>2 FROM json_each(?) WHERE true ${upsert}`

/** One statement for any number of rows: what costs is the call, not the row. */
const writeRecords = (sql: SqlClient.SqlClient, { position, records }: Commit) => {
  const rows: Array<readonly [id: string, version: number, content: string | null]> = [
    [positionId, 0, JSON.stringify(position)]
  ]
  for (const { doc, id, version } of records)
    rows.push([kept(id.text), version, doc === undefined ? null : Encode.encode(doc)])
  return rows.length <= maxBoundRows
    ? sql.unsafe(upserts[rows.length]!, rows.flat())
    : sql.unsafe(upsertJson, [JSON.stringify(rows)])
}

const writeAll = (sql: SqlClient.SqlClient, commit: Commit) =>
  Effect.gen(function* () {
    yield* writeRecords(sql, commit)
    for (const view of commit.putViews) {
      yield* sql`INSERT OR REPLACE INTO view (key, id, surql, client_id, ttl_ms, params, format, last_active_at_ms)
        VALUES (${kept(view.key)}, ${kept(view.id)}, ${kept(view.surql)}, ${kept(view.clientId)}, ${view.ttlMs}, ${view.params}, ${view.format}, ${view.lastActiveAtMs})`
    }
    if (commit.removeViews.length > 0)
      yield* sql`DELETE FROM view WHERE key IN (SELECT value FROM json_each(${JSON.stringify(commit.removeViews.map(kept))}))`
  }).pipe(sql.withTransaction)

const write = (sql: SqlClient.SqlClient, commit: Commit): Effect.Effect<void, DatabaseError> =>
  (commit.putViews.length + commit.removeViews.length === 0 ? writeRecords(sql, commit) : writeAll(sql, commit)).pipe(
    Effect.asVoid,
    Effect.mapError(failure),
    // Spans are built even when nobody collects them, and this runs once per flush.
    Effect.withTracerEnabled(false)
  )

const readRecords = (sql: SqlClient.SqlClient): Stream.Stream<ReadonlyArray<StoredRecord>, DatabaseError> =>
  Stream.paginateEffect(0, (after) =>
    sql<{ row: number; id: string; version: number; content: string | null }>`
      SELECT rowid AS row, id, version, content FROM record WHERE rowid > ${after} AND id <> ${positionId} ORDER BY rowid LIMIT ${chunkSize}`.pipe(
      Effect.mapError(failure),
      Effect.flatMap((rows) => Effect.map(Effect.forEach(rows, readRecord), (records) => ({ rows, records }))),
      Effect.map(
        ({ rows, records }) =>
          [records, rows.length < chunkSize ? Option.none() : Option.some(rows.at(-1)!.row)] as const
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
    return Ids.parse(unkept(text))
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
            key: unkept(view.key),
            id: unkept(view.id),
            surql: unkept(view.surql),
            clientId: unkept(view.clientId)
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
