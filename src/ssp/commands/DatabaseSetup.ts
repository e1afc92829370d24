/**
 * Commands that print, install and remove the definitions a database needs: tables, address, secret.
 *
 * Values that can be found out are not asked for: tables come from the database if there is one, the address from the
 * settings. The printed script has no secret unless asked for; the installed one does, and is not logged.
 */
import { Console, Effect, Redacted } from "effect"
import * as Address from "../../core/settings/address.ts"
import * as Settings from "../../core/settings/settings.ts"
import * as Setup from "../../core/surreal/databaseSetup.ts"
import * as Feed from "../../core/surreal/surrealFeed.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { retryingConflicts, SurrealClient, type SurrealError } from "../../ports/SurrealClient.ts"
import { Upstream, type UpstreamError } from "../../ports/Upstream.ts"
import type { SspConfigShape } from "../Config.ts"
import * as ServiceUser from "./ServiceUser.ts"

export type Command = "print" | "install" | "remove"

/** Options of the setup on the command line. */
export interface SetupOptions {
  /** Undefined: events that write into the change table. */
  readonly mode: Feed.FeedMode | undefined
  /** Undefined: all tables of the database. */
  readonly tables: ReadonlyArray<string> | undefined
  /** URL of this program as the database reaches it; undefined: from the settings. */
  readonly url: string | undefined
  readonly withSecret: boolean
  /** Whether record users may register queries by themselves. */
  readonly openToRecordUsers: boolean
  /** Defines the user of the service instead of the feed. */
  readonly leastPrivilege: boolean
  /** Whether a namespace or database that does not exist is created. */
  readonly create: boolean
}

type Config = Pick<
  SspConfigShape,
  "advertisedUrl" | "authSecret" | "schedulerSecret" | "listen" | "mode" | "schedulerUrl" | "storeAddr"
> &
  ServiceUser.UserSettings

const fault = (message: string): StartFault => new StartFault({ exitCode: 2, message })

const failed = (error: SurrealError | UpstreamError): StartFault =>
  new StartFault({ exitCode: 1, message: `the database of STORE_ADDR does not do it: ${error.message}` })

/** The program that receives events: the scheduler if there is one, which asks for no secret. */
const receiver = ({ schedulerUrl }: Config): Setup.Receiver => (schedulerUrl === undefined ? "ssp" : "scheduler")

const modeOf = ({ mode }: SetupOptions): Feed.FeedMode => mode ?? "changes"

/** URL to which events post; empty if they write into the change table. */
const urlOf = (config: Config, { url }: SetupOptions, mode: Feed.FeedMode): Effect.Effect<string, StartFault> => {
  if (mode === "changes") return Effect.succeed("")
  const given = url ?? config.schedulerUrl?.split(",")[0]
  if (given !== undefined) return Effect.succeed(given)
  return config.listen.port === 0
    ? Effect.fail(
        fault(
          "LISTEN_ADDR takes a free port, so it is unknown beforehand: say with --url <address> where the database reaches this service"
        )
      )
    : Effect.succeed(config.advertisedUrl(config.listen.port))
}

/** Whether the URL is local while the database is on another machine, which would then post to itself. */
const misses = (url: string, storeAddr: string | undefined): boolean => {
  const store = storeAddr === undefined ? undefined : Address.store(storeAddr)
  const isLocal = (address: string): boolean => /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(address).hostname)
  return store?.kind === "server" && isLocal(url) && !isLocal(store.url)
}

/** The tables to feed: the named ones, which must exist, or all that are not derived. */
const tablesOf = (
  { tables }: SetupOptions,
  upstream: Upstream["Type"]
): Effect.Effect<ReadonlyArray<string>, StartFault> =>
  Effect.gen(function* () {
    const own = (tables ?? []).filter(isOwn)
    if (own.length > 0) return yield* fault(`--tables names ${own.join(", ")}: tables of ours are never fed back`)
    if (!upstream.present) return tables ?? []
    const there = yield* Effect.mapError(upstream.tables, failed)
    if (tables === undefined) return there.filter(({ derived }) => !derived).map(({ name }) => name)
    const names = there.map(({ name }) => name)
    const unknown = tables.filter((table) => !names.includes(table))
    if (unknown.length > 0)
      return yield* fault(
        unknown
          .map(
            (table) => `--tables names ${table}, which the database does not have${Settings.suggestion(table, names)}`
          )
          .join("\n")
      )
    return tables
  })

/** Bearer secret of the receiving node; a scheduler may need none. */
const secretOf = (config: Config): Redacted.Redacted<string> | undefined =>
  receiver(config) === "scheduler" ? config.schedulerSecret() : config.authSecret

