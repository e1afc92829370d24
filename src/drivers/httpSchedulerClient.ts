/**
 * Calls to the scheduler over HTTP.
 *
 * Any of several schedulers may be asked (D60). Nothing is retried here; callers decide about retries. Answers are told
 * apart by status, and by the code in the body only where the specification defines no status, so that a scheduler that
 * knows the specification alone is understood.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Either, Layer, type Redacted, Runtime, Schema, type Scope } from "effect"
import { reasonOf } from "../core/reason.ts"
import * as Encode from "../core/surql/values/encode.ts"
import { bearerOf } from "../node/http/bearer.ts"
import {
  type FeedAsk,
  SchedulerClient,
  type SchedulerClientShape,
  SchedulerError,
  type TextPieces
} from "../ports/SchedulerClient.ts"
import { exactType, feedType, SspRegistered, snapshotSeqHeader } from "../protocol/wire.ts"
import { type Answered, type Exchange, headerOf, isSuccess, json, jsonOf, over } from "./shared/exchange.ts"
import * as FlowText from "./shared/flowText.ts"
import { Schedulers, whySecret } from "./shared/schedulers.ts"

const timeoutMs = 10_000
/** Time limit of a query: a busy scheduler takes long for a page of large records. */
const queryTimeoutMs = 60_000

/** A feed that is silent for so long has broken off. */
const silenceMs = 15_000

/**
 * Time limit for the answer to a long request: a scheduler that reads lines as they come answers at once; a scheduler
 * that waits for the end of the request never answers.
 */
const admissionMs = 2_000

const unreachable = (message: string): SchedulerError => new SchedulerError({ reason: "unreachable", message })

/** Opens a feed at one scheduler; succeeds with the feed's text once the scheduler has answered 200. */
const opening =
  (exchange: Exchange, headers: () => { readonly [name: string]: string }) =>
  (
    url: string,
    { after, registration, tables }: FeedAsk
  ): Effect.Effect<TextPieces<SchedulerError>, SchedulerError, Scope.Scope> => {
    const asked = new URLSearchParams({
      after: String(after),
      registration: String(registration),
      tables: tables.map((table) => (table === "*" ? table : encodeURIComponent(table))).join(",")
    })
    return FlowText.open({
      open: (heard) =>
        exchange.open(
          {
            method: "GET",
            url: `${url}/feed?${asked}`,
            headers: { ...headers(), accept: feedType },
            body: undefined,
            withinMs: timeoutMs,
            silenceMs
          },
          heard
        ),
      refused: (status, given, text) => refusal({ status, headers: given, text }),
      broken: (error) => unreachable(error === undefined ? "the connection ended without an answer" : reasonOf(error))
    })
  }

/** Opens one long request whose body carries acknowledgements: a JSON line for each applied position. */
const acknowledging =
  (
    pour: NonNullable<Exchange["pour"]>,
    url: () => string,
    headers: () => { readonly [name: string]: string }
  ): NonNullable<SchedulerClientShape["openAcks"]> =>
  (over) => {
    let status: number | undefined
    let state: "opening" | "open" | "over" = "opening"
    const request = pour(
      {
        method: "POST",
        url: `${url()}/ssp/applied`,
        headers: { ...headers(), "content-type": feedType },
        withinMs: admissionMs,
        silenceMs
      },
      {
        head: (given) => {
          status = given
          // The caller may have ended the request before its head was answered.
          if (given === 200 && state === "opening") state = "open"
        },
        data: () => {},
        end: (error) => {
          state = "over"
          over(status !== 200 ? "refused" : error === undefined ? "read" : "cut")
        }
      }
    )
    // The head of the request is sent with the first piece of its body.
    request.write("\n")
    return {
      send: (applied) => {
        if (state !== "open") return false
        request.write(`${JSON.stringify(applied)}\n`)
        return true
      },
      end: () => {
        state = "over"
        request.end()
      },
      close: request.close
    }
  }

interface Asked {
  readonly withinMs?: number
  readonly mostBytes?: number
  readonly accept?: string
}

/** Calls to the schedulers: if one cannot be reached or does not lead, the next one is asked. */
const asking = (exchange: Exchange, list: string, secret: () => Redacted.Redacted<string> | undefined) => {
  const schedulers = new Schedulers(list)
  const passes = ({ reason }: SchedulerError): boolean => reason === "unreachable" || reason === "notLeader"
  const headers = (): { readonly [name: string]: string } => {
    const bearer = secret()
    return bearer === undefined ? {} : { authorization: bearerOf(bearer) }
  }
  const postText = (
    path: string,
    body: string,
    { accept = json, withinMs = timeoutMs, ...bound }: Asked = {}
  ): Effect.Effect<Answered, SchedulerError> =>
    schedulers.ask(
      (url) =>
        exchange
          .request({
            method: "POST",
            url: `${url}${path}`,
            headers: { ...headers(), accept, "content-type": json },
            body,
            withinMs,
            ...bound
          })
          .pipe(
            Effect.mapError(({ message }) => unreachable(message)),
            Effect.filterOrFail(isSuccess, refusal)
          ),
      passes
    )
  const post = (path: string, body: unknown, asked?: Asked) => postText(path, JSON.stringify(body), asked)
  const open = opening(exchange, headers)
  const feed = (asked: FeedAsk) => schedulers.ask((url) => open(url, asked), passes)
  const { pour } = exchange
  const openAcks = pour && acknowledging(pour, () => schedulers.first, headers)
  return { post, postText, feed, openAcks }
}

