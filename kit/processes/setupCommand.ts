/**
 * The database set-up as a command: what it printed, and its fault if there was one.
 */
import { Console, Effect, Exit, Logger, LogLevel } from "effect"
import * as ServerClient from "../../src/host/serverClient.ts"
import type { SspConfigShape } from "../../src/ssp/Config.ts"
import * as DatabaseSetup from "../../src/ssp/commands/DatabaseSetup.ts"

export interface CommandEnd {
  readonly out: string
  readonly fault: string | undefined
}

/** The options of a command with which none are given. */
export const noOptions: DatabaseSetup.SetupOptions = {
  mode: undefined,
  tables: undefined,
  url: undefined,
  withSecret: false,
  openToRecordUsers: false,
  leastPrivilege: false,
  create: false
}

export const setupCommand = async (
  settings: SspConfigShape,
  command: DatabaseSetup.Command,
  options: DatabaseSetup.SetupOptions
): Promise<CommandEnd> => {
  const out: Array<string> = []
  const write = (text: string): Effect.Effect<void> => Effect.sync(() => void out.push(text))
  const console = { ...Effect.runSync(Console.consoleWith(Effect.succeed)), log: write, error: write }
  const exit = await Effect.runPromiseExit(
    DatabaseSetup.run(settings, command, options).pipe(
      Effect.provide(ServerClient.layer(settings, options.create)),
      Logger.withMinimumLogLevel(LogLevel.None),
      Effect.withConsole(console)
    )
  )
  return {
    out: out.join("\n"),
    fault:
      Exit.isFailure(exit) && exit.cause._tag === "Fail"
        ? exit.cause.error.message
        : Exit.isFailure(exit)
          ? String(exit.cause)
          : undefined
  }
}
