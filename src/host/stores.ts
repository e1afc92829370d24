/**
 * Drivers for the store that `STORE_ADDR` names (D22): embedded SQLite in a folder, memory, the database inside this
 * process, or a database server.
 *
 * With a server, records come from its tables (`Upstream`), and the node's own state (versions, positions,
 * registrations, its last known records) stays in the data folder: a restart then compares instead of guessing versions
 * (D23). In a cluster the scheduler has the records and their versions, so an SSP stores none; a server then takes
 * edges and registrations only. Folders are created here, because a missing one is the most common first-run fault and
 * the easiest to fix.
 */

import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer, type Redacted } from "effect"
import * as Address from "../core/settings/address.ts"
import * as SqliteDatabase from "../drivers/sqliteDatabase.ts"
import * as SurrealDatabase from "../drivers/surrealDatabase.ts"
import * as SurrealJobs from "../drivers/surrealJobs.ts"
import * as SurrealUpstream from "../drivers/surrealUpstream.ts"
import { Database, DatabaseError } from "../ports/Database.ts"
import { DatabaseJobs } from "../ports/JobStore.ts"
import { SavedState } from "../ports/SavedState.ts"
import { StartFault } from "../ports/StartFault.ts"
import type { SurrealError } from "../ports/SurrealClient.ts"
import { Upstream } from "../ports/Upstream.ts"
import { lockFile } from "./process/fileLock.ts"
import { privateFolder } from "./process/privateFolder.ts"
import { layerRebuildable } from "./sqlite/rebuildable.ts"
import { layerNamed, layerSqlite } from "./sqlite/Sqlite.ts"
import type { Access, AuthLevel } from "./surreal/SurrealLink.ts"
import { withTokenFile } from "./tokenFile.ts"

type Stores = Layer.Layer<Database | SavedState | Upstream | DatabaseJobs, StartFault>

/** The settings that choose a store, as `SspConfig` has them. */
export interface StoreSettings {
  readonly storeAddr: string | undefined
  readonly dataDir: string
  readonly storeNs: string | undefined
  readonly storeDb: string | undefined
  readonly storeUser: string | undefined
  readonly storePass: Redacted.Redacted<string> | undefined
  readonly storeAuthLevel: AuthLevel | undefined
}

/** The SDK and its socket take a tenth of a second to load: only services that use them wait for that. */
const surreal = Effect.promise(() => import("./surreal/Surreal.ts"))

type AsFault = (error: DatabaseError) => StartFault

const noUpstream = Layer.merge(Upstream.layerNone, DatabaseJobs.layerNone)

/** Namespace and database of a new database. */
const main = "main"

const layerMemory: Stores = Layer.mergeAll(Database.layerNone, SavedState.layerMemory, noUpstream)

const makeFolder = (folder: string): Effect.Effect<void, StartFault> =>
  privateFolder(
    folder,
    (reason) =>
      new StartFault({
        exitCode: 1,
        message: `the data folder ${folder} cannot be made: ${reason}; set SVC_DATA_DIR to a folder this user may write to`
      })
  )

const stateIn = (folder: string): Layer.Layer<SavedState> =>
  SavedState.layerFile(join(folder, "state.json")).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))

/** A store in a folder that is created for it, and the saved state beside it. */
const keptIn = (
  folder: string,
  database: Layer.Layer<Database, DatabaseError | StartFault>,
  asFault: AsFault
): Layer.Layer<Database | SavedState, StartFault> =>
  Layer.merge(
    Layer.catchAll(database, (error) => Layer.fail(error._tag === "StartFault" ? error : asFault(error))),
    stateIn(folder)
  ).pipe(Layer.provide(Layer.merge(Layer.effectDiscard(makeFolder(folder)), layerNamed)))

/** Locks a folder without a store, which nothing else protects from a second process. */
const locked = (folder: string, asFault: AsFault): Layer.Layer<never, StartFault> =>
  Layer.scopedDiscard(
    Effect.acquireRelease(
      Effect.promise(() => lockFile(join(folder, "lock"))).pipe(
        Effect.flatMap((lock) =>
          lock === undefined
            ? Effect.fail(asFault(new DatabaseError({ reason: "locked", message: `${folder} is in use` })))
            : Effect.succeed(lock)
        )
      ),
      (lock) => Effect.promise(lock.release)
    )
  )

