#!/usr/bin/env node
/**
 * The door of the SSP: `node dist/ssp.js`. Picks the drivers, then lets the composition run.
 *
 * Whoever needs other drivers writes another door; nothing below knows that this one exists.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Effect, Layer, Redacted } from "effect"
import * as ConfigFile from "./host/ConfigFile.ts"
import * as Logs from "./host/logs.ts"
import * as Process from "./host/Process.ts"
import * as Quickstart from "./host/quickstart.ts"
import { layerNode } from "./host/readBody.ts"
import * as Released from "./host/release.ts"
import * as Server from "./host/Server.ts"
import * as Stores from "./host/stores.ts"
import { layerTurn } from "./host/turn.ts"
import { SchedulerClient } from "./ports/SchedulerClient.ts"
import * as Cli from "./ssp/Cli.ts"
import { SspConfig, type SspConfigShape } from "./ssp/Config.ts"
import { fromDatabase } from "./ssp/Lifecycle.ts"
import * as Ssp from "./ssp/Ssp.ts"

const drivers = (config: SspConfigShape) => Layer.mergeAll(
  Stores.layer(config, fromDatabase), layerNode, layerTurn, Released.layer, Layer.succeed(SspConfig, config),
  config.schedulerUrl === undefined ? SchedulerClient.layerNone : Layer.provide(SchedulerClient.layerHttp(config.schedulerUrl), FetchHttpClient.layer)
)

const serve = (quickstart: boolean) => Effect.gen(function*() {
  const source = quickstart ? Layer.provide(Quickstart.layerSecret, ConfigFile.layer) : ConfigFile.layer
  const config = yield* Effect.provide(SspConfig, Layer.provide(SspConfig.layerEnv, source))
  const server = Server.layer({ host: config.listen.host, port: config.listen.port, maxConnections: config.maxConnections, setting: "LISTEN_ADDR" })
  const greeting = quickstart && config.authSecret !== undefined ? Quickstart.layerGreeting(config.listen, Redacted.value(config.authSecret), Ssp.storeText(config)) : Layer.empty
  return yield* Ssp.serve(config).pipe(Effect.provide(Layer.mergeAll(server, greeting).pipe(Layer.provideMerge(Ssp.layer), Layer.provide(drivers(config)), Layer.provide(Logs.layer(config.logFormat, config.logLevel)))))
})

const check = Effect.provide(SspConfig, Layer.provide(SspConfig.layerEnv, ConfigFile.layer))
Process.run(Cli.main(Process.args(), serve, check).pipe(Effect.provide(Released.layer)))
