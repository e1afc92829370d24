/**
 * Drivers for the store that `STORE_ADDR` names (D22): embedded SQLite in a folder, memory, the database inside this
 * process, or a database server.
 *
 * With a server its tables are where records come from (`Upstream`), and what is the node's own (versions, positions,
 * registrations, the records as it last knew them) stays in the data folder: a restart then compares instead of guessing
 * versions (D23). Folders are made here, because a missing one is the most common first-run fault and the easiest to fix.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer, type Redacted } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as Address from "../core/address.ts"
import { Database, DatabaseError } from "../ports/Database.ts"
import { SavedState } from "../ports/SavedState.ts"
import { StartFault } from "../ports/StartFault.ts"
import type { SurrealError } from "../ports/SurrealClient.ts"
import * as SurrealDatabase from "../ports/surrealDatabase.ts"
import { Upstream } from "../ports/Upstream.ts"
import { layerSqlite } from "./Sqlite.ts"
import type { Access, AuthLevel } from "./SurrealLink.ts"

export type Stores = Layer.Layer<Database | SavedState | Upstream, StartFault>

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

/** The SDK and its socket take a tenth of a second to load: only who uses them waits for that. */
const surreal = Effect.promise(() => import("./Surreal.ts"))

type AsFault = (error: DatabaseError) => StartFault

/** Namespace and database that a new database has by itself. */
const main = "main"

const layerMemory: Stores = Layer.mergeAll(Database.layerMemory, SavedState.layerMemory, Upstream.layerNone)

const makeFolder = (folder: string): Effect.Effect<void, StartFault> =>
  Effect.try({
    try: () => void mkdirSync(folder, { recursive: true }),
    catch: (error) => new StartFault({ exitCode: 1, message: `the data folder ${folder} cannot be made: ${error instanceof Error ? error.message : String(error)}; set SVC_DATA_DIR to a folder this user may write to` })
  })

const stateIn = (folder: string): Layer.Layer<SavedState> => SavedState.layerFile(join(folder, "state.json")).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))

const sqliteIn = (folder: string, file: string, asFault: AsFault): Layer.Layer<Database | SavedState, StartFault> => {
  const database = Database.layerSqlite.pipe(Layer.provide(layerSqlite(join(folder, file))), Layer.catchAll((error) => Layer.fail(asFault(error))))
  return Layer.merge(database, stateIn(folder)).pipe(Layer.provide(Layer.effectDiscard(makeFolder(folder))))
}

const accessOf = ({ storeAuthLevel, storePass, storeUser }: StoreSettings, namespace: string, database: string): Access =>
  ({ namespace, database, user: storeUser, pass: storePass, authLevel: storeAuthLevel })

const openFault = (url: string, asFault: AsFault) => (error: DatabaseError | StartFault | SurrealError): StartFault => {
  if (error._tag === "StartFault") return error
  const reason = error.reason === "damaged" || error.reason === "locked" || error.reason === "newer" ? error.reason : "failed"
  return asFault(new DatabaseError({ reason, message: `${url}: ${error.message}`, cause: error }))
}

const layerInProcess = (address: Address.EmbeddedStore, settings: StoreSettings, asFault: AsFault): Stores => {
  const { dataDir, storeDb = main, storeNs = main } = settings
  const client = Layer.unwrapEffect(Effect.map(surreal, (drivers) => drivers.layerEmbedded(address, accessOf(settings, storeNs, storeDb))))
  const database = SurrealDatabase.layer.pipe(Layer.provide(client), Layer.catchAll((error) => Layer.fail(openFault(address.url, asFault)(error))))
  const state = address.url === "mem://" ? SavedState.layerMemory : stateIn(dataDir)
  return Layer.mergeAll(database, state, Upstream.layerNone)
}

const layerOfServer = (address: Address.ServerStore, settings: StoreSettings, asFault: AsFault): Stores => {
  const { dataDir, storeDb, storeNs } = settings
  if (storeDb === undefined || storeNs === undefined) {
    return Layer.fail(new StartFault({ exitCode: 2, message: `STORE_ADDR=${address.url} names a database server: set STORE_NS and STORE_DB to the namespace and the database on it` }))
  }
  const client = Layer.unwrapEffect(Effect.map(surreal, (drivers) => drivers.layerServer(address, accessOf(settings, storeNs, storeDb))))
  return Layer.merge(sqliteIn(dataDir, "upstream.db", asFault), Upstream.layerSurreal.pipe(Layer.provide(client)))
}

export const layer = (settings: StoreSettings, asFault: AsFault): Stores => {
  const { dataDir, storeAddr } = settings
  if (storeAddr === undefined) return Layer.merge(sqliteIn(dataDir, "store.db", asFault), Upstream.layerNone)
  const address = Address.store(storeAddr)
  switch (address?.kind) {
    case "memory": return layerMemory
    case "embedded": return layerInProcess(address, settings, asFault)
    case "server": return layerOfServer(address, settings, asFault)
    default: return Layer.fail(new StartFault({ exitCode: 2, message: `STORE_ADDR=${storeAddr} is no address of a store` }))
  }
}
