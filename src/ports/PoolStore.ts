/**
 * What the scheduler knows of its SSPs, views and jobs, kept over restarts (D31): rows by kind and key, written as the
 * pool says.
 *
 * One table of JSON for all kinds, because rows are only ever written one by one and read all at once. Beside them the
 * epoch, which grows with every start and must never be used twice (D5), and the log that the positions are of: in
 * another log they mean nothing.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import type { Action, JobRow, MemberRow, QuarantineRow, StrayRow, ViewRow } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import { RecentResults, type Result } from "../core/job/result.ts"
import { DatabaseError, failure } from "./Database.ts"
import { ReplicaError } from "./Replica.ts"
import { type Link, link as linkOf, type Statement } from "./sqliteLink.ts"

/** The actions of the pool that are about what is kept. */
export type Write = Extract<
  Action,
  {
    readonly tag:
      | "PersistMember"
      | "ForgetMember"
      | "PersistView"
      | "ForgetView"
      | "PersistQuarantine"
      | "ForgetQuarantine"
      | "PersistStray"
      | "ForgetStray"
      | "PersistJob"
      | "ForgetJob"
      | "PersistResult"
  }
>

export interface Opened {
  /** 1 at the first start, then one more each time (D5). */
  readonly epoch: number
  readonly saved: Saved
  /** The log of the start before, if there was one; of another log no SSP is kept. */
  readonly lastLogId: string | undefined
}

export interface PoolStoreShape {
  /**
   * Begins an epoch with the log `logId`. Results of the last `maxResults` jobs are kept, fewer where they are long.
   */
  readonly open: (logId: string, maxResults?: number) => Effect.Effect<Opened, DatabaseError>
  /** One step, on disk when it returns. */
  readonly write: (writes: ReadonlyArray<Write>) => Effect.Effect<void, DatabaseError>
  /** What is kept of the answer to a job, by its id's text. */
  readonly resultOf: (job: string) => Result | undefined
}

type Kind = "member" | "view" | "quarantine" | "stray" | "job" | "result" | "meta"

/** A row to put, or with `value` undefined to delete; `under` deletes all keys that begin so. */
interface Put {
  readonly kind: Kind
  readonly key: string
  readonly value: unknown
  readonly under?: true
}

const strayKey = ({ ssp, view }: Pick<StrayRow, "ssp" | "view">): string => JSON.stringify([ssp, view])

const putsOf = (write: Exclude<Write, { readonly tag: "PersistResult" }>): ReadonlyArray<Put> => {
  switch (write.tag) {
    case "PersistMember":
      return [{ kind: "member", key: write.row.ssp, value: write.row }]
    case "ForgetMember":
      return [
        { kind: "member", key: write.ssp, value: undefined },
        { kind: "stray", key: `${JSON.stringify([write.ssp]).slice(0, -1)},`, value: undefined, under: true }
      ]
    case "PersistView":
      return [{ kind: "view", key: write.row.view, value: write.row }]
    case "ForgetView":
      return [{ kind: "view", key: write.view, value: undefined }]
    case "PersistQuarantine":
      return [{ kind: "quarantine", key: write.row.query, value: write.row }]
    case "ForgetQuarantine":
      return [{ kind: "quarantine", key: write.query, value: undefined }]
    case "PersistStray":
      return [{ kind: "stray", key: strayKey(write.row), value: write.row }]
    case "ForgetStray":
      return [{ kind: "stray", key: strayKey(write.row), value: undefined }]
    case "PersistJob":
      return [{ kind: "job", key: write.row.job, value: write.row }]
    case "ForgetJob":
      return [{ kind: "job", key: write.job, value: undefined }]
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
    strays: sameLog ? (of("stray") as ReadonlyArray<StrayRow>) : [],
    jobs: (of("job") as ReadonlyArray<JobRow>).map(whole.job),
    quarantined: of("quarantine") as ReadonlyArray<QuarantineRow>
  }
  return { epoch: Number(meta.get("epoch") ?? 0) + 1, saved, lastLogId }
}

/** What an opening leaves behind. */
const opening = ({ epoch, lastLogId }: Opened, logId: string): ReadonlyArray<Put> => [
  { kind: "meta", key: "epoch", value: epoch },
  { kind: "meta", key: "log", value: logId },
  ...(lastLogId === undefined || lastLogId === logId
    ? []
    : ([
        { kind: "member", key: "", value: undefined, under: true },
        { kind: "stray", key: "", value: undefined, under: true }
      ] as const))
]

/** A row of a result: `at` grows from one to the next, over restarts too. */
interface ResultRow {
  readonly at: number
  readonly result: Result
}

/** The results that are kept, in memory as in the rows: what makes room for another is deleted with the same write. */
class Results {
  private recent = new RecentResults()
  private at = 0

  /** Takes over what the rows hold; answers what is to be deleted because there is no room for it any more. */
  open(rows: ReadonlyArray<Row>, maxResults: number | undefined): ReadonlyArray<Put> {
    this.recent = new RecentResults(maxResults)
    const kept = rows
      .filter(({ kind }) => kind === "result")
      .map(({ key, value }) => ({ key, ...(value as ResultRow) }))
      .sort((a, b) => a.at - b.at)
    this.at = kept.at(-1)?.at ?? 0
    return kept.flatMap(({ key, result }) => this.recent.put(key, result)).map(forgotten)
  }

