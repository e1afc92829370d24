/**
 * The parts of a scheduler's process: the drivers below its composition, and the server in front of it.
 */
import { Effect, Layer } from "effect"
import * as Names from "../../host/http/names.ts"
import { layerNode } from "../../host/http/readBody.ts"
import * as Server from "../../host/http/Server.ts"
import { layer as sspCalls } from "../../host/http/sspCalls.ts"
import * as Pages from "../../host/pages.ts"
import * as ProcessFigures from "../../host/process/processFigures.ts"
import * as Reload from "../../host/process/reload.ts"
import type * as Telemetry from "../../host/process/telemetry.ts"
import { layerTurn } from "../../host/process/turn.ts"
import * as Watchdog from "../../host/process/watchdog.ts"
import { Balance } from "../../ports/Balance.ts"
import { Release } from "../../ports/Release.ts"
import { nodePaths } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "../../scheduler/Config.ts"
import * as Scheduler from "../../scheduler/Scheduler.ts"

/** A call to an SSP that takes longer has failed; below the time-out after which the SSP itself is given up. */
const callTimeoutMs = ({ heartbeatTimeoutMs }: SchedulerConfigShape): number => Math.min(10_000, heartbeatTimeoutMs)

/** All but what keeps its state. */
export const drivers = (config: SchedulerConfigShape) =>
  Layer.mergeAll(
    Watchdog.layer({ ...config, maxViews: 0, slowMs: 0, folder: undefined }),
    layerNode,
    layerTurn,
    Release.layer,
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

export const serverOn = (config: SchedulerConfigShape, port: number) =>
  Server.layer({
    ...config,
    host: config.listen.host,
    port,
    setting: "SVC_SCHEDULER_INGEST_PORT",
    nodePaths,
    stoppingCode: "OVERLOADED",
    isOpen: config.bearers === undefined,
    answersAnybody: config.openTo === "anybody"
  })

/** Serves over stores and drivers until the process is told to stop; `before` is done when all but the server is up. */
export const serveOn = (
  config: SchedulerConfigShape,
  metrics: Telemetry.Layers["metrics"],
  port: number,
  before: Effect.Effect<void> = Effect.void
) => {
  const server = Layer.unwrapEffect(Effect.as(before, serverOn(config, port)))
  return Scheduler.serve(config).pipe(
    Effect.provide(
      Layer.mergeAll(server, metrics, Reload.layer(config.reloadSecrets)).pipe(Layer.provideMerge(Scheduler.layer))
    )
  )
}
