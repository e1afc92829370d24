/**
 * Opens a scheduler's own state: the log, the replica, the pool, each held by this process alone.
 *
 * In this room because files, folders and drivers belong to a runtime. A store that cannot be opened becomes one fault
 * with its exit code.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Context, Effect, Layer, type Redacted } from "effect"
import * as SqlitePool from "../drivers/sqlitePool.ts"
import * as SurrealUpstream from "../drivers/surrealUpstream.ts"
import type { DatabaseError } from "../ports/Database.ts"
import type { PoolStore } from "../ports/PoolStore.ts"
import { Replica, startFault as replicaFault } from "../ports/Replica.ts"
import { type Durability, SharedLog } from "../ports/SharedLog.ts"
import type { ReplicaFile } from "../ports/Snapshots.ts"
import { exitCodeOf, StartFault } from "../ports/StartFault.ts"
import { Upstream } from "../ports/Upstream.ts"
import { type Wal, startFault as walFault } from "../ports/Wal.ts"
import { privateFolder } from "./process/privateFolder.ts"
import { layerReplica } from "./sqlite/ReplicaFile.ts"
import { layerNamed, layerSqlite } from "./sqlite/Sqlite.ts"
import type { AuthLevel } from "./surreal/SurrealLink.ts"
import { withTokenFile } from "./tokenFile.ts"
import { layerLog } from "./wal/serverLog.ts"
import { layerFile } from "./wal/WalFile.ts"

interface SchedulerPaths {
  readonly replicaDbPath: string
  readonly walPath: string
  readonly database: SourceDatabase | undefined
  /** How long a snapshot of the replica may be read. */
  readonly snapshotTimeoutSecs?: number
}

/** Settings of a scheduler whose log is on a server. */
interface SharedPaths extends Omit<SchedulerPaths, "walPath"> {
  readonly logUrl: Redacted.Redacted<string>
  readonly logDurability: Durability | undefined
  readonly logReplicas: number
  readonly leaseMs: number
}

/** The database to clone, as `SchedulerConfig` has it. */
interface SourceDatabase {
  readonly url: string
  readonly namespace: string
  readonly name: string
  readonly username: string | undefined
  readonly password: Redacted.Redacted<string> | undefined
  readonly authLevel: AuthLevel | undefined
}

const hour = 3600

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

/** The database that is cloned; the SDK is loaded only if one is named. */
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
  return Layer.provide(withTokenFile(folder, SurrealUpstream.layer), client)
}

/**
 * Checks that the replica is of this log on a server, by a mark file: positions of another log would be taken for its
 * own. A replica of the file log has no mark.
 */
const ofOneLog = (folder: string, logId: string | undefined): Effect.Effect<void, StartFault, Replica> =>
  Effect.gen(function* () {
    const mark = join(folder, "log.id")
    const marked = existsSync(mark) ? readFileSync(mark, "utf8").trim() || undefined : undefined
    if (marked === logId) return
    const applied = yield* Effect.mapError((yield* Replica).applied, replicaFault)
    if (marked === undefined && applied === 0 && logId !== undefined) return writeFileSync(mark, `${logId}\n`)
    const text = (id: string | undefined): string => (id === undefined ? "the log in a file" : `the log ${id}`)
    return yield* new StartFault({
      exitCode: 3,
      message: `the replica in ${folder} is of ${text(marked)}, and ${logId === undefined ? "SVC_LOG_URL is not set" : `SVC_LOG_URL names ${text(logId)}`}. Set SVC_LOG_URL as it was, or SVC_SCHEDULER_REPLICA_DB_PATH to another folder`
    })
  })

/** Opened first: its lock keeps a second scheduler out before anything is touched. */
const replicaOf = (folder: string, timeoutSecs: number): Layer.Layer<Replica | ReplicaFile, StartFault> =>
  layerReplica(folder, timeoutSecs * 1000).pipe(Layer.catchAll((error) => Layer.fail(replicaFault(error))))

/** All state in files of this machine. */
export const layer = ({
  database,
  replicaDbPath,
  snapshotTimeoutSecs = hour,
  walPath
}: SchedulerPaths): Layer.Layer<Replica | ReplicaFile | PoolStore | Wal | Upstream, StartFault> => {
  const pool = SqlitePool.layer.pipe(
    Layer.provide(Layer.fresh(layerSqlite(join(replicaDbPath, "pool.db")))),
    Layer.catchAll((error) => Layer.fail(poolFault(error)))
  )
  const file = Layer.unwrapEffect(
    Effect.as(folderOf(walPath), layerFile(walPath).pipe(Layer.catchAll((error) => Layer.fail(walFault(error)))))
  )
  const wal = Layer.tap(file, () => ofOneLog(replicaDbPath, undefined))
  return Layer.mergeAll(pool, wal, upstreamOf(replicaDbPath, database), layerNamed).pipe(
    Layer.provideMerge(replicaOf(replicaDbPath, snapshotTimeoutSecs))
  )
}

/** The replica on this machine, log and pool on a server that other schedulers reach too. */
export const layerShared = ({
  database,
  leaseMs,
  logDurability,
  logReplicas,
  logUrl,
  replicaDbPath,
  snapshotTimeoutSecs = hour
}: SharedPaths): Layer.Layer<Replica | ReplicaFile | SharedLog | Upstream, StartFault> => {
  const log = Layer.tap(
    layerLog({ url: logUrl, leaseMs, durability: logDurability, replicas: logReplicas }),
    (context) => ofOneLog(replicaDbPath, Context.get(context, SharedLog).logId)
  )
  return Layer.mergeAll(log, upstreamOf(replicaDbPath, database), layerNamed).pipe(
    Layer.provideMerge(replicaOf(replicaDbPath, snapshotTimeoutSecs))
  )
}
