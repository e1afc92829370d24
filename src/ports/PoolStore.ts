/**
 * What the scheduler knows of its SSPs, views and jobs, kept over restarts (D31): rows by kind and key, written as the pool says.
 *
 * One table of JSON for all kinds, because rows are only ever written one by one and read all at once. Beside them the epoch, which
 * grows with every start and must never be used twice (D5), and the log that the positions are of: in another log they mean nothing.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Action, JobRow, MemberRow, StrayRow, ViewRow } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import { DatabaseError, failure } from "./Database.ts"

/** The actions of the pool that are about what is kept. */
export type Write = Extract<Action, { readonly tag: "PersistMember" | "ForgetMember" | "PersistView" | "ForgetView" | "PersistStray" | "ForgetStray" | "PersistJob" | "ForgetJob" }>

export interface Opened {
  /** 1 at the first start, then one more each time (D5). */
  readonly epoch: number
  readonly saved: Saved
  /** The log of the start before, if there was one; of another log no SSP is kept. */
  readonly lastLogId: string | undefined
}

export interface PoolStoreShape {
  /** Begins an epoch with the log `logId`. */
  readonly open: (logId: string) => Effect.Effect<Opened, DatabaseError>
  /** One step, on disk when it returns. */
  readonly write: (writes: ReadonlyArray<Write>) => Effect.Effect<void, DatabaseError>
}

type Kind = "member" | "view" | "stray" | "job" | "meta"

/** A row to put, or with `value` undefined to delete; `under` deletes all keys that begin so. */
interface Put {
  readonly kind: Kind
  readonly key: string
  readonly value: unknown
  readonly under?: true
}

const strayKey = ({ ssp, view }: Pick<StrayRow, "ssp" | "view">): string => JSON.stringify([ssp, view])

const putsOf = (write: Write): ReadonlyArray<Put> => {
  switch (write.tag) {
    case "PersistMember": return [{ kind: "member", key: write.row.ssp, value: write.row }]
    case "ForgetMember": return [{ kind: "member", key: write.ssp, value: undefined }, { kind: "stray", key: `${JSON.stringify([write.ssp]).slice(0, -1)},`, value: undefined, under: true }]
    case "PersistView": return [{ kind: "view", key: write.row.view, value: write.row }]
    case "ForgetView": return [{ kind: "view", key: write.view, value: undefined }]
    case "PersistStray": return [{ kind: "stray", key: strayKey(write.row), value: write.row }]
    case "ForgetStray": return [{ kind: "stray", key: strayKey(write.row), value: undefined }]
    case "PersistJob": return [{ kind: "job", key: write.row.job, value: write.row }]
    case "ForgetJob": return [{ kind: "job", key: write.job, value: undefined }]
  }
}

interface Row {
  readonly kind: string
  readonly key: string
  readonly value: unknown
}

/** What JSON leaves out comes back as undefined. */
const whole = {
  member: (row: MemberRow): MemberRow => ({ ...row, incarnation: row.incarnation, jobTables: row.jobTables }),
  view: (row: ViewRow): ViewRow => ({ ...row, home: row.home, gone: row.gone === true }),
  job: (row: JobRow): JobRow => ({ ...row, home: row.home })
}

const openedFrom = (rows: ReadonlyArray<Row>, logId: string): Opened => {
  const of = (kind: Kind): ReadonlyArray<unknown> => rows.filter((row) => row.kind === kind).map((row) => row.value)
  const meta = new Map(rows.filter((row) => row.kind === "meta").map((row) => [row.key, row.value]))
  const lastLogId = typeof meta.get("log") === "string" ? String(meta.get("log")) : undefined
  const sameLog = lastLogId === undefined || lastLogId === logId
  const saved: Saved = {
    members: sameLog ? (of("member") as ReadonlyArray<MemberRow>).map(whole.member) : [],
    views: (of("view") as ReadonlyArray<ViewRow>).map(whole.view),
    strays: sameLog ? of("stray") as ReadonlyArray<StrayRow> : [],
    jobs: (of("job") as ReadonlyArray<JobRow>).map(whole.job)
  }
  return { epoch: Number(meta.get("epoch") ?? 0) + 1, saved, lastLogId }
}

