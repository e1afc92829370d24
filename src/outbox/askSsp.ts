/**
 * Commands that ask an SSP about its jobs: list, show, retry, cancel, over its HTTP endpoints.
 *
 * By HTTP and not in the database, because only the SSP knows the jobs of an embedded store and can abort a call.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Console, Effect, Redacted } from "effect"
import * as JsonText from "../core/jsonText.ts"
import { StartFault } from "../ports/StartFault.ts"
import type { ParsedCommand } from "./Cli.ts"

/** An SSP to ask. */
export interface Ssp {
  /** Address without a trailing slash. */
  readonly url: string
  readonly secret: string | undefined
}

/** The SSP at `url`, else the one that these settings belong to. */
export const sspOf = (
  settings: {
    readonly listen: { readonly host: string | undefined; readonly port: number }
    readonly authSecret: Redacted.Redacted<string> | undefined
    readonly tls?: unknown
  },
  url: string | undefined
): Ssp => ({
  url: (
    url ??
    `http${settings.tls === undefined ? "" : "s"}://${settings.listen.host ?? "127.0.0.1"}:${settings.listen.port}`
  ).replace(/\/+$/, ""),
  secret: settings.authSecret === undefined ? undefined : Redacted.value(settings.authSecret)
})

type Question = Extract<ParsedCommand, { readonly options: unknown }>

const fault = (message: string): StartFault => new StartFault({ exitCode: 1, message })

const request = ({ args, command, options }: Question, url: string): HttpClientRequest.HttpClientRequest => {
  const [of = ""] = args
  if (command !== "list")
    return command === "show"
      ? HttpClientRequest.get(`${url}/jobs/${encodeURIComponent(of)}`)
      : HttpClientRequest.post(`${url}/jobs/${encodeURIComponent(of)}/${command}`)
  const { after, limit, status = "failed" } = options
  return HttpClientRequest.get(`${url}/jobs`).pipe(
    HttpClientRequest.setUrlParams({
      table: of,
      ...(status === "all" ? {} : { status }),
      ...(after === undefined ? {} : { after }),
      ...(limit === undefined ? {} : { limit })
    })
  )
}

const parsed = (text: string): unknown => {
  try {
    return JsonText.parse(text)
  } catch {
    return undefined
  }
}

const lastReason = (errors: ReadonlyArray<unknown>): string => {
  const last = errors.at(-1)
  return typeof last === "object" && last !== null && "reason" in last
    ? String(last.reason).replace(/\s+/g, " ").slice(0, 120)
    : ""
}

/** One line per job: id, status, path, attempts, last reason. */
const listed = (json: unknown): string => {
  const { jobs, next } = json as {
    readonly jobs: ReadonlyArray<{
      readonly id: string
      readonly status: string
      readonly path: string
      readonly errors: ReadonlyArray<unknown>
    }>
    readonly next: string | null
  }
  const lines = jobs.map(({ errors, id, path, status }) =>
    [id, status, path, `${errors.length} errors`, lastReason(errors)].join("\t").trimEnd()
  )
  return [...lines, ...(next === null ? [] : [`more: --after ${next}`])].join("\n")
}

/** Prints the answer; an error answer is a fault with the SSP's own message. */
export const ask = (question: Question, { secret, url }: Ssp): Effect.Effect<void, StartFault, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const { status, text } = yield* client
      .execute(
        HttpClientRequest.setHeaders(
          request(question, url),
          secret === undefined ? {} : { authorization: `Bearer ${secret}` }
        )
      )
      .pipe(
        Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
        Effect.scoped,
        Effect.timeout("30 seconds"),
        Effect.mapError((error) => fault(`the SSP at ${url} does not answer: ${error.message}`))
      )
    const json = parsed(text)
    if (status !== 200 || json === undefined) {
      const said =
        typeof json === "object" && json !== null && "message" in json ? String(json.message) : text.slice(0, 300)
      return yield* fault(`the SSP at ${url} answered ${status}: ${said}`)
    }
    const { command } = question
    yield* Console.log(command === "list" ? listed(json) : command === "show" ? JSON.stringify(json, null, 2) : "done")
  })
