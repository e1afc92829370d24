#!/usr/bin/env node
/**
 * The jobs program: `node dist/jobs.js <command>`. Reads the command, then loads the module that runs it.
 *
 * Apart from the SSP's program, because it serves nothing.
 */
import { Console, Effect, Layer } from "effect"
import * as ConfigFile from "../../host/ConfigFile.ts"
import * as Process from "../../host/process/Process.ts"
import * as Cli from "../../outbox/Cli.ts"
import { ConfigSource } from "../../ports/ConfigSource.ts"
import { Release } from "../../ports/Release.ts"
import { SspConfig } from "../../ssp/Config.ts"

const config = Effect.provide(SspConfig, Layer.provide(SspConfig.layerEnv, ConfigFile.layer))

Process.run(
  Effect.gen(function* () {
    const asked = yield* Cli.parse(Process.commandArguments())
    const { version } = yield* Release
    if (!("options" in asked)) return yield* Console.log(asked.command === "help" ? Cli.help(version) : version)
    const { env } = yield* ConfigSource
    const tools = yield* Effect.promise(() => import("./tools.ts"))
    return yield* tools.run(asked, config, env["SVC_CONFIG_PATH"] || "./svc.yml")
  }).pipe(Effect.provide([Release.layer, ConfigFile.layer]))
)
