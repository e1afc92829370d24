/**
 * The SQLite driver: a `SqlClient` over one file, for whichever runtime this is.
 *
 * Here because drivers are a runtime's business; `ports/` only knows the generic client. Opening a file can fail with
 * a defect inside the driver (a folder that is missing, a file that is no database): those become errors here.
 */
import type { SqlClient } from "@effect/sql"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Cause, Effect, Exit, Layer } from "effect"
import { DatabaseError } from "../ports/Database.ts"

/** `filename` in WAL mode. Fails as {@link DatabaseError} naming the file. */
export const layerSqlite = (filename: string): Layer.Layer<SqlClient.SqlClient, DatabaseError> =>
  Layer.unwrapScoped(
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      if ("Deno" in globalThis) {
        return yield* new DatabaseError({ reason: "failed", message: "the embedded SQLite store does not run under Deno yet; set STORE_ADDR=memory://" })
      }
      const built = yield* Layer.buildWithScope(SqliteClient.layer({ filename }), scope).pipe(Effect.exit)
      if (Exit.isSuccess(built)) return Layer.succeedContext(built.value)
      const cause = Cause.squash(built.cause)
      const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""
      const reason = /CORRUPT|NOTADB/.test(code) ? "damaged" : /BUSY|LOCKED/.test(code) ? "locked" : "failed"
      return yield* new DatabaseError({ reason, message: `${filename}: ${cause instanceof Error ? cause.message : String(cause)}`, cause })
    })
  )
