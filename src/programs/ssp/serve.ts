/**
 * Serves as an SSP: the drivers, and the composition on them.
 *
 * Loaded only to serve: help, version and faults of the configuration are answered without it.
 */
import { Effect, Layer, Redacted } from "effect"
import * as HttpSchedulerClient from "../../drivers/httpSchedulerClient.ts"
import * as BackendClient from "../../host/http/backendClient.ts"
import { layerNode } from "../../host/http/readBody.ts"
import * as Server from "../../host/http/Server.ts"
import * as Pages from "../../host/pages.ts"
import * as ProcessFigures from "../../host/process/processFigures.ts"
import * as Quickstart from "../../host/process/quickstart.ts"
import * as Reload from "../../host/process/reload.ts"
import * as Telemetry from "../../host/process/telemetry.ts"
import { layerTurn } from "../../host/process/turn.ts"
import * as Watchdog from "../../host/process/watchdog.ts"
import * as Stores from "../../host/stores.ts"
import { Release } from "../../ports/Release.ts"
import { SchedulerClient } from "../../ports/SchedulerClient.ts"
import { nodePaths } from "../../protocol/SspApi.ts"
import { SspConfig, type SspConfigShape } from "../../ssp/Config.ts"
import { describeStore } from "../../ssp/database/describeStore.ts"
import { fromDatabase } from "../../ssp/membership/Lifecycle.ts"
import * as Ssp from "../../ssp/Ssp.ts"

/** Loaded by an SSP of a cluster alone: the bare connections are a tenth of a start. */
const schedulerClient = (url: string, { schedulerSecret, tls }: SspConfigShape) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const { make } = yield* Effect.promise(() => import("../../host/http/exchange.ts"))
      return HttpSchedulerClient.layerOver(yield* make(tls), url, schedulerSecret)
    })
  )

const drivers = (config: SspConfigShape) =>
  Layer.mergeAll(
    Watchdog.layerBehind(Stores.layer(config, fromDatabase), {
      ...config,
      slowMs: config.slowEvaluationMs,
      folder: Stores.folderOf(config)
    }),
    layerNode,
    layerTurn,
    Pages.layer,
    ProcessFigures.layers(config),
    Release.layer,
    Layer.succeed(SspConfig, config),
    BackendClient.layer(config),
    config.schedulerUrl === undefined ? SchedulerClient.layerNone : schedulerClient(config.schedulerUrl, config)
  )

/** Serves until the process is told to stop; `quickstart`: prints commands to try. */
export const serve = (config: SspConfigShape, quickstart: boolean) => {
  const server = Server.layer({
    ...config,
    host: config.listen.host,
    port: config.listen.port,
    setting: "LISTEN_ADDR",
    nodePaths: config.mode === "scheduler" ? nodePaths : []
  })
  const greeting =
    quickstart && config.authSecret !== undefined
      ? Quickstart.layerGreeting(config.listen, config.tls, Redacted.value(config.authSecret), describeStore(config))
      : Layer.empty
  const telemetry = Telemetry.layers({ server: "ssp", id: config.sspId }, config)
  return Ssp.serve(config).pipe(
    Effect.provide(
      Layer.mergeAll(server, greeting, telemetry.metrics, Reload.layer(config.reloadSecrets)).pipe(
        Layer.provideMerge(Ssp.layer),
        Layer.provide(drivers(config)),
        Layer.provide(telemetry.around)
      )
    )
  )
}
