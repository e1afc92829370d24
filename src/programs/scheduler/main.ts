#!/usr/bin/env node
/**
 * The scheduler's program: `node dist/scheduler.js`. Reads the configuration, then loads the server.
 *
 * A deployment with other drivers has a program of its own; no code below knows this one.
 */
import { Effect, Layer } from "effect"
import * as ConfigFile from "../../host/ConfigFile.ts"
import * as Health from "../../host/process/health.ts"
import * as Process from "../../host/process/Process.ts"
import * as WalFile from "../../host/wal/WalFile.ts"
import { Release } from "../../ports/Release.ts"
import * as Cli from "../../scheduler/Cli.ts"
import { SchedulerConfig } from "../../scheduler/Config.ts"

const config = Effect.provide(SchedulerConfig, Layer.provide(SchedulerConfig.layerEnv, ConfigFile.layer))

const serve = Effect.gen(function* () {
  const settings = yield* config
  const node = yield* Effect.promise(() => import("./serve.ts"))
  return yield* node.serve(settings)
})

const files = Effect.flatMap(
  Effect.promise(() => import("../checkConfig.ts")),
  (tools) => tools.run
)

Process.run(
  Cli.main(Process.commandArguments(), { serve, files, config, health: Health.check, verify: WalFile.verify }).pipe(
    Effect.provide(Release.layer)
  )
)
