/**
 * The runtime's own SQLite (`node:sqlite`, in Deno and in newer versions of Node), as the generic `SqlClient`.
 *
 * For runtimes in which better-sqlite3 does not load: Deno takes no such addons, and one built for another Node does
 * not fit. Layers above see the same: rows as objects or as arrays, errors with SQLite's own names as codes, and one
 * synchronous connection. These runtimes end a text at U+0000 when they read it, so a stored text must not hold any
 * (`drivers/shared/keptText.ts`).
 */

import * as Reactivity from "@effect/experimental/Reactivity"
import * as Client from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { Recent } from "../../core/recent.ts"

interface Prepared {
  readonly all: (...params: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
  readonly setReturnArrays: (wanted: boolean) => void
  readonly setReadBigInts: (wanted: boolean) => void
}

interface Opened {
  readonly prepare: (sql: string) => Prepared
  readonly exec: (sql: string) => void
  readonly close: () => void
}

/** The part of `node:sqlite` that is used. */
interface Builtin {
  readonly DatabaseSync: new (filename: string) => Opened
  readonly StatementSync: { readonly prototype: object }
}

/** The module; undefined if the runtime has none, or one that is too old to return rows as arrays. */
export const builtin = (): Builtin | undefined => {
  const host: { readonly getBuiltinModule?: (name: string) => unknown } = process
  const found = host.getBuiltinModule?.("node:sqlite") as Builtin | undefined
  return found !== undefined && "setReturnArrays" in found.StatementSync.prototype ? found : undefined
}

/** Names of primary result codes that callers ask for, by number. */
const names: { readonly [code: number]: string } = {
  1: "SQLITE_ERROR",
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  19: "SQLITE_CONSTRAINT",
  26: "SQLITE_NOTADB"
}

/** Result codes by SQLite's messages, for calls where a runtime leaves the number out (Deno does for some). */
const words: ReadonlyArray<readonly [RegExp, string]> = [
  [/is malformed/, "SQLITE_CORRUPT"],
  [/not a database/, "SQLITE_NOTADB"],
  [/is locked/, "SQLITE_BUSY"],
  [/disk is full/, "SQLITE_FULL"],
  [/disk I\/O/, "SQLITE_IOERR"]
]

/** The error that SQLite raised, with the name of its result code as `code`. */
export const withCode = (error: unknown): Error => {
  const fault = error instanceof Error ? error : new Error(String(error))
  const number = "errcode" in fault && typeof fault.errcode === "number" ? fault.errcode & 0xff : undefined
  const code =
    number === undefined
      ? words.find(([pattern]) => pattern.test(fault.message))?.[1]
      : (names[number] ?? `SQLITE_${number}`)
  return Object.assign(new Error(fault.message, { cause: fault.cause }), {
    name: "SqliteError",
    code: code ?? "SQLITE_ERROR"
  })
}

const attempt = <A>(message: string, body: () => A): Effect.Effect<A, SqlError> =>
  Effect.try({ try: body, catch: (error) => new SqlError({ cause: withCode(error), message }) })

/** The statements used last stay prepared; each remembers how its rows are read. */
const keptStatements = 200

interface Ready {
  readonly prepared: Prepared
  arrays: boolean
  bigInts: boolean
}

const connectionOf = (database: Opened): Connection => {
  const ready = new Recent<string, Ready>(keptStatements)
  const prepare = (sql: string): Ready => ({ prepared: database.prepare(sql), arrays: false, bigInts: false })
  const kept = (sql: string): Ready => {
    const found = ready.get(sql) ?? prepare(sql)
    ready.set(sql, found)
    return found
  }
  const run = (
    of: (sql: string) => Ready,
    sql: string,
    params: ReadonlyArray<unknown>,
    arrays: boolean
  ): Effect.Effect<ReadonlyArray<unknown>, SqlError> =>
    Effect.withFiberRuntime((fiber) => {
      const bigInts = Context.get(fiber.currentContext as Context.Context<Client.SafeIntegers>, Client.SafeIntegers)
      return attempt("Failed to execute statement", () => {
        const statement = of(sql)
        if (statement.arrays !== arrays) statement.prepared.setReturnArrays((statement.arrays = arrays))
        if (statement.bigInts !== bigInts) statement.prepared.setReadBigInts((statement.bigInts = bigInts))
        return statement.prepared.all(...params)
      })
    })
  const rows =
    (of: (sql: string) => Ready): Connection["execute"] =>
    (sql, params, transform) => {
      const answered = run(of, sql, params, false) as Effect.Effect<ReadonlyArray<object>, SqlError>
      return transform === undefined ? answered : Effect.map(answered, transform)
    }
  return {
    execute: rows(kept),
    executeUnprepared: rows(prepare),
    executeRaw: (sql, params) => run(kept, sql, params, false),
    executeValues: (sql, params) =>
      run(kept, sql, params, true) as Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError>,
    executeStream: (sql, params, transform) => Stream.fromIterableEffect(rows(kept)(sql, params, transform))
  }
}

/**
 * The settings with which better-sqlite3 opens a connection, so that both behave alike: lock time-out, cache size, WAL.
 */
const opening = ["PRAGMA busy_timeout = 5000", "PRAGMA cache_size = -16000", "PRAGMA journal_mode = WAL"]

const open = ({ DatabaseSync }: Builtin, filename: string): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(`Failed to open ${filename}`, () => new DatabaseSync(filename)),
    (database) => Effect.sync(() => database.close())
  ).pipe(
    Effect.flatMap((database) =>
      Effect.as(
        attempt(`Failed to open ${filename}`, () => opening.forEach((pragma) => database.prepare(pragma).all())),
        connectionOf(database)
      )
    )
  )

const make = (
  module: Builtin,
  filename: string
): Effect.Effect<Client.SqlClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const connection = yield* open(module, filename)
    // One caller at a time: a transaction has the connection for itself.
    const turn = yield* Effect.makeSemaphore(1)
    return yield* Client.make({
      acquirer: turn.withPermits(1)(Effect.succeed(connection)),
      transactionAcquirer: Effect.uninterruptibleMask((restore) =>
        Effect.as(
          Effect.acquireRelease(restore(turn.take(1)), () => turn.release(1)),
          connection
        )
      ),
      compiler: Statement.makeCompilerSqlite(),
      spanAttributes: [["db.system.name", "sqlite"]]
    })
  })

/** One connection to `filename`, in WAL mode. */
export const layer = (module: Builtin, filename: string): Layer.Layer<Client.SqlClient, SqlError> =>
  Layer.scoped(Client.SqlClient, make(module, filename)).pipe(Layer.provide(Reactivity.layer))
