/**
 * The command line of the outbox (`node dist/jobs.js`): parsing and refusing arguments; the work itself is elsewhere.
 *
 * One program for everything about jobs except serving: the polling runner, the files generated from the configuration,
 * and looking after failed jobs.
 */
import { Either } from "effect"
import * as Settings from "../core/settings/settings.ts"
import { StartFault } from "../ports/StartFault.ts"

interface About {
  readonly meaning: string
  /** Positional arguments, each required. */
  readonly takes: ReadonlyArray<string>
  /** Options that take a value. */
  readonly options: ReadonlyArray<string>
}

const commands = {
  run: {
    meaning: "Run the jobs of the database that STORE_ADDR names, without an SSP; polls its job tables.",
    takes: [],
    options: []
  },
  types: { meaning: "Print TypeScript types of the backends and their routes.", takes: [], options: [] },
  schema: {
    meaning: "Print the job tables as SurrealQL, with their permissions; --table for one that is in no file.",
    takes: [],
    options: ["--table"]
  },
  list: {
    meaning: "List jobs of a table, failed ones unless --status says otherwise.",
    takes: ["<table>"],
    options: ["--status", "--after", "--limit", "--url"]
  },
  show: { meaning: "Show a job with its errors.", takes: ["<job id>"], options: ["--url"] },
  retry: { meaning: "Run a failed job again.", takes: ["<job id>"], options: ["--url"] },
  cancel: { meaning: "End a job that is not over.", takes: ["<job id>"], options: ["--url"] }
} as const satisfies { readonly [command: string]: About }

/** Name of a command. */
export type CommandName = keyof typeof commands

/** A parsed command line. */
export type ParsedCommand =
  | { readonly command: "help" | "version" }
  | {
      readonly command: CommandName
      readonly args: ReadonlyArray<string>
      readonly options: { readonly [name: string]: string }
    }

const names = Object.keys(commands)
const isCommand = (text: string): text is CommandName => Object.hasOwn(commands, text)

const refused = (what: string): Either.Either<never, StartFault> =>
  Either.left(new StartFault({ exitCode: 2, message: `the command line is not understood: ${what}` }))

/** Parses a command line; Left: a fault with exit code 2. */
export const parse = (args: ReadonlyArray<string>): Either.Either<ParsedCommand, StartFault> => {
  const [first, ...rest] = args
  if (first === undefined || first === "--help" || first === "-h" || first === "help")
    return Either.right({ command: "help" })
  if (first === "--version" || first === "-v") return Either.right({ command: "version" })
  if (!isCommand(first))
    return refused(`${first} is not a command${Settings.suggestion(first, names)} Known: ${names.join(", ")}`)
  const { options: known, takes }: About = commands[first]
  const options: Record<string, string> = {}
  const given: Array<string> = []
  for (let i = 0; i < rest.length; i++) {
    const arg = rest[i]!
    if (!arg.startsWith("--")) {
      given.push(arg)
      continue
    }
    if (!known.includes(arg))
      return refused(
        `${arg} is not an option of ${first}${Settings.suggestion(arg, known)}${known.length === 0 ? " It has none" : ` Known: ${known.join(", ")}`}`
      )
    const value = rest[++i]
    if (value === undefined) return refused(`${arg} needs a value`)
    options[arg.slice(2)] = value
  }
  if (given.length !== takes.length)
    return refused(
      `${first} takes ${takes.length === 0 ? "no argument" : takes.join(" ")}, got ${given.length === 0 ? "none" : given.join(" ")}`
    )
  return Either.right({ command: first, args: given, options })
}

/** Text of `--help`. */
export const help = (version: string): string =>
  [
    `surreal-live-sidecar ${version}: jobs and the outbox`,
    "",
    "Usage: jobs <command>",
    ...Object.entries(commands).map(
      ([name, { meaning, options, takes }]: [string, About]) =>
        `  ${[name, ...takes].join(" ").padEnd(16)} ${meaning}${options.length === 0 ? "" : ` Options: ${options.join(", ")}.`}`
    ),
    "",
    "Settings are those of the SSP (`ssp --help`): SVC_CONFIG_PATH for job tables and backends, STORE_* for the database,",
    "SVC_AUTH_SECRET and LISTEN_ADDR (or --url) for the SSP that is asked. An SSP does not need `run` beside it; any number may share a database.",
    "",
    "Exit codes: 0 done, 2 configuration or command line, 1 anything else."
  ].join("\n")
