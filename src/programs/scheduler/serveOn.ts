/**
 * Parts of a scheduler's process: the drivers below its composition, and the listener in front of it.
 */
import { Effect, Layer } from "effect"
import { Listener } from "../../host/http/Listener.ts"
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

/** Time limit of a call to an SSP; at most the time after which a silent SSP is given up. */
const callTimeoutMs = ({ heartbeatTimeoutMs }: SchedulerConfigShape): number => Math.min(10_000, heartbeatTimeoutMs)

/** All drivers but the stores of its state. */
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

/** The listener of the process. */
export const listenerOf = (config: SchedulerConfigShape) =>
  Listener.make({
    ...config,
    host: config.listen.host,
    port: config.listen.port,
    setting: "SVC_SCHEDULER_INGEST_PORT",
    nodePaths,
    stoppingCode: "OVERLOADED",
    isOpen: config.bearers === undefined,
    answersAnybody: config.openTo === "anybody"
  })

/** Serves over stores and drivers until the process is told to stop; `begun` runs once the scheduler answers. */
export const serveOn = (
  config: SchedulerConfigShape,
  metrics: Telemetry.Layers["metrics"],
  listener: Listener,
  begun: Effect.Effect<void> = Effect.void
) =>
  Effect.zipRight(begun, Scheduler.serve(config)).pipe(
    Effect.provide(
      Layer.mergeAll(Server.layerOn(listener), metrics, Reload.layer(config.reloadSecrets)).pipe(
        Layer.provideMerge(Scheduler.layer)
      )
    )
  )
