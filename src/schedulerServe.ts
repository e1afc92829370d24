/**
 * What the door of the scheduler loads to serve: the drivers, and the composition on them.
 *
 * The program loads this only to serve: help, version and faults of the configuration are answered without it.
 */
import { Effect, Layer } from "effect"
import * as Names from "./host/http/names.ts"
import { layerNode } from "./host/http/readBody.ts"
import * as Server from "./host/http/Server.ts"
import { layer as sspCalls } from "./host/http/sspCalls.ts"
import * as Pages from "./host/pages.ts"
import * as ProcessFigures from "./host/process/processFigures.ts"
import * as Reload from "./host/process/reload.ts"
import * as Telemetry from "./host/process/telemetry.ts"
import { layerTurn } from "./host/process/turn.ts"
import * as Watchdog from "./host/process/watchdog.ts"
import * as Released from "./host/release.ts"
import * as Stores from "./host/schedulerStores.ts"
import { Balance } from "./ports/Balance.ts"
import { nodePaths } from "./protocol/SchedulerApi.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "./scheduler/Config.ts"
import * as Scheduler from "./scheduler/Scheduler.ts"

/** A call to an SSP that takes longer has failed; below the time-out after which the SSP itself is given up. */
const callTimeoutMs = ({ heartbeatTimeoutMs }: SchedulerConfigShape): number => Math.min(10_000, heartbeatTimeoutMs)

const drivers = (config: SchedulerConfigShape) =>
  Layer.mergeAll(
    Stores.layer(config),
    Watchdog.layer({ ...config, maxViews: 0, slowMs: 0, folder: undefined }),
    layerNode,
    layerTurn,
    Released.layer,
    Pages.layer,
    ProcessFigures.layers(config),
    Layer.succeed(SchedulerConfig, config),
    Balance.layerNamed(config.loadBalance),
    sspCalls({
      tls: config.tls,
      secret: config.sspSecret,
      allowedHosts: config.allowedHosts,
      timeoutMs: callTimeoutMs(config)
    }).pipe(Layer.provide(Names.layer))
  )

/** Serves until the process is told to stop. */
export const serve = (config: SchedulerConfigShape) => {
  const server = Server.layer({
    ...config,
    host: config.listen.host,
    port: config.listen.port,
    setting: "SVC_SCHEDULER_INGEST_PORT",
    nodePaths,
    stoppingCode: "OVERLOADED",
    isOpen: config.bearers === undefined
  })
  const telemetry = Telemetry.layers({ server: "scheduler", id: config.schedulerId }, config)
  return Scheduler.serve(config).pipe(
    Effect.provide(
      Layer.mergeAll(server, telemetry.metrics, Reload.layer(config.reloadSecrets)).pipe(
        Layer.provideMerge(Scheduler.layer),
        Layer.provide(drivers(config)),
        Layer.provide(telemetry.around)
      )
    )
  )
}
