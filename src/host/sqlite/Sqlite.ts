/**
 * The SQLite driver: a `SqlClient` over one file, for any runtime.
 *
 * better-sqlite3 if it loads, which is in the Node it was built for; else the runtime's own SQLite. In this room
 * because drivers belong to a runtime; `ports/` only knows the generic client. Opening a file can fail with a defect
 * inside a driver (a missing folder, a file that is no database): those become errors here.
 */
import type { SqlClient } from "@effect/sql"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Cause, type Context, Data, Effect, Exit, Layer, LogLevel, type Scope } from "effect"
import { classify } from "../../drivers/shared/sqliteFailure.ts"
import { DatabaseError } from "../../ports/Database.ts"
import * as Builtin from "./sqliteBuiltin.ts"

/** The driver does not load in this runtime, whatever the file. */
class Unloadable extends Data.TaggedError("Unloadable")<{ readonly message: string }> {}

type Client = Layer.Layer<SqlClient.SqlClient, unknown>

/** Whether an error means that the addon is missing or not for this runtime. */
const isUnloadable = (error: unknown): boolean =>
  error instanceof Error &&
  (/bindings file/.test(error.message) ||
    ("code" in error && /^(?:ERR_DLOPEN_FAILED|(?:ERR_)?MODULE_NOT_FOUND)$/.test(String(error.code))))

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? ""

const addon = (filename: string): Client => {
  if ("Deno" in globalThis) return Layer.fail(new Unloadable({ message: "Deno takes no addons of its kind" }))
  return SqliteClient.layer({ filename }).pipe(
    Layer.catchAllCause(
      (cause): Client =>
        isUnloadable(Cause.squash(cause))
          ? Layer.fail(new Unloadable({ message: firstLine(Cause.squash(cause)) }))
          : Layer.failCause(cause)
    )
  )
}

const builtin = (filename: string): Client => {
  const module = Builtin.builtin()
  return module === undefined
    ? Layer.fail(new Unloadable({ message: `Node has it from 22.16 on, this is ${process.version}` }))
    : Builtin.layer(module, filename)
}

/** Tried in this order. */
const drivers = { "better-sqlite3": addon, "node:sqlite": builtin }

type Driver = keyof typeof drivers

interface Opened {
  readonly driver: Driver
  readonly context: Context.Context<SqlClient.SqlClient>
}

/**
 * Opens without a pause, because a caller that opens a second connection for one state notes that state just before.
 */
const open = (filename: string): Effect.Effect<Opened, DatabaseError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const missing: Array<string> = []
    for (const driver of Object.keys(drivers) as ReadonlyArray<Driver>) {
      const built = yield* Layer.buildWithScope(Layer.fresh(drivers[driver](filename)), scope).pipe(Effect.exit)
      if (Exit.isSuccess(built)) return { driver, context: built.value }
      const cause = Cause.squash(built.cause)
      if (!(cause instanceof Unloadable)) {
        const { message, reason } = classify(cause)
        return yield* new DatabaseError({
          reason: reason === "full" ? "failed" : reason,
          message: `${filename}: ${message}`,
          cause
        })
      }
      missing.push(`${driver}: ${cause.message}`)
    }
    return yield* new DatabaseError({
      reason: "failed",
      message: `no SQLite driver loads here (${missing.join("; ")}): run \`npm rebuild better-sqlite3\` with this Node`
    })
  })

/** The driver that {@link layerSqlite} uses in this runtime. */
export const driver: Effect.Effect<Driver, DatabaseError> = Effect.scoped(
  Effect.map(open(":memory:"), (opened) => opened.driver)
)

/**
 * Logs the driver at a start: at level info if it is not the usual one. If none loads, opening a file fails with the
 * reason.
 */
export const layerNamed: Layer.Layer<never> = Layer.effectDiscard(
  driver.pipe(
    Effect.flatMap((name) =>
      Effect.logWithLevel(name === "better-sqlite3" ? LogLevel.Debug : LogLevel.Info, `SQLite through ${name}`)
    ),
    Effect.ignore
  )
)

/** `filename` in WAL mode. Fails with a {@link DatabaseError} that names the file. */
export const layerSqlite = (filename: string): Layer.Layer<SqlClient.SqlClient, DatabaseError> =>
  Layer.scopedContext(Effect.map(open(filename), ({ context }) => context))