/** Prints the setup; asks a database for its tables only if there is one and no table is named. */
const print = (config: Config, options: SetupOptions): Effect.Effect<void, StartFault, Upstream | SurrealClient> =>
  Effect.gen(function* () {
    if (options.leastPrivilege) return yield* ServiceUser.print(config)
    const upstream = yield* Upstream
    const mode = modeOf(options)
    const url = yield* urlOf(config, options, mode)
    const tables = options.tables ?? (yield* tablesOf(options, upstream))
    const held = secretOf(config)
    const shown =
      options.withSecret && held !== undefined ? Redacted.value(held) : Setup.secretPlaceholder(receiver(config))
    const secret = receiver(config) === "scheduler" && held === undefined ? undefined : shown
    if (mode !== "changes" && misses(url, config.storeAddr))
      yield* Console.error(`warning: ${url} is this machine only; say with --url where the database reaches it`)
    yield* Console.log(
      Setup.printed(
        {
          url,
          secret,
          tables: tables.filter((table) => !isOwn(table)),
          mode,
          openToRecordUsers: options.openToRecordUsers
        },
        receiver(config)
      )
    )
  })

const needsServer = fault(
  "STORE_ADDR names no database server to work on; set it, STORE_NS, STORE_DB and, where it asks for one, STORE_USER and STORE_PASS"
)

const what: { readonly [M in Feed.FeedMode]: string } = {
  changes: "events that write into the change table",
  sync: "synchronous events that post",
  async: "asynchronous events that post"
}

/**
 * Checks that the database may open connections: otherwise every write to a table with such an event would fail.
 * Whether the URL answers is not checked.
 */
const mayPost = (url: string): Effect.Effect<void, StartFault, SurrealClient> =>
  Effect.flatMap(SurrealClient, ({ query }) => query("RETURN http::head($url)", { url })).pipe(
    Effect.catchAll((error) =>
      /not allowed|capabilit/i.test(error.message)
        ? Effect.fail(
            fault(
              `the database may not reach ${url}, so every write to a table with an event that posts would fail: start it with --allow-net <host:port of that address> (environment SURREAL_CAPS_ALLOW_NET), or use --feed changes (${error.message})`
            )
          )
        : Effect.void
    ),
    Effect.asVoid
  )

/** Defines everything in one transaction; may be repeated. */
const install = (config: Config, options: SetupOptions): Effect.Effect<void, StartFault, Upstream | SurrealClient> =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    if (!upstream.present) return yield* needsServer
    if (options.leastPrivilege) return yield* ServiceUser.install(config)
    const mode = modeOf(options)
    const url = yield* urlOf(config, options, mode)
    if (mode !== "changes" && misses(url, config.storeAddr))
      return yield* fault(
        `${url} is this machine only, and the database is on another: say with --url where it reaches this service`
      )
    if (mode !== "changes") yield* mayPost(url)
    if (mode !== "changes" && receiver(config) === "ssp" && config.authSecret === undefined)
      return yield* fault(
        "SVC_AUTH_SECRET is not set: every post of the database would be answered 401, and fail the write that caused it"
      )
    const held = secretOf(config)
    const secret = held === undefined ? undefined : Redacted.value(held)
    const tables = yield* tablesOf(options, upstream)
    const { query } = retryingConflicts(yield* SurrealClient)
    yield* Effect.mapError(
      query(Setup.script({ url, secret, tables, mode, openToRecordUsers: options.openToRecordUsers })),
      failed
    )
    yield* Console.log(
      `installed: ${what[mode]}${mode === "changes" ? "" : ` to ${url}`} on ${tables.length === 0 ? "no table, because there is none yet" : `${tables.length} tables (${tables.join(", ")})`}. Run it again when tables are added.`
    )
    if (mode === "sync")
      yield* Console.log(
        "From now on a write to them fails while nothing answers there: start the service, or take the events away with --remove-database-setup."
      )
  })

/** Removes the feed; data and the service's tables stay. */
const remove = (options: SetupOptions): Effect.Effect<void, StartFault, Upstream | SurrealClient> =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    if (!upstream.present) return yield* needsServer
    const tables = yield* tablesOf(options, upstream)
    const { query } = retryingConflicts(yield* SurrealClient)
    yield* Effect.mapError(query(`BEGIN; ${Feed.removal(tables).join("; ")}; COMMIT`), failed)
    yield* Console.log(
      `removed: events of ${tables.length} tables, functions and parameters. Our tables and the data in them stay.`
    )
  })

export const run = (
  config: Config,
  command: Command,
  options: SetupOptions
): Effect.Effect<void, StartFault, Upstream | SurrealClient> =>
  command === "print" ? print(config, options) : command === "install" ? install(config, options) : remove(options)
