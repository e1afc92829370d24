/**
 * Serves as one of several schedulers over a shared log: the take-over on the drivers of this process.
 */
import { Effect, Layer } from "effect"
import * as Exchange from "../../host/http/exchange.ts"
import * as Server from "../../host/http/Server.ts"
import * as Process from "../../host/process/Process.ts"
import type * as Telemetry from "../../host/process/telemetry.ts"
import * as Sources from "../../host/snapshots/snapshotSources.ts"
import type { SchedulerConfigShape } from "../../scheduler/Config.ts"
import * as TakeOver from "../../scheduler/standby/takeOver.ts"
import { listenerOf, serveOn } from "./serveOn.ts"

/**
 * Time to end after a lost term: it has nothing to finish, and calls to a server that does not answer would keep the
 * process.
 */
const endMs = 1000

/** Serves over a shared log and drivers until the process is told to stop. */
export const serve = (config: SchedulerConfigShape, { metrics }: Telemetry.Layers) =>
  Effect.flatMap(listenerOf(config), (listener) =>
    TakeOver.serve(config, {
      client: Exchange.layerClient(config.tls),
      snapshots: (log, peers) => Sources.make({ ...config, log, peers }),
      standby: Layer.merge(Server.layerOn(listener), metrics),
      leading: (begun) => serveOn(config, metrics, listener, begun),
      end: (fault) => Process.endWithin(fault, endMs)
    })
  ).pipe(Effect.scoped)