const make = ({ feed, post, postText, openAcks }: ReturnType<typeof asking>): SchedulerClientShape => {
  return {
    // A scheduler of the specification alone may refuse a body with extensions (D77).
    register: ({ ssp_id, url, ...extensions }) =>
      post("/ssp/register", { ssp_id, url, ...extensions }).pipe(
        Effect.catchIf(
          ({ status }) => status === 400,
          (first) =>
            Effect.mapError(post("/ssp/register", { ssp_id, url }), (second) =>
              second.status === 400 ? first : second
            )
        ),
        // Both codes mean here only that the registration is refused.
        Effect.mapError((error) =>
          error.reason === "unknown" || error.reason === "conflict"
            ? new SchedulerError({ ...error, reason: "refused" })
            : error
        ),
        Effect.flatMap(registered)
      ),
    feed,
    applied: (applied) => Effect.asVoid(post("/ssp/applied", applied)),
    ingest: (body) => Effect.asVoid(postText("/ingest", body)),
    ...(openAcks === undefined ? {} : { openAcks }),
    heartbeat: (heartbeat) => Effect.asVoid(post("/ssp/heartbeat", heartbeat)),
    deregister: (goodbye) => Effect.asVoid(post("/ssp/deregister", goodbye)),
    signin: Effect.asVoid(post("/proxy/signin", {})),
    use: Effect.asVoid(post("/proxy/use", {})),
    query: (query, params) =>
      Effect.map(
        post(
          "/proxy/query",
          params === undefined ? { query } : { query, params: JSON.parse(Encode.encode(params)) as unknown },
          { withinMs: queryTimeoutMs, mostBytes: Infinity, accept: `${exactType}, ${json}` }
        ),
        (answer) => ({ seq: seqOf(answer), exact: isExact(answer), text: answer.text })
      )
  }
}

const decodeRegistered = Schema.decodeUnknownEither(Schema.parseJson(SspRegistered))

const registered = ({ status, text }: Answered): Effect.Effect<typeof SspRegistered.Type, SchedulerError> =>
  Either.mapLeft(decodeRegistered(text), (error) =>
    unreachable(`answered ${status}, but not as agreed: ${error.message}`)
  )

const seqOf = (answer: Answered): number | undefined => {
  const seq = headerOf(answer, snapshotSeqHeader)
  return seq !== undefined && /^\d{1,15}$/.test(seq) ? Number(seq) : undefined
}

const isExact = (answer: Answered): boolean => headerOf(answer, "content-type")?.startsWith(exactType) ?? false

/**
 * The error code of a body; the body may lack every other field, because schedulers of other makers may leave them out.
 */
const codeIn = (body: unknown): unknown =>
  typeof body === "object" && body !== null && "code" in body ? body.code : undefined

const refusal = (answer: Answered): SchedulerError => {
  const { status, text } = answer
  const code = codeIn(jsonOf(text))
  const message = `answered ${status} ${text.slice(0, 300)}${whySecret(status)}`
  if (status === 400) return new SchedulerError({ reason: "refused", message, status })
  if (status === 409) return new SchedulerError({ reason: code === "SSP_FENCED" ? "fenced" : "conflict", message })
  if (status === 404) return new SchedulerError({ reason: "unknown", message })
  if (status === 503 && code === "SCHEDULER_CLONING") return new SchedulerError({ reason: "cloning", message })
  if (status === 503 && code === "NOT_LEADER")
    return new SchedulerError({ reason: "notLeader", message, retryAfterMs: retryAfterMs(answer) })
  if (status === 503 && code === "OVERLOADED")
    return new SchedulerError({ reason: "overloaded", message, retryAfterMs: retryAfterMs(answer) })
  if (status === 429) return new SchedulerError({ reason: "overloaded", message, retryAfterMs: retryAfterMs(answer) })
  if (status === 500) return new SchedulerError({ reason: "unreachable", message, status })
  return new SchedulerError({ reason: status >= 400 && status < 500 ? "refused" : "unreachable", message })
}

const retryAfterMs = (answer: Answered): number => {
  const seconds = Number(headerOf(answer, "retry-after"))
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0
}

/** `list`: addresses without a trailing slash, separated by commas. `secret` is asked for at each call. */
export const layerOver = (
  exchange: Exchange,
  list: string,
  secret: () => Redacted.Redacted<string> | undefined = () => undefined
): Layer.Layer<SchedulerClient> => Layer.sync(SchedulerClient, () => make(asking(exchange, list, secret)))

/** {@link layerOver} any HTTP client. */
export const layer = (
  list: string,
  secret?: () => Redacted.Redacted<string> | undefined
): Layer.Layer<SchedulerClient, never, HttpClient.HttpClient> =>
  Layer.unwrapEffect(
    Effect.map(Effect.all([HttpClient.HttpClient, Effect.runtime<never>()]), ([client, runtime]) =>
      layerOver(over(client, Runtime.runFork(runtime)), list, secret)
    )
  )
