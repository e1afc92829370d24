/**
 * The embedded store of a node that can rebuild it from a database server (D23): if damaged, it is moved away and begun
 * anew.
 *
 * Apart from the plain store, which refuses damage: no other place has its records. Here the file is a copy, and a node
 * that stays down over it would be worse than one that reads everything again.
 */

import { existsSync, renameSync } from "node:fs"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import * as SqliteDatabase from "../../drivers/sqliteDatabase.ts"
import { Database, DatabaseError, type DatabaseShape } from "../../ports/Database.ts"
import { layerSqlite } from "./Sqlite.ts"

/** Suffixes of the database's file and of SQLite's files beside it. */
const suffixes = ["", "-wal", "-shm"]

/** Moves the files away, over those moved away before. */
const moveAway = (file: string): Effect.Effect<string, DatabaseError> =>
  Effect.try({
    try: () => {
      for (const suffix of suffixes)
        if (existsSync(file + suffix)) renameSync(file + suffix, `${file}.damaged${suffix}`)
      return `${file}.damaged`
    },
    catch: (cause) =>
      new DatabaseError({
        reason: "failed",
        message: `${file} is damaged and cannot be moved out of the way: ${cause instanceof Error ? cause.message : String(cause)}`,
        cause
      })
  })

interface Opened {
  readonly database: DatabaseShape
  readonly scope: Scope.CloseableScope
}

const open = (file: string): Effect.Effect<Opened, DatabaseError> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const built = Layer.buildWithScope(Layer.fresh(Layer.provide(SqliteDatabase.layer, layerSqlite(file))), scope)
    const context = yield* Effect.onError(built, (cause) => Scope.close(scope, Exit.failCause(cause)))
    return { database: Context.get(context, Database), scope }
  })

/**
 * The store in `file`. Damage found on opening is handled here; damage found later is handled by the reader through
 * `setAside`.
 */
export const layerRebuildable = (file: string): Layer.Layer<Database, DatabaseError> =>
  Layer.scoped(
    Database,
    Effect.gen(function* () {
      let opened = yield* Effect.catchIf(
        open(file),
        ({ reason }) => reason === "damaged",
        ({ message }) =>
          Effect.gen(function* () {
            const where = yield* moveAway(file)
            yield* Effect.logError(`${message}; it was moved to ${where} and is rebuilt from the database`)
            return yield* open(file)
          })
      )
      yield* Effect.addFinalizer((exit) => Effect.suspend(() => Scope.close(opened.scope, exit)))
      const setAside = Effect.uninterruptible(
        Effect.gen(function* () {
          yield* Scope.close(opened.scope, Exit.void)
          const where = yield* moveAway(file)
          opened = yield* open(file)
          return where
        })
      )
      return {
        kind: opened.database.kind,
        records: Stream.suspend(() => opened.database.records),
        views: Effect.suspend(() => opened.database.views),
        position: Effect.suspend(() => opened.database.position),
        commit: (commit) => opened.database.commit(commit),
        reset: Effect.suspend(() => opened.database.reset),
        setAside
      }
    })
  )