/** Getter of the password: read at each sign-in, because a reload replaces it. */
const accessOf = (settings: StoreSettings, namespace: string, database: string): Access => ({
  namespace,
  database,
  user: settings.storeUser,
  authLevel: settings.storeAuthLevel,
  absent: { namespace: "STORE_NS", database: "STORE_DB" },
  get pass() {
    return settings.storePass
  }
})

const openFault =
  (url: string, asFault: AsFault) =>
  (error: DatabaseError | StartFault | SurrealError): StartFault => {
    if (error._tag === "StartFault") return error
    const reason =
      error.reason === "damaged" || error.reason === "locked" || error.reason === "newer" ? error.reason : "failed"
    return asFault(new DatabaseError({ reason, message: `${url}: ${error.message}`, cause: error }))
  }

const layerInProcess = (address: Address.EmbeddedStore, settings: StoreSettings, asFault: AsFault): Stores => {
  const { dataDir, storeDb = main, storeNs = main } = settings
  const client = Layer.unwrapEffect(
    Effect.map(surreal, (drivers) => drivers.layerEmbedded(address, accessOf(settings, storeNs, storeDb)))
  )
  const database = SurrealDatabase.layer.pipe(
    Layer.provide(client),
    Layer.catchAll((error) => Layer.fail(openFault(address.url, asFault)(error)))
  )
  const state = address.url === "mem://" ? SavedState.layerMemory : stateIn(dataDir)
  return Layer.mergeAll(database, state, noUpstream)
}

const upstreamOf = (
  address: Address.ServerStore,
  settings: StoreSettings
): Layer.Layer<Upstream | DatabaseJobs, StartFault> => {
  const { storeDb, storeNs } = settings
  if (storeDb === undefined || storeNs === undefined) {
    return Layer.fail(
      new StartFault({
        exitCode: 2,
        message: `STORE_ADDR=${address.url} names a database server: set STORE_NS and STORE_DB to the namespace and the database on it`
      })
    )
  }
  return Layer.merge(withTokenFile(settings.dataDir, SurrealUpstream.layer), SurrealJobs.layerDatabaseJobs).pipe(
    Layer.provide(
      Layer.unwrapEffect(
        Effect.map(surreal, (drivers) => drivers.layerServer(address, accessOf(settings, storeNs, storeDb)))
      )
    )
  )
}

const layerStandalone = (address: Address.Store | undefined, settings: StoreSettings, asFault: AsFault): Stores => {
  const { dataDir } = settings
  if (address === undefined)
    return Layer.merge(
      keptIn(dataDir, Layer.provide(SqliteDatabase.layer, layerSqlite(join(dataDir, "store.db"))), asFault),
      noUpstream
    )
  if (address.kind === "server")
    return Layer.merge(
      keptIn(dataDir, layerRebuildable(join(dataDir, "upstream.db")), asFault),
      upstreamOf(address, settings)
    )
  return address.kind === "memory" ? layerMemory : layerInProcess(address, settings, asFault)
}

const layerInCluster = (address: Address.Store | undefined, settings: StoreSettings, asFault: AsFault): Stores => {
  if (address?.kind === "memory") return layerMemory
  const { dataDir } = settings
  const kept = Layer.mergeAll(Database.layerNone, stateIn(dataDir), locked(dataDir, asFault)).pipe(
    Layer.provide(Layer.effectDiscard(makeFolder(dataDir)))
  )
  return Layer.merge(kept, address?.kind === "server" ? upstreamOf(address, settings) : noUpstream)
}

/** The data folder, if this store keeps anything in it. */
export const folderOf = ({
  dataDir,
  mode,
  storeAddr
}: Pick<StoreSettings, "dataDir" | "storeAddr"> & { readonly mode: "standalone" | "scheduler" }):
  | string
  | undefined => {
  const address = storeAddr === undefined ? undefined : Address.store(storeAddr)
  if (address === undefined || address.kind === "server") return dataDir
  return address.kind === "memory" || (mode === "standalone" && address.url === "mem://") ? undefined : dataDir
}

export const layer = (
  settings: StoreSettings & { readonly mode: "standalone" | "scheduler" },
  asFault: AsFault
): Stores => {
  const { mode, storeAddr } = settings
  const address = storeAddr === undefined ? undefined : Address.store(storeAddr)
  if (storeAddr !== undefined && address === undefined)
    return Layer.fail(new StartFault({ exitCode: 2, message: `STORE_ADDR=${storeAddr} is no address of a store` }))
  return mode === "standalone"
    ? layerStandalone(address, settings, asFault)
    : layerInCluster(address, settings, asFault)
}
