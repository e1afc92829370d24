/** The pool of a scheduler in one SQLite file behind the generic `SqlClient`; the host picks the driver. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import * as JsonText from "../core/jsonText.ts"
import * as Layout from "../core/storeLayout.ts"
import { DatabaseError } from "../ports/Database.ts"
import { PoolStore } from "../ports/PoolStore.ts"
import { Heap } from "../ports/ProcessFigures.ts"
import { ReplicaError } from "../ports/Replica.ts"
import { type Row, type RowPut, readAll, storeOver } from "./poolRows.ts"
import { failure } from "./shared/sqliteFailure.ts"
import { type Link, link as linkOf, type Statement } from "./shared/sqliteLink.ts"

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
  const unusable = Layout.layoutFault(version, layout) ?? Layout.integrityFault(all("PRAGMA quick_check(1)")[0]?.[0])
  if (unusable !== undefined) throw new DatabaseError({ ...unusable, message: `pool.db: ${unusable.message}` })
  all(
    "CREATE TABLE IF NOT EXISTS pool (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
  )
  all(`PRAGMA user_version = ${layout}`)
}

const statementOf = ({ key, kind, under, value }: RowPut): Statement =>
  under === true
    ? ["DELETE FROM pool WHERE kind = ? AND substr(key, 1, length(?)) = ?", [kind, key, key]]
    : value === undefined
      ? ["DELETE FROM pool WHERE kind = ? AND key = ?", [kind, key]]
      : ["INSERT OR REPLACE INTO pool (kind, key, value) VALUES (?, ?, ?)", [kind, key, JsonText.write(value)]]

/** Keeps only the last of several writes of a row: a view that is placed in the same step is written once. */
const lastOf = (puts: ReadonlyArray<RowPut>): ReadonlyArray<RowPut> => {
  if (puts.length === 1 || puts.some(({ under }) => under === true)) return puts
  const last = new Map(puts.map((each) => [`${each.kind} ${each.key}`, each]))
  return [...last.values()]
}

const putAll = (link: Link, puts: ReadonlyArray<RowPut>): Effect.Effect<void, DatabaseError> =>
  attempt(() => link.write(lastOf(puts).map(statementOf)))

const lengths = ({ all }: Link): ReadonlyArray<number> =>
  all("SELECT length(value) FROM pool ORDER BY kind, key").map(([length]) => Number(length))

const pageOf =
  ({ all }: Link) =>
  (behind: Pick<Row, "kind" | "key">, count: number): Effect.Effect<ReadonlyArray<Row>, DatabaseError> =>
    Effect.flatMap(
      attempt(() =>
        all("SELECT kind, key, value FROM pool WHERE (kind, key) > (?, ?) ORDER BY kind, key LIMIT ?", [
          behind.kind,
          behind.key,
          count
        ])
      ),
      (found) =>
        Effect.try({
          try: () =>
            found.map(([kind, key, value]) => ({
              kind: String(kind),
              key: String(key),
              value: JsonText.parse(String(value))
            })),
          catch: (cause) =>
            new DatabaseError({ reason: "damaged", message: "pool.db holds a row that is no JSON", cause })
        })
    )

export const layer: Layer.Layer<PoolStore, DatabaseError, SqlClient.SqlClient> = Layer.scoped(
  PoolStore,
  Effect.gen(function* () {
    const link = yield* Effect.mapError(linkOf(yield* SqlClient.SqlClient), failure)
    yield* attempt(() => prepare(link))
    return storeOver({
      rows: Effect.flatMap(Heap, (heap) =>
        Effect.flatMap(
          attempt(() => lengths(link)),
          (all) => readAll(heap, all, pageOf(link))
        )
      ),
      put: (puts) => putAll(link, puts)
    })
  })
)
