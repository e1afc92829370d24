/**
 * Commands of the SSP's program that work on a database and end: its setup, and the compare with it.
 */
import { Effect, Logger } from "effect"
import * as TlsClient from "../../host/http/tlsClient.ts"
import * as ServerClient from "../../host/serverClient.ts"
import type { SspConfigShape } from "../../ssp/Config.ts"
import * as CheckIntegrity from "../../ssp/commands/checkIntegrity.ts"
import * as DatabaseSetup from "../../ssp/commands/DatabaseSetup.ts"

/** Logs go to standard error, since a program may read a command's output. */
const logs = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))

export const run = (
  config: SspConfigShape,
  command: DatabaseSetup.Command | "check",
  options: DatabaseSetup.SetupOptions
) =>
  (command === "check"
    ? CheckIntegrity.run(config, options).pipe(Effect.provide(TlsClient.layerOwn(config.tls)))
    : DatabaseSetup.run(config, command, options).pipe(Effect.provide(ServerClient.layer(config, options.create)))
  ).pipe(Effect.provide(logs))
