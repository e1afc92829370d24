/**
 * Serves as a scheduler: the drivers, and the composition on them.
 *
 * Loaded only to serve: help, version and faults of the configuration are answered without it.
 */
import { Effect, Layer } from "effect"
import * as Telemetry from "../../host/process/telemetry.ts"
import * as Stores from "../../host/schedulerStores.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import type { SchedulerConfigShape } from "../../scheduler/Config.ts"
import { drivers, listenerOf, serveOn } from "./serveOn.ts"

/** Serves until the process is told to stop. */
export const serve = (config: SchedulerConfigShape): Effect.Effect<void, StartFault> => {
  const { leaseMs, logDurability, logReplicas, logUrl } = config
  const telemetry = Telemetry.layers({ server: "scheduler", id: config.schedulerId }, config)
  if (logUrl === undefined)
    return Effect.flatMap(listenerOf(config), (listener) => serveOn(config, telemetry.metrics, listener)).pipe(
      Effect.scoped,
      Effect.provide(Layer.provideMerge(Layer.mergeAll(Stores.layer(config), drivers(config)), telemetry.around))
    )
  const stores = Stores.layerShared({ ...config, leaseMs, logDurability, logReplicas, logUrl })
  return Effect.flatMap(
    Effect.promise(() => import("./serveShared.ts")),
    (shared) => shared.serve(config, telemetry)
  ).pipe(Effect.provide(Layer.provideMerge(Layer.mergeAll(stores, drivers(config)), telemetry.around)))
}