/** What an opening leaves behind. */
const opening = ({ epoch, lastLogId }: Opened, logId: string): ReadonlyArray<Put> => [
  { kind: "meta", key: "epoch", value: epoch }, { kind: "meta", key: "log", value: logId },
  ...(lastLogId === undefined || lastLogId === logId ? [] : [{ kind: "member", key: "", value: undefined, under: true }, { kind: "stray", key: "", value: undefined, under: true }] as const)
]

/** Version of the SQLite file's layout, kept in its `user_version`. */
const layout = 1

const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function*() {
    yield* sql`PRAGMA synchronous = FULL`
    const version = (yield* sql<{ user_version: number }>`PRAGMA user_version`)[0]?.user_version ?? 0
    if (version > layout) return yield* new DatabaseError({ reason: "newer", message: `pool.db is written by a later version of this service (layout ${version}, this one knows ${layout})` })
    const check = yield* sql<{ quick_check: string }>`PRAGMA quick_check(1)`
    if (check[0]?.quick_check !== "ok") return yield* new DatabaseError({ reason: "damaged", message: `pool.db: ${check[0]?.quick_check ?? "the integrity check gave no answer"}` })
    yield* sql`CREATE TABLE IF NOT EXISTS pool (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID`
    yield* sql`PRAGMA user_version = 1`
  }).pipe(Effect.mapError(failure))

const put = (sql: SqlClient.SqlClient, { key, kind, under, value }: Put) =>
  under === true ? sql`DELETE FROM pool WHERE kind = ${kind} AND substr(key, 1, length(${key})) = ${key}`
    : value === undefined ? sql`DELETE FROM pool WHERE kind = ${kind} AND key = ${key}`
    : sql`INSERT OR REPLACE INTO pool (kind, key, value) VALUES (${kind}, ${key}, ${JSON.stringify(value)})`

const putAll = (sql: SqlClient.SqlClient, puts: ReadonlyArray<Put>): Effect.Effect<void, DatabaseError> =>
  Effect.forEach(puts, (each) => put(sql, each), { discard: true }).pipe(sql.withTransaction, Effect.mapError(failure), Effect.withTracerEnabled(false))

/** Where a scheduler keeps its SSPs, views and jobs over restarts. */
export class PoolStore extends Context.Tag("ports/PoolStore")<PoolStore, PoolStoreShape>() {
  /** Keeps everything in the process and nothing beyond it; one layer value, built twice, is two. */
  static readonly layerMemory: Layer.Layer<PoolStore> = Layer.sync(PoolStore, () => inMemory(new Map()))

  /** One SQLite file behind the generic `SqlClient`; the door picks the driver. */
  static readonly layerSqlite: Layer.Layer<PoolStore, DatabaseError, SqlClient.SqlClient> = Layer.effect(
    PoolStore,
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* prepare(sql)
      return {
        open: (logId) => Effect.gen(function*() {
          const rows = yield* sql<{ kind: string; key: string; value: string }>`SELECT kind, key, value FROM pool ORDER BY kind, key`.pipe(Effect.mapError(failure))
          const parsed = yield* Effect.try({
            try: () => rows.map((row) => ({ ...row, value: JSON.parse(row.value) as unknown })),
            catch: (cause) => new DatabaseError({ reason: "damaged", message: "pool.db holds a row that is no JSON", cause })
          })
          const opened = openedFrom(parsed, logId)
          yield* putAll(sql, opening(opened, logId))
          return opened
        }),
        write: (writes) => (writes.length === 0 ? Effect.void : putAll(sql, writes.flatMap(putsOf)))
      }
    })
  )
}

/** Over a map that outlives it: a test's restart. */
export const inMemory = (rows: Map<string, Row>): PoolStoreShape => {
  const apply = ({ key, kind, under, value }: Put): void => {
    if (under === true) for (const [at, row] of rows) if (row.kind === kind && row.key.startsWith(key)) rows.delete(at)
    if (under === true) return
    if (value === undefined) rows.delete(`${kind} ${key}`)
    else rows.set(`${kind} ${key}`, { kind, key, value: JSON.parse(JSON.stringify(value)) as unknown })
  }
  return {
    open: (logId) => Effect.sync(() => {
      const opened = openedFrom([...rows.values()], logId)
      opening(opened, logId).forEach(apply)
      return opened
    }),
    write: (writes) => Effect.sync(() => writes.flatMap(putsOf).forEach(apply))
  }
}
