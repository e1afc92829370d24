/**
 * Where a scheduler keeps its own state: the log, the replica, the pool, each in its place and held by this process
 * alone.
 *
 * Here because files, folders and drivers are a runtime's. Whatever cannot be opened becomes one fault with the exit
 * code that belongs to it.
 */

import { dirname, join } from "node:path"
import { Effect, Layer, type Redacted } from "effect"
import * as SqlitePool from "../drivers/sqlitePool.ts"
import * as SurrealUpstream from "../drivers/surrealUpstream.ts"
import type { DatabaseError } from "../ports/Database.ts"
import type { PoolStore } from "../ports/PoolStore.ts"
import { type Replica, startFault as replicaFault } from "../ports/Replica.ts"
import { exitCodeOf, StartFault } from "../ports/StartFault.ts"
import { Upstream } from "../ports/Upstream.ts"
import { type Wal, startFault as walFault } from "../ports/Wal.ts"
import { privateFolder } from "./process/privateFolder.ts"
import { remembering } from "./remembering.ts"
import { layerReplica } from "./sqlite/ReplicaFile.ts"
import { layerNamed, layerSqlite } from "./sqlite/Sqlite.ts"
import type { AuthLevel } from "./surreal/SurrealLink.ts"
import { layerFile } from "./wal/WalFile.ts"

export interface SchedulerPaths {
  readonly replicaDbPath: string
  readonly walPath: string
  readonly database: SourceDatabase | undefined
}

/** The database to clone, as `SchedulerConfig` has it. */
export interface SourceDatabase {
  readonly url: string
  readonly namespace: string
  readonly name: string
  readonly username: string | undefined
  readonly password: Redacted.Redacted<string> | undefined
  readonly authLevel: AuthLevel | undefined
}

const poolFault = ({ message, reason }: DatabaseError): StartFault =>
  new StartFault({
    exitCode: exitCodeOf(reason),
    message: `${message}; the pool lies in replica_db_path (SVC_SCHEDULER_REPLICA_DB_PATH)`
  })

const folderOf = (walPath: string): Effect.Effect<void, StartFault> =>
  privateFolder(
    dirname(walPath),
    (reason) =>
      new StartFault({
        exitCode: 1,
        message: `the folder of ${walPath} cannot be made: ${reason}; set wal_path (SVC_SCHEDULER_WAL_PATH)`
      })
  )

/** The database that is cloned; the SDK is loaded only where one is named. */
const upstreamOf = (folder: string, database: SourceDatabase | undefined): Layer.Layer<Upstream> => {
  if (database === undefined) return Upstream.layerNone
  const { authLevel, name, namespace, url, username } = database
  const access = {
    namespace,
    database: name,
    user: username,
    authLevel,
    absent: { namespace: "SVC_SCHEDULER_DB_NAMESPACE", database: "SVC_SCHEDULER_DB_DATABASE" },
    get pass() {
      return database.password
    }
  }
  const client = Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./surreal/Surreal.ts")),
      (drivers) => drivers.layerServer({ kind: "server", url }, access)
    )
  )
  return Layer.provide(remembering(folder, SurrealUpstream.layer), client)
}

/** The replica first: its lock keeps a second scheduler out before anything is touched. */
export const layer = ({
  database,
  replicaDbPath,
  walPath
}: SchedulerPaths): Layer.Layer<Replica | PoolStore | Wal | Upstream, StartFault> => {
  const replica = layerReplica(replicaDbPath).pipe(Layer.catchAll((error) => Layer.fail(replicaFault(error))))
  const pool = SqlitePool.layer.pipe(
    Layer.provide(Layer.fresh(layerSqlite(join(replicaDbPath, "pool.db")))),
    Layer.catchAll((error) => Layer.fail(poolFault(error)))
  )
  const wal = Layer.unwrapEffect(
    Effect.as(folderOf(walPath), layerFile(walPath).pipe(Layer.catchAll((error) => Layer.fail(walFault(error)))))
  )
  return Layer.mergeAll(pool, wal, upstreamOf(replicaDbPath, database), layerNamed).pipe(Layer.provideMerge(replica))
}
