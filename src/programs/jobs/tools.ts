/**
 * Commands of the jobs program: files for the generators, drivers for the runner, a client for questions.
 */
import { Effect, Layer } from "effect"
import * as SurrealJobs from "../../drivers/surrealJobs.ts"
import * as BackendClient from "../../host/http/backendClient.ts"
import * as TlsClient from "../../host/http/tlsClient.ts"
import * as OutboxFiles from "../../host/outboxFiles.ts"
import * as Logs from "../../host/process/logs.ts"
import * as Reload from "../../host/process/reload.ts"
import * as ServerClient from "../../host/serverClient.ts"
import * as AskSsp from "../../outbox/askSsp.ts"
import type { ParsedCommand } from "../../outbox/Cli.ts"
import * as Generate from "../../outbox/generate.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import type { SspConfigShape } from "../../ssp/Config.ts"
import * as Polling from "../../ssp/jobs/polling.ts"

const drivers = (config: SspConfigShape) =>
  Layer.mergeAll(
    Layer.provide(SurrealJobs.layer, ServerClient.layer(config, false)),
    BackendClient.layer({ jobTables: config.jobTables, schedulerUrl: undefined, schedulerSecret: () => undefined }),
    Reload.layer(config.reloadSecrets).pipe(Layer.provideMerge(Logs.layer(config.logFormat, config.logLevel)))
  )

export const run = (
  { args, command, options }: Extract<ParsedCommand, { readonly options: unknown }>,
  config: Effect.Effect<SspConfigShape, StartFault>,
  path: string
): Effect.Effect<void, StartFault> => {
  const files = Effect.promise(() => OutboxFiles.read(path))
  switch (command) {
    case "run":
      return Effect.flatMap(config, (settings) =>
        Effect.scoped(Polling.serve(settings)).pipe(Effect.provide(drivers(settings)))
      )
    case "types":
      return Generate.types(files)
    case "schema":
      return Generate.schema(
        options["table"],
        Effect.sync(() => OutboxFiles.schemas(path))
      )
    default:
      return Effect.flatMap(config, (settings) =>
        AskSsp.ask({ args, command, options }, AskSsp.sspOf(settings, options["url"])).pipe(
          Effect.provide(TlsClient.layerOwn(settings.tls))
        )
      )
  }
}
