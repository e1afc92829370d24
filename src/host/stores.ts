/**
 * Drivers for the store that `STORE_ADDR` names (D22): embedded SQLite in a folder, or memory.
 *
 * The folder is made here, because a missing folder is the most common first-run fault and the easiest to fix.
 */
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Database, type DatabaseError } from "../ports/Database.ts"
import { SavedState } from "../ports/SavedState.ts"
import { StartFault } from "../ports/StartFault.ts"
import { layerSqlite } from "./Sqlite.ts"

export type Stores = Layer.Layer<Database | SavedState, StartFault>

const layerMemory: Stores = Layer.merge(Database.layerMemory, SavedState.layerMemory)

const makeFolder = (folder: string): Effect.Effect<void, StartFault> =>
  Effect.try({
    try: () => void mkdirSync(folder, { recursive: true }),
    catch: (error) => new StartFault({ exitCode: 1, message: `the data folder ${folder} cannot be made: ${error instanceof Error ? error.message : String(error)}; set SVC_DATA_DIR to a folder this user may write to` })
  })

const layerEmbedded = (folder: string, asFault: (error: DatabaseError) => StartFault): Stores => {
  const database = Database.layerSqlite.pipe(Layer.provide(layerSqlite(join(folder, "store.db"))), Layer.catchAll((error) => Layer.fail(asFault(error))))
  const state = SavedState.layerFile(join(folder, "state.json")).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))
  return Layer.merge(database, state).pipe(Layer.provide(Layer.effectDiscard(makeFolder(folder))))
}

/** `address` as {@link layerEmbedded} when it is unset. */
export const layer = (address: string | undefined, folder: string, asFault: (error: DatabaseError) => StartFault): Stores =>
  address === undefined ? layerEmbedded(folder, asFault) : layerMemory
