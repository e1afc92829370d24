/**
 * The command line of the SSP: its flags, and the help text, printed from the table of settings.
 *
 * Settings are environment and file only; a flag asks for something else than serving.
 */
import { Console, Effect, Either } from "effect"
import * as Address from "../../core/settings/address.ts"
import * as Settings from "../../core/settings/settings.ts"
import { Release } from "../../ports/Release.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { knobs, type SspConfigShape } from "../Config.ts"
import type { Command, SetupOptions } from "./DatabaseSetup.ts"

const flags = {
  "--help": "Show this text and leave.",
  "--version": "Show the version and leave.",
  "--check-config":
    "Read the configuration, and the OpenAPI documents and schemas its backends name; name every fault, and leave with 0 or 2.",
  "--health":
    "Ask the SSP that listens on LISTEN_ADDR for /version, and leave with 0 or 1; for health checks of containers.",
  "--quickstart": "Serve; make up SVC_AUTH_SECRET for this run if it is unset, and show commands to try.",
  "--print-database-setup":
    "Print what a SurrealDB needs to feed this service, with what it means for writes, and leave.",
  "--install-database-setup": "Define that in the database of STORE_ADDR and leave; can be run again.",
  "--remove-database-setup": "Take events and functions away from it again; our tables and all data stay.",
  "--check-integrity":
    "Ask the running SSP to compare its records with the database, name all that differ, and leave with 0 or 1."
} as const

/** Options of the commands on a database. */
const setupOptions = {
  "--create": "Setup: create namespace and database where they do not exist; a fault without it.",
  "--feed":
    "changes|events: Setup: events that write into a change table, which the service reads (the default; under a scheduler that reads it), or events that post to it inside the writing transaction.",
  "--async": "Setup: events that post, behind the commit instead of inside it.",
  "--least-privilege":
    "Setup: nothing but our tables and the user that the service needs and no more (STORE_SERVICE_USER), run once by an owner; events and functions are defined without it.",
  "--open-to-record-users":
    "Setup: record users may register queries, which are run with this service's rights: the edges then tell anybody who tries which records match what, permissions or not. Closed without it.",
  "--tables": "a,b: only these tables; all tables of the database when absent.",
  "--url":
    "Setup: where the database reaches this service; SCHEDULER_URL, or ADVERTISE_ADDR and its defaults, when absent. Check: where the SSP is; LISTEN_ADDR when absent.",
  "--with-secret": "Print SVC_AUTH_SECRET itself and not a placeholder."
} as const

export type Flag = keyof typeof flags

const commands: { readonly [flag: string]: Command | "check" } = {
  "--print-database-setup": "print",
  "--install-database-setup": "install",
  "--remove-database-setup": "remove",
  "--check-integrity": "check"
}

/** Commands that accept each option. */
const uses: { readonly [option: string]: ReadonlyArray<Command | "check"> } = {
  "--create": ["install"],
  "--feed": ["print", "install"],
  "--async": ["print", "install"],
  "--least-privilege": ["print", "install"],
  "--open-to-record-users": ["print", "install"],
  "--tables": ["print", "install", "remove", "check"],
  "--url": ["print", "install", "check"],
  "--with-secret": ["print"]
}

export interface ParsedArguments {
  /** The first flag; undefined to serve. */
  readonly flag: Flag | undefined
  readonly setup: SetupOptions
}

const names = [...Object.keys(flags), ...Object.keys(setupOptions)]
const isFlag = (text: string): text is Flag => Object.hasOwn(flags, text)
const short: { readonly [flag: string]: Flag } = { "-h": "--help", "-v": "--version" }

const listOf = (value: string): ReadonlyArray<string> =>
  value
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")

