/**
 * The command line of the scheduler: its flags, and the help text, printed from the table of settings.
 *
 * Checking a WAL is a command of its own, because an operator wants to know the file's content before a start decides
 * about it.
 */
import { Console, Effect } from "effect"
import * as Settings from "../core/settings/settings.ts"
import { Release } from "../ports/Release.ts"
import { StartFault } from "../ports/StartFault.ts"
import { startFault, type WalFailed } from "../ports/Wal.ts"
import { knobs, type SchedulerConfigShape } from "./Config.ts"

const flags = {
  "--help": "Show this text and leave.",
  "--version": "Show the version and leave.",
  "--check-config":
    "Read the configuration, and the OpenAPI documents and schemas its backends name; name every fault, and leave with 0 or 2.",
  "--health":
    "Ask the scheduler that listens on SVC_SCHEDULER_INGEST_PORT for /livez, and leave with 0 or 1; for health checks of containers.",
  "--verify-wal <path>": "Read every line of a log, also one in use, say what it holds, and leave."
} as const

export const help = (version: string): string =>
  [
    `Live-query sidecar, scheduler ${version}`,
    "",
    "Usage: scheduler [option]",
    ...Object.entries(flags).map(([flag, meaning]) => `  ${flag.padEnd(20)} ${meaning}`),
    "",
    "Settings (environment; those with a file key also in svc.yml, where the environment wins):",
    Settings.helpRows(knobs),
    "",
    "Exit codes: 0 clean stop, 2 configuration fault, 3 damaged data, 4 another service follows the database or leads the log, 5 a turn of the event loop longer than SVC_MAX_TURN_MS, 1 anything else."
  ].join("\n")

const usage = (args: ReadonlyArray<string>): StartFault => {
  const names = Object.keys(flags).map((flag) => flag.split(" ")[0] ?? "")
  const near = Settings.suggestion(args[0] ?? "", names)
  return new StartFault({
    exitCode: 2,
    message: `the command line is not understood: ${args.join(" ")}${near}\nUsage: scheduler [${Object.keys(flags).join(" | ")}]`
  })
}

/** Action of each command; `verify` returns its findings, line by line. */
export interface Actions<A, E, R> {
  readonly serve: Effect.Effect<A, E, R>
  readonly config: Effect.Effect<SchedulerConfigShape, StartFault>
  /** Checks the files that the configuration names and a start does not need. */
  readonly files: Effect.Effect<void, StartFault>
  readonly health: (of: Pick<SchedulerConfigShape, "listen" | "tls">, path: string) => Effect.Effect<void, StartFault>
  readonly verify: (path: string) => Effect.Effect<ReadonlyArray<string>, WalFailed>
}

/** Runs the command that was asked for; serves if there is none. */
export const main = <A, E, R>(
  args: ReadonlyArray<string>,
  { config, files, health, serve, verify }: Actions<A, E, R>
): Effect.Effect<void, E | StartFault, R | Release> =>
  Effect.gen(function* () {
    const [flag, path, ...rest] = args
    const { version } = yield* Release
    if (flag === undefined) return yield* Effect.asVoid(serve)
    if (flag === "--verify-wal" && path !== undefined && rest.length === 0) {
      return yield* verify(path).pipe(
        Effect.mapError(startFault),
        Effect.flatMap(Effect.forEach((line) => Console.log(line), { discard: true }))
      )
    }
    if (path !== undefined) return yield* usage(args)
    if (flag === "--help" || flag === "-h") return yield* Console.log(help(version))
    if (flag === "--version" || flag === "-v") return yield* Console.log(version)
    if (flag === "--health") return yield* health(yield* config, "/livez")
    if (flag !== "--check-config") return yield* usage(args)
    const { database, warnings } = yield* config
    for (const warning of warnings) yield* Console.error(`warning: ${warning}`)
    yield* files
    return yield* Console.log(
      `the configuration is fine: ${database === undefined ? "nothing is cloned" : `cloned from ${database.url}`}`
    )
  })
