/**
 * Calls to the scheduler over HTTP.
 *
 * Of several schedulers any may be asked (D60). Without a schedule of its own; the caller decides when to try again.
 * Answers are told apart by status, and by the code in the body only where the specification has no status of its own:
 * a scheduler that knows nothing but the specification must do.
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Duration, Effect, Either, Layer, Option, type Redacted, Runtime, Schema, type Scope } from "effect"
import { reasonOf } from "../core/reason.ts"
import * as Encode from "../core/surql/values/encode.ts"
import { bearerOf } from "../node/http/bearer.ts"
import {
  type FeedAsk,
  type Pieces,
  SchedulerClient,
  type SchedulerClientShape,
  SchedulerError
} from "../ports/SchedulerClient.ts"
import { exactType, feedType, SspRegistered, snapshotSeqHeader } from "../protocol/wire.ts"
import * as FlowText from "./shared/flowText.ts"
import { type Transport, transportOf } from "./shared/httpSend.ts"
import { Schedulers, whySecret } from "./shared/schedulers.ts"

const timeout = Duration.seconds(10)
/** A page of large records from a busy scheduler takes its time. */
const queryTimeout = Duration.seconds(60)

/** A feed on which nothing is heard for so long has broken off. */
const silence = Duration.seconds(15)

/** A scheduler that reads words as they come says so at once; one that waits for the end of the request never does. */
const admission = Duration.seconds(2)

const unreachable = (message: string): SchedulerError => new SchedulerError({ reason: "unreachable", message })

interface Answered {
  readonly status: number
  readonly headers: Headers.Headers
  readonly text: string
}

/** Opens a feed at one scheduler: its text, once it has answered 200. */
const opening =
  (transport: Transport, headers: () => { readonly [name: string]: string }) =>
  (
    url: string,
    { after, registration, tables }: FeedAsk
  ): Effect.Effect<Pieces<SchedulerError>, SchedulerError, Scope.Scope> => {
    const asked = new URLSearchParams({
      after: String(after),
      registration: String(registration),
      tables: tables.map((table) => (table === "*" ? table : encodeURIComponent(table))).join(",")
    })
    return FlowText.open({
      open: (heard) =>
        transport.open(
          {
            method: "GET",
            url: `${url}/feed?${asked}`,
            headers: { ...headers(), accept: feedType },
            body: undefined,
            withinMs: Duration.toMillis(timeout),
            silenceMs: Duration.toMillis(silence)
          },
          heard
        ),
      refused: (status, given, text) => refusal({ status, headers: Headers.fromInput(given), text }),
      broken: (error) => unreachable(error === undefined ? "the connection ended without an answer" : reasonOf(error))
    })
  }