/** Reads the arguments in order; an option's value stands behind `=` or is the next argument. */
const readWords = (
  args: ReadonlyArray<string>,
  faults: Array<string>
): ParsedArguments & { readonly options: ReadonlyArray<string> } => {
  let flag: Flag | undefined
  const options: Array<string> = []
  const setup = {
    mode: undefined as SetupOptions["mode"],
    tables: undefined as ReadonlyArray<string> | undefined,
    url: undefined as string | undefined,
    withSecret: false,
    openToRecordUsers: false,
    leastPrivilege: false,
    create: false
  }
  for (let i = 0; i < args.length; i++) {
    const word = args[i] ?? ""
    const [name = "", inline] = /^--(?:tables|url|feed)=/.test(word)
      ? [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]
      : [short[word] ?? word]
    if (isFlag(name)) {
      flag ??= name
      continue
    }
    options.push(name)
    if (name === "--async") setup.mode = "async"
    else if (name === "--open-to-record-users") setup.openToRecordUsers = true
    else if (name === "--least-privilege") setup.leastPrivilege = true
    else if (name === "--create") setup.create = true
    else if (name === "--feed") {
      const kind = inline ?? args[++i] ?? ""
      if (kind !== "changes" && kind !== "events")
        faults.push(`  --feed is ${JSON.stringify(kind)}; must be changes or events`)
      else if (kind === "changes") setup.mode = "changes"
      else setup.mode ??= "sync"
    } else if (name === "--with-secret") setup.withSecret = true
    else if (name === "--tables" || name === "--url") {
      const value = inline ?? args[++i] ?? ""
      const url = Address.advertised(value)
      if (name === "--tables") setup.tables = [...new Set([...(setup.tables ?? []), ...listOf(value)])]
      else setup.url = url
      if (name === "--tables" ? listOf(value).length === 0 : url === undefined)
        faults.push(
          `  ${name} is ${JSON.stringify(value)}; must be ${name === "--tables" ? "table names with commas between them" : "host:port or an http:// or https:// address"}`
        )
    } else faults.push(`  ${word} is not an option${Settings.suggestion(word, names)} Known: ${names.join(", ")}`)
  }
  return { flag, setup, options }
}

export const parse = (args: ReadonlyArray<string>): Either.Either<ParsedArguments, StartFault> => {
  const faults: Array<string> = []
  const { flag, options, setup } = readWords(args, faults)
  const command = flag === undefined ? undefined : commands[flag]
  if (
    options.includes("--async") &&
    args.some((word, i) => word === "--feed=changes" || (word === "--feed" && args[i + 1] === "changes"))
  )
    faults.push("  --async is a way to post: it goes with --feed events")
  for (const option of options) {
    const takers = Object.keys(commands).filter((name) => uses[option]?.includes(commands[name]!))
    if (uses[option] !== undefined && (command === undefined || !uses[option].includes(command)))
      faults.push(`  ${option} only goes with ${takers.join(", ")}`)
  }
  return faults.length > 0
    ? Either.left(
        new StartFault({ exitCode: 2, message: ["the command line is not understood:", ...faults].join("\n") })
      )
    : Either.right({ flag, setup })
}

const rows = (table: { readonly [name: string]: string }): ReadonlyArray<string> =>
  Object.entries(table).map(([name, meaning]) => `  ${name.padEnd(25)} ${meaning}`)

export const help = (version: string): string =>
  [
    `surreal-live-sidecar ${version}: the sidecar processor (SSP)`,
    "",
    "Usage: ssp [option]",
    ...rows(flags),
    "",
    "With the commands on a database:",
    ...rows(setupOptions),
    "",
    "Settings (environment; job tables and backends in svc.yml):",
    Settings.helpRows(knobs),
    "",
    "Exit codes: 0 clean stop, 2 configuration fault, 3 damaged data, 4 another service follows the database, 5 a turn of the event loop longer than SVC_MAX_TURN_MS, 1 anything else."
  ].join("\n")

/** Actions of the program; each is loaded when it is needed. */
export interface Actions<A, E, R> {
  readonly serve: (quickstart: boolean) => Effect.Effect<A, E, R>
  /** Checks the files that the configuration names and a start does not need. */
  readonly files: Effect.Effect<void, StartFault>
  readonly health: (of: Pick<SspConfigShape, "listen" | "tls">, path: string) => Effect.Effect<void, StartFault>
  readonly work: (
    config: SspConfigShape,
    command: Command | "check",
    options: SetupOptions
  ) => Effect.Effect<void, StartFault>
}

/** Runs the command that was asked for; serves if there is none. */
export const main = <A, E, R>(
  args: ReadonlyArray<string>,
  { files, health, serve, work }: Actions<A, E, R>,
  config: Effect.Effect<SspConfigShape, StartFault>
): Effect.Effect<void, E | StartFault, R | Release> =>
  Effect.gen(function* () {
    const asked = yield* parse(args)
    const { flag } = asked
    const { version } = yield* Release
    if (flag === "--help") return yield* Console.log(help(version))
    if (flag === "--version") return yield* Console.log(version)
    if (flag === "--check-config") {
      const { mode, warnings } = yield* config
      for (const warning of warnings) yield* Console.error(`warning: ${warning}`)
      yield* files
      return yield* Console.log(`the configuration is fine: ${mode} mode`)
    }
    if (flag === "--health") return yield* health(yield* config, "/version")
    const command = flag === undefined ? undefined : commands[flag]
    if (command !== undefined) return yield* work(yield* config, command, asked.setup)
    yield* serve(flag === "--quickstart")
  })
