/**
 * The replica's file: `replica.db` in the folder that `replica_db_path` names, held by one process.
 *
 * Here because files and drivers are a runtime's. A lock beside the file and not SQLite's own, because that one would
 * keep out our own connections that read.
 */

import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, type Scope } from "effect"
import * as SqliteReplica from "../../drivers/sqliteReplica.ts"
import { type Replica, ReplicaError } from "../../ports/Replica.ts"
import { lockFile } from "../process/fileLock.ts"
import { privateFolder } from "../process/privateFolder.ts"
import { layerSqlite } from "./Sqlite.ts"

export const fileName = "replica.db"

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const unusable = (folder: string, reason: string): ReplicaError =>
  new ReplicaError({
    reason: "failed",
    message: `the replica's folder ${folder} cannot be used: ${reason}; set replica_db_path to one that this user may write to`
  })

const lock = (folder: string): Effect.Effect<void, ReplicaError, Scope.Scope> =>
  Effect.acquireRelease(
    privateFolder(folder, (reason) => unusable(folder, reason)).pipe(
      Effect.zipRight(
        Effect.tryPromise({
          try: () => lockFile(join(folder, `${fileName}.lock`)),
          catch: (cause) => unusable(folder, textOf(cause))
        })
      ),
      Effect.filterOrFail(
        (held) => held !== undefined,
        () => new ReplicaError({ reason: "locked", message: `${join(folder, fileName)}: another process has it` })
      )
    ),
    (held) => Effect.promise(() => held.release())
  ).pipe(Effect.asVoid)

/** Fails as {@link ReplicaError} that names the file. */
export const layerReplica = (folder: string): Layer.Layer<Replica, ReplicaError> => {
  const file = join(folder, fileName)
  const open = Layer.build(Layer.fresh(layerSqlite(file))).pipe(
    Effect.map((context) => Context.get(context, SqlClient.SqlClient)),
    Effect.mapError(({ cause, message, reason }) => new ReplicaError({ reason, message, cause }))
  )
  const named = ({ cause, message, reason }: ReplicaError): ReplicaError =>
    new ReplicaError({ reason, message: message.includes(folder) ? message : `${file}: ${message}`, cause })
  return Layer.unwrapScoped(Effect.as(lock(folder), SqliteReplica.layer(open))).pipe(
    Layer.catchAll((error) => Layer.fail(named(error)))
  )
}
