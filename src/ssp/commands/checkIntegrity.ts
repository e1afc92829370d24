/**
 * The command that asks a running SSP whether its records equal the database's, and names every one that differs (D41).
 *
 * Asks the SSP instead of reading: only the process knows its memory, and its store is locked while it runs.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Console, Effect, Redacted, Schema } from "effect"
import { StartFault } from "../../ports/StartFault.ts"
import { Comparison } from "../../protocol/integrity.ts"
import type { SspConfigShape } from "../Config.ts"

export interface CheckOptions {
  /** Undefined: all tables. */
  readonly tables: ReadonlyArray<string> | undefined
  /** URL of the SSP; undefined: from the settings. */
  readonly url: string | undefined
}

type Config = Pick<SspConfigShape, "authSecret" | "listen" | "tls">
type Difference = (typeof Comparison.Type)["differences"][number]

const fault = (message: string, exitCode: 1 | 2 = 1): StartFault => new StartFault({ exitCode, message })

const here = ({ listen: { host, port }, tls }: Config): Effect.Effect<string, StartFault> =>
  port === 0
    ? Effect.fail(fault("LISTEN_ADDR takes a free port: say with --url <address> where the SSP is", 2))
    : Effect.succeed(
        `http${tls === undefined ? "" : "s"}://${host === undefined ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host}:${port}`
      )

const words: { readonly [K in Difference["kind"]]: (difference: Difference) => string } = {
  missing: () => "is in the database and not here",
  extra: ({ version }) => `is here (version ${version}) and not in the database`,
  different: ({ database_version, version }) =>
    `differs (version ${version} here${database_version === null ? "" : `, ${database_version} there`})`
}

const ask = (url: string, secret: string | undefined, table: string | undefined) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const base = HttpClientRequest.get(`${url}/integrity/compare`, table === undefined ? {} : { urlParams: { table } })
    const response = yield* client
      .execute(secret === undefined ? base : HttpClientRequest.bearerToken(base, secret))
      .pipe(Effect.mapError(() => fault(`no SSP answers at ${url}: start the SSP, or say with --url where it is`)))
    const text = yield* Effect.mapError(response.text, () => fault(`the answer of ${url} ended early`))
    if (response.status !== 200) return yield* fault(`${url} answers ${response.status}: ${text.slice(0, 500)}`)
    return yield* Effect.mapError(Schema.decodeUnknown(Schema.parseJson(Comparison))(text), () =>
      fault(`${url} does not answer like an SSP of this version`)
    )
  })

/** Succeeds if everything is equal; else prints the names and ends with 1. */
export const run = (
  config: Config,
  { tables, url }: CheckOptions
): Effect.Effect<void, StartFault, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const address = url ?? (yield* here(config))
    const secret = config.authSecret === undefined ? undefined : Redacted.value(config.authSecret)
    let different = 0
    for (const table of tables ?? [undefined]) {
      const found = yield* ask(address, secret, table)
      different += found.different
      for (const difference of found.differences)
        yield* Console.log(`${difference.id} ${words[difference.kind](difference)}`)
      if (found.different > found.differences.length)
        yield* Console.log(`and ${found.different - found.differences.length} more`)
      yield* Console.log(
        `compared ${found.compared} records of ${found.tables.join(", ") || "no table"}: ${found.different === 0 ? "all are equal" : `${found.different} differ`}`
      )
    }
    if (different > 0)
      return yield* fault(
        `${different} records differ from the database; POST ${address}/reconcile repairs them now, the periodic compare by itself`
      )
  })