/** Opens a request on which it is said again and again what is applied. */
const speaking =
  (
    pour: NonNullable<Transport["pour"]>,
    url: () => string,
    headers: () => { readonly [name: string]: string }
  ): NonNullable<SchedulerClientShape["words"]> =>
  (over) => {
    let status: number | undefined
    let state: "opening" | "open" | "over" = "opening"
    const request = pour(
      {
        method: "POST",
        url: `${url()}/ssp/applied`,
        headers: { ...headers(), "content-type": feedType },
        withinMs: Duration.toMillis(admission),
        silenceMs: Duration.toMillis(silence)
      },
      {
        head: (given) => {
          status = given
          // It may have been ended meanwhile.
          if (given === 200 && state === "opening") state = "open"
        },
        data: () => {},
        end: (error) => {
          state = "over"
          over(status !== 200 ? "refused" : error === undefined ? "read" : "cut")
        }
      }
    )
    // The head of the request goes out with the first piece of its body.
    request.write("\n")
    return {
      say: (applied) => {
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

/** The ways in which the schedulers are asked: each in turn, while one cannot be reached or does not lead. */
const asking = (transport: Transport, list: string, secret: () => Redacted.Redacted<string> | undefined) => {
  const schedulers = new Schedulers(list)
  const client = transport.clientAt(undefined)
  const passes = ({ reason }: SchedulerError): boolean => reason === "unreachable" || reason === "notLeader"
  const headers = (): { readonly [name: string]: string } => {
    const bearer = secret()
    return bearer === undefined ? {} : { authorization: bearerOf(bearer) }
  }
  const post = (path: string, body: unknown, within = timeout): Effect.Effect<Answered, SchedulerError> =>
    schedulers.ask((url) => postTo(url, path, body, within), passes)
  const postTo = (
    url: string,
    path: string,
    body: unknown,
    within: Duration.Duration
  ): Effect.Effect<Answered, SchedulerError> =>
    HttpClientRequest.post(`${url}${path}`).pipe(
      HttpClientRequest.bodyUnsafeJson(body),
      HttpClientRequest.accept(path === "/proxy/query" ? `${exactType}, application/json` : "application/json"),
      HttpClientRequest.setHeaders(headers()),
      client.execute,
      Effect.flatMap((response: HttpClientResponse.HttpClientResponse) =>
        Effect.map(response.text, (text) => ({ status: response.status, headers: response.headers, text }))
      ),
      Effect.scoped,
      Effect.mapError((error) => unreachable(error._tag === "RequestError" ? reasonOf(error) : error.message)),
      Effect.timeoutFail({
        duration: within,
        onTimeout: () => unreachable(`no answer within ${Duration.format(within)}`)
      }),
      Effect.flatMap((answer) =>
        answer.status >= 200 && answer.status < 300 ? Effect.succeed(answer) : Effect.fail(refusal(answer))
      )
    )
  const open = opening(transport, headers)
  /** For what is said for every batch of the log: nothing but the request. */
  const say = (path: string, body: string): Effect.Effect<void, SchedulerError> =>
    schedulers.ask(
      (url) =>
        transport
          .send({
            method: "POST",
            url: `${url}${path}`,
            headers: { ...headers(), "content-type": "application/json" },
            body,
            withinMs: Duration.toMillis(timeout)
          })
          .pipe(
            Effect.mapError(({ message }) => unreachable(message)),
            Effect.flatMap(({ status, text }) =>
              status >= 200 && status < 300
                ? Effect.void
                : Effect.fail(refusal({ status, headers: Headers.empty, text }))
            )
          ),
      passes
    )
  const feed = (asked: FeedAsk) => schedulers.ask((url) => open(url, asked), passes)
  const { pour } = transport
  const words = pour && speaking(pour, () => schedulers.first, headers)
  return { post, say, feed, words }
}

const make = ({ feed, post, say, words }: ReturnType<typeof asking>): SchedulerClientShape => {
  return {
    // A scheduler that knows the specification alone may refuse a body with more than that (D77).
    register: ({ ssp_id, url, ...extensions }) =>
      post("/ssp/register", { ssp_id, url, ...extensions }).pipe(
        Effect.catchIf(
          ({ status }) => status === 400,
          (first) =>
            Effect.mapError(post("/ssp/register", { ssp_id, url }), (second) =>
              second.status === 400 ? first : second
            )
        ),
        // Neither says more here than that the registration is not taken.
        Effect.mapError((error) =>
          error.reason === "unknown" || error.reason === "conflict"
            ? new SchedulerError({ ...error, reason: "refused" })
            : error
        ),
        Effect.flatMap(registered)
      ),
    feed,
    applied: (applied) => say("/ssp/applied", JSON.stringify(applied)),
    ingest: (body) => say("/ingest", body),
    ...(words === undefined ? {} : { words }),
    heartbeat: (heartbeat) => Effect.asVoid(post("/ssp/heartbeat", heartbeat)),
    deregister: (goodbye) => Effect.asVoid(post("/ssp/deregister", goodbye)),
    signin: Effect.asVoid(post("/proxy/signin", {})),
    use: Effect.asVoid(post("/proxy/use", {})),
    query: (query, params) =>
      Effect.map(
        post(
          "/proxy/query",
          params === undefined ? { query } : { query, params: JSON.parse(Encode.encode(params)) as unknown },
          queryTimeout
        ),
        ({ headers, text }) => ({ seq: seqOf(headers), exact: isExact(headers), text })
      )
  }
}

const decodeRegistered = Schema.decodeUnknownEither(Schema.parseJson(SspRegistered))

const registered = ({ status, text }: Answered): Effect.Effect<typeof SspRegistered.Type, SchedulerError> =>
  Either.mapLeft(decodeRegistered(text), (error) =>
    unreachable(`answered ${status}, but not as agreed: ${error.message}`)
  )

const seqOf = (headers: Headers.Headers): number | undefined => {
  const seq = Option.getOrUndefined(Headers.get(headers, snapshotSeqHeader))
  return seq !== undefined && /^\d{1,15}$/.test(seq) ? Number(seq) : undefined
}

const isExact = (headers: Headers.Headers): boolean =>
  Option.getOrElse(Headers.get(headers, "content-type"), () => "").startsWith(exactType)

const decodeCode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ code: Schema.String })))

const refusal = ({ headers, status, text }: Answered): SchedulerError => {
  const code = Option.getOrUndefined(decodeCode(text))?.code
  const message = `answered ${status} ${text.slice(0, 300)}${whySecret(status)}`
  if (status === 400) return new SchedulerError({ reason: "refused", message, status })
  if (status === 409) return new SchedulerError({ reason: code === "SSP_FENCED" ? "fenced" : "conflict", message })
  if (status === 404) return new SchedulerError({ reason: "unknown", message })
  if (status === 503 && code === "SCHEDULER_CLONING") return new SchedulerError({ reason: "cloning", message })
  if (status === 503 && code === "NOT_LEADER")
    return new SchedulerError({ reason: "notLeader", message, retryAfterMs: retryAfterMs(headers) })
  if (status === 503 && code === "OVERLOADED")
    return new SchedulerError({ reason: "overloaded", message, retryAfterMs: retryAfterMs(headers) })
  if (status === 429) return new SchedulerError({ reason: "overloaded", message, retryAfterMs: retryAfterMs(headers) })
  return new SchedulerError({ reason: status >= 400 && status < 500 ? "refused" : "unreachable", message })
}

const retryAfterMs = (headers: Headers.Headers): number => {
  const seconds = Number(Option.getOrUndefined(Headers.get(headers, "retry-after")))
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0
}

/** `list`: addresses without a trailing slash, separated by commas. `secret` is asked for at each call. */
export const layerOver = (
  transport: Transport,
  list: string,
  secret: () => Redacted.Redacted<string> | undefined = () => undefined
): Layer.Layer<SchedulerClient> => Layer.sync(SchedulerClient, () => make(asking(transport, list, secret)))

/** {@link layerOver} any HTTP client. */
export const layer = (
  list: string,
  secret?: () => Redacted.Redacted<string> | undefined
): Layer.Layer<SchedulerClient, never, HttpClient.HttpClient> =>
  Layer.unwrapEffect(
    Effect.map(Effect.all([HttpClient.HttpClient, Effect.runtime<never>()]), ([client, runtime]) =>
      layerOver(transportOf(client, Runtime.runFork(runtime)), list, secret)
    )
  )
