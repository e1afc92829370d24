/**
 * The database server of `STORE_ADDR` alone, without a store of the node's own: for commands that work on it and end.
 *
 * Apart from `stores.ts`, because a command must not open the data folder, which the running service has locked.
 */
import { Effect, Layer } from "effect"
import * as Address from "../core/settings/address.ts"
import * as SurrealUpstream from "../drivers/surrealUpstream.ts"
import { StartFault } from "../ports/StartFault.ts"
import { SurrealClient, SurrealError } from "../ports/SurrealClient.ts"
import { Upstream } from "../ports/Upstream.ts"
import type { StoreSettings } from "./stores.ts"
import type { Access } from "./surreal/SurrealLink.ts"

/** Shorter limits than a service's: a person is waiting. */
const patience = { connectTimeoutMs: 5_000, requestTimeoutMs: 15_000, maxPauseMs: 1_000 }

const none: Layer.Layer<SurrealClient> = Layer.sync(SurrealClient, () => {
  const refusal = Effect.fail(
    new SurrealError({ reason: "refused", message: "STORE_ADDR names no database server", uncertain: false })
  )
  return { ask: () => refusal, query: () => refusal, listen: () => refusal }
})

/** `Upstream` is absent if `STORE_ADDR` names no server; `create`: namespace and database may be created. */
export const layer = (settings: StoreSettings, create: boolean): Layer.Layer<SurrealClient | Upstream, StartFault> => {
  const { storeAddr, storeAuthLevel, storeDb, storeNs, storePass, storeUser } = settings
  const address = storeAddr === undefined ? undefined : Address.store(storeAddr)
  if (address?.kind !== "server") return Layer.merge(none, Upstream.layerNone)
  if (storeDb === undefined || storeNs === undefined)
    return Layer.fail(
      new StartFault({
        exitCode: 2,
        message: `STORE_ADDR=${address.url} names a database server: set STORE_NS and STORE_DB to the namespace and the database on it`
      })
    )
  const access: Access = {
    namespace: storeNs,
    database: storeDb,
    user: storeUser,
    pass: storePass,
    authLevel: storeAuthLevel,
    absent: create ? "create" : { namespace: "STORE_NS", database: "STORE_DB" }
  }
  const client = Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./surreal/Surreal.ts")),
      (drivers) => drivers.layerServer(address, access, patience)
    )
  )
  return Layer.provideMerge(SurrealUpstream.layer, client)
}