  readonly of = (job: string): Result | undefined => this.recent.get(job)

  /** A write that fails is asked for again; what made room meanwhile is deleted at the next start, at the latest. */
  readonly puts = (write: Write): ReadonlyArray<Put> => {
    if (write.tag !== "PersistResult") return putsOf(write)
    const { job, result } = write
    const gone = this.recent.put(job, result).map(forgotten)
    return [
      result === undefined
        ? forgotten(job)
        : { kind: "result", key: job, value: { at: ++this.at, result } satisfies ResultRow },
      ...gone
    ]
  }
}

const forgotten = (job: string): Put => ({ kind: "result", key: job, value: undefined })

/** Version of the SQLite file's layout, kept in its `user_version`. */
const layout = 1

const attempt = <A>(body: () => A): Effect.Effect<A, DatabaseError> =>
  Effect.try({
    try: body,
    catch: (error) =>
      error instanceof DatabaseError ? error : failure(error instanceof ReplicaError ? (error.cause ?? error) : error)
  })

const prepare = ({ all }: Link): void => {
  all("PRAGMA synchronous = FULL")
  const version = Number(all("PRAGMA user_version")[0]?.[0] ?? 0)
  if (version > layout)
    throw new DatabaseError({
      reason: "newer",
      message: `pool.db is written by a later version of this service (layout ${version}, this one knows ${layout})`
    })
  const check = all("PRAGMA quick_check(1)")[0]?.[0]
  if (check !== "ok")
    throw new DatabaseError({ reason: "damaged", message: `pool.db: ${check ?? "the integrity check gave no answer"}` })
  all(
    "CREATE TABLE IF NOT EXISTS pool (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
  )
  all(`PRAGMA user_version = ${layout}`)
}

const statementOf = ({ key, kind, under, value }: Put): Statement =>
  under === true
    ? ["DELETE FROM pool WHERE kind = ? AND substr(key, 1, length(?)) = ?", [kind, key, key]]
    : value === undefined
      ? ["DELETE FROM pool WHERE kind = ? AND key = ?", [kind, key]]
      : ["INSERT OR REPLACE INTO pool (kind, key, value) VALUES (?, ?, ?)", [kind, key, JSON.stringify(value)]]

/** Of several writes of one row the last alone: a view that is placed in the same step is written once. */
const lastOf = (puts: ReadonlyArray<Put>): ReadonlyArray<Put> => {
  if (puts.length === 1 || puts.some(({ under }) => under === true)) return puts
  const last = new Map(puts.map((each) => [`${each.kind} ${each.key}`, each]))
  return [...last.values()]
}

const putAll = (link: Link, puts: ReadonlyArray<Put>): Effect.Effect<void, DatabaseError> =>
  attempt(() => link.write(lastOf(puts).map(statementOf)))

/** Where a scheduler keeps its SSPs, views and jobs over restarts. */
export class PoolStore extends Context.Tag("ports/PoolStore")<PoolStore, PoolStoreShape>() {
  /** Keeps everything in the process and nothing beyond it; one layer value, built twice, is two. */
  static readonly layerMemory: Layer.Layer<PoolStore> = Layer.sync(PoolStore, () => inMemory(new Map()))

  /** One SQLite file behind the generic `SqlClient`; the door picks the driver. */
  static readonly layerSqlite: Layer.Layer<PoolStore, DatabaseError, SqlClient.SqlClient> = Layer.scoped(
    PoolStore,
    Effect.gen(function* () {
      const link = yield* Effect.mapError(linkOf(yield* SqlClient.SqlClient), failure)
      yield* attempt(() => prepare(link))
      const results = new Results()
      return {
        resultOf: results.of,
        open: (logId, maxResults) =>
          Effect.gen(function* () {
            const rows = yield* attempt(() => link.all("SELECT kind, key, value FROM pool ORDER BY kind, key"))
            const parsed = yield* Effect.try({
              try: () =>
                rows.map(([kind, key, value]) => ({
                  kind: String(kind),
                  key: String(key),
                  value: JSON.parse(String(value)) as unknown
                })),
              catch: (cause) =>
                new DatabaseError({ reason: "damaged", message: "pool.db holds a row that is no JSON", cause })
            })
            const opened = openedFrom(parsed, logId)
            yield* putAll(link, [...opening(opened, logId), ...results.open(parsed, maxResults)])
            return opened
          }),
        write: (writes) =>
          writes.length === 0 ? Effect.void : Effect.suspend(() => putAll(link, writes.flatMap(results.puts)))
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
  const results = new Results()
  return {
    resultOf: results.of,
    open: (logId, maxResults) =>
      Effect.sync(() => {
        const read = [...rows.values()]
        const opened = openedFrom(read, logId)
        for (const put of [...opening(opened, logId), ...results.open(read, maxResults)]) apply(put)
        return opened
      }),
    write: (writes) => Effect.sync(() => writes.flatMap(results.puts).forEach(apply))
  }
}
