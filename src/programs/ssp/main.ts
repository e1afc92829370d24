#!/usr/bin/env node
/**
 * The SSP's program: `node dist/ssp.js`. Reads the configuration, then loads the server.
 *
 * A deployment with other drivers has a program of its own; no code below knows this one.
 */
import { Effect, Layer } from "effect"
import * as ConfigFile from "../../host/ConfigFile.ts"
import * as Health from "../../host/process/health.ts"
import * as Process from "../../host/process/Process.ts"
import * as Quickstart from "../../host/process/quickstart.ts"
import { Release } from "../../ports/Release.ts"
import { SspConfig } from "../../ssp/Config.ts"
import * as Cli from "../../ssp/commands/Cli.ts"

const configFrom = (source: typeof ConfigFile.layer) =>
  Effect.provide(SspConfig, Layer.provide(SspConfig.layerEnv, source))

const serve = (quickstart: boolean) =>
  Effect.gen(function* () {
    const config = yield* configFrom(
      quickstart ? Layer.provide(Quickstart.layerSecret, ConfigFile.layer) : ConfigFile.layer
    )
    const node = yield* Effect.promise(() => import("./serve.ts"))
    return yield* node.serve(config, quickstart)
  })

const work: Cli.Actions<never, never, never>["work"] = (...asked) =>
  Effect.flatMap(
    Effect.promise(() => import("./tools.ts")),
    (tools) => tools.run(...asked)
  )

const files = Effect.flatMap(
  Effect.promise(() => import("../checkConfig.ts")),
  (tools) => tools.run
)

Process.run(
  Cli.main(Process.commandArguments(), { serve, files, health: Health.check, work }, configFrom(ConfigFile.layer)).pipe(
    Effect.provide(Release.layer)
  )
)
