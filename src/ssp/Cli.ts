/**
 * The command line of the SSP: what may be asked, and the help text, printed from the table of settings.
 *
 * Settings are environment and file only; flags ask for something else than serving.
 */
import { Console, Effect, Either } from "effect"
import * as Settings from "../core/settings.ts"
import { Release } from "../ports/Release.ts"
import { StartFault } from "../ports/StartFault.ts"
import { knobs, type SspConfigShape } from "./Config.ts"

const flags = {
  "--help": "Show this text and leave.",
  "--version": "Show the version and leave.",
  "--check-config": "Read the configuration, name every fault, and leave with 0 or 2.",
  "--quickstart": "Serve; make up SVC_AUTH_SECRET for this run if it is unset, and show commands to try."
} as const

export type Flag = keyof typeof flags

const names = Object.keys(flags)
const isFlag = (text: string): text is Flag => Object.hasOwn(flags, text)
const short: { readonly [flag: string]: Flag } = { "-h": "--help", "-v": "--version" }

/** The first thing asked for; undefined to serve. */
export const parse = (args: ReadonlyArray<string>): Either.Either<Flag | undefined, StartFault> => {
  const asked = args.map((arg) => short[arg] ?? arg)
  const unknown = asked.filter((arg) => !isFlag(arg))
  if (unknown.length > 0) {
    const lines = unknown.map((arg) => `  ${arg} is not an option${Settings.suggestion(arg, names)} Known: ${names.join(", ")}`)
    return Either.left(new StartFault({ exitCode: 2, message: ["the command line is not understood:", ...lines].join("\n") }))
  }
  return Either.right(asked.find(isFlag))
}

export const help = (version: string): string =>
  [
    `surreal-live-sidecar ${version}: the sidecar processor (SSP)`,
    "",
    "Usage: ssp [option]",
    ...Object.entries(flags).map(([flag, meaning]) => `  ${flag.padEnd(16)} ${meaning}`),
    "",
    "Settings (environment; job tables and backends in svc.yml):",
    Settings.helpRows(knobs),
    "",
    "Exit codes: 0 clean stop, 2 configuration fault, 3 damaged data, 1 anything else."
  ].join("\n")

/** Does what was asked for; serves when nothing was. */
export const main = <A, E, R>(
  args: ReadonlyArray<string>,
  serve: (quickstart: boolean) => Effect.Effect<A, E, R>,
  config: Effect.Effect<SspConfigShape, StartFault>
): Effect.Effect<void, E | StartFault, R | Release> =>
  Effect.gen(function*() {
    const flag = yield* parse(args)
    const { version } = yield* Release
    if (flag === "--help") return yield* Console.log(help(version))
    if (flag === "--version") return yield* Console.log(version)
    if (flag === "--check-config") {
      const { mode, warnings } = yield* config
      for (const warning of warnings) yield* Console.error(`warning: ${warning}`)
      return yield* Console.log(`the configuration is fine: ${mode} mode`)
    }
    yield* serve(flag === "--quickstart")
  })
