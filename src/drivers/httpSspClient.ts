/**
 * Calls of a scheduler to its SSPs over HTTP.
 *
 * A name is resolved once for each call, and the connection goes to the address that was judged: a name server could
 * give one address to the judge and another to the connection.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Either, Layer, Option, type Redacted, Schema } from "effect"
import * as Hosts from "../core/access/hosts.ts"
import type { Answer } from "../core/cluster/deliveryQueue.ts"
import type { CallOutcome, Health } from "../core/cluster/messages.ts"
import * as JsonText from "../core/jsonText.ts"
import { isLate, isLost, isRefused } from "../core/reason.ts"
import { bearerOf } from "../node/http/bearer.ts"
import { Names } from "../ports/Names.ts"
import { type Options, SspClient, type SspClientShape, type Target } from "../ports/SspClient.ts"
import type { WireError } from "../protocol/errors.ts"
import * as Integrity from "../protocol/integrity.ts"
import { ListedViews } from "../protocol/overview.ts"
import { registrationHeader } from "../protocol/wire.ts"
import * as Exchange from "./shared/exchange.ts"
import { isTls, makeUrlJudge } from "./shared/judge.ts"
import * as SspOpen from "./shared/sspOpen.ts"
import * as SspPass from "./shared/sspPass.ts"

/** Time limit of a question for hashes: an SSP computes all of them when it is first asked. */
const hashesTimeoutMs = 60_000

/** An answer with the error of its body, if any. */
interface Answered extends Pick<Exchange.Answered, "status" | "text"> {
  readonly error: WireError | undefined
}

const unreachable: CallOutcome = { kind: "unreachable" }
const unavailable: Answer = { kind: "unavailable" }

/** Outcome of a call without an answer, by the reason. */
const unreached = (error: unknown): CallOutcome => {
  if (isRefused(error)) return { kind: "unreachable", refused: true }
  return isLost(error)
    ? { kind: "unreachable", lost: true }
    : isLate(error)
      ? { kind: "unreachable", late: true }
      : unreachable
}
const undelivered = (error: unknown): Answer =>
  isRefused(error) ? { kind: "unavailable", refused: true } : unavailable
const unseen = (error: unknown): Health => (isRefused(error) ? "refused" : "unreachable")

const expectedOf = (error: WireError | undefined): number | undefined => {
  const details = error?.details
  const expected =
    typeof details === "object" && details !== null && "expected" in details ? details.expected : undefined
  return typeof expected === "number" && Number.isSafeInteger(expected) && expected >= 1 ? expected : undefined
}

const endsOf = ({ details }: WireError): number =>
  typeof details === "object" && details !== null && "ends" in details && typeof details.ends === "number"
    ? details.ends
    : 0

const isUnauthorized = ({ error, status }: Pick<Answered, "error" | "status">): boolean =>
  status === 401 || error?.code === "SCOPE_REQUIRED"

/**
 * Outcome of a delivery, by the table of D26. A redirect is not followed: an SSP that redirects counts as one that does
 * not answer.
 */
const toDelivery = (answer: Answered): Answer => {
  const { error, status } = answer
  if (status >= 200 && status < 300) return { kind: "applied" }
  if (isUnauthorized(answer)) return { kind: "unauthorized" }
  if (status === 409 && error?.code === "STALE_EPOCH") return { kind: "stale" }
  const expected = status === 409 ? expectedOf(error) : undefined
  if (expected !== undefined) return { kind: "gap", expected }
  return status >= 400 && status < 500 && status !== 408 && status !== 429 ? { kind: "rejected", status } : unavailable
}

const placedOf = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ tables: Schema.Array(Schema.String) })))
/** Longest answer to a placement that is read: a longer one is a result, which SSPs of other makers send (D77). */
const maxPlacedChars = 65_536

const toPlaced = (answer: Answered): CallOutcome => {
  const outcome = toOutcome(answer)
  if (outcome.kind !== "done" || answer.text.length > maxPlacedChars) return outcome
  return { ...outcome, ...Option.getOrUndefined(placedOf(answer.text)) }
}

/** Outcome of an answer that is neither success nor refusal. */
const noWord = (answer: Answered): CallOutcome =>
  isUnauthorized(answer) ? { kind: "unreachable", secret: true } : unreachable

const toOutcome = (answer: Answered): CallOutcome => {
  const { error, status } = answer
  if (status >= 200 && status < 300) return { kind: "done" }
  if (status === 409 && error?.code === "VIEW_QUARANTINED") return { kind: "quarantined", ends: endsOf(error) }
  if (status === 503 && error?.code === "TABLES_JOINING") return { kind: "joining" }
  return status === 400
    ? {
        kind: "refused",
        details: error ?? { code: "INVALID_REQUEST", message: "the SSP refuses the registration", details: [] }
      }
    : noWord(answer)
}

/** An SSP answers alike whether it drops the view or never had it. A refused call is not repeated either. */
const toDropped = (answer: Answered): CallOutcome =>
  answer.status < 300 || answer.status === 404 || answer.status === 400 ? { kind: "done" } : noWord(answer)

const toTaken = (answer: Answered): CallOutcome => {
  const { error, status } = answer
  if (status >= 200 && status < 300) return { kind: "done" }
  return status === 400 || status === 404 ? { kind: "refused", details: error ?? { status } } : noWord(answer)
}

/** Undefined: the SSP does not know the call, as an SSP of another maker may not (D77). */
const toExecuted = (answered: Answered): CallOutcome | undefined =>
  answered.status === 404 || answered.status === 405 ? undefined : toTaken(answered)

const toHealth = ({ status, text }: Answered): Health => {
  const body = Exchange.jsonOf(text)
  const word = typeof body === "object" && body !== null && "status" in body ? body.status : undefined
  if (status === 200 && word === "ready") return "ready"
  return word === "failed"
    ? "failed"
    : word === "bootstrapping" || status === 200 || status === 503
      ? "bootstrapping"
      : "unreachable"
}

/** Asks SSPs at addresses that the judge allows, and sends the secret only where it may be read. */
const makeAsking = (
  send: Exchange.Exchange["request"],
  judge: ReturnType<typeof makeUrlJudge>["judge"],
  { secret, timeoutMs }: Options,
  denied: (ssp: string) => void
) => {
  const asked = <A>(
    { url }: { readonly url: string },
    request: Exchange.SentRequest,
    bearer: Redacted.Redacted<string> | undefined,
    read: (answer: Answered) => A,
    failed: (error: unknown) => A
  ): Effect.Effect<A> =>
    Effect.flatMap(judge(url), ({ addresses, mayHear, refused }) => {
      if (refused !== undefined) return Effect.succeed(failed(new Error(refused)))
      const headers =
        bearer !== undefined && mayHear ? { ...request.headers, authorization: bearerOf(bearer) } : request.headers
      return Effect.match(send({ ...request, headers, addresses }), {
        onFailure: failed,
        onSuccess: ({ status, text }) =>
          read({ status, error: status >= 300 ? Exchange.errorOf({ text }) : undefined, text })
      })
    })
  const told = <A>(
    target: Pick<Target, "ssp" | "url">,
    request: Exchange.SentRequest,
    read: (answer: Answered) => A,
    failed: (error: unknown) => A
  ): Effect.Effect<A> =>
    asked(
      target,
      request,
      secret(target.ssp),
      (answer) => {
        if (isUnauthorized(answer)) denied(target.ssp)
        return read(answer)
      },
      failed
    )
  const post = <A>(
    target: Target,
    path: string,
    body: string,
    read: (answer: Answered) => A,
    failed: (error: unknown) => A,
    traceparent?: string
  ): Effect.Effect<A> => {
    const headers = { "content-type": Exchange.json, [registrationHeader]: String(target.registration) }
    return told(
      target,
      {
        method: "POST",
        url: `${target.url}${path}`,
        headers: traceparent === undefined ? headers : { ...headers, traceparent },
        body,
        withinMs: timeoutMs
      },
      read,
      failed
    )
  }
  return { asked, post, told }
}

const get = (url: string, withinMs: number): Exchange.SentRequest => ({
  method: "GET",
  url,
  headers: {},
  body: undefined,
  withinMs
})

/** Reads an SSP's report of itself; undefined if it cannot be read. */
const reading =
  (told: ReturnType<typeof makeAsking>["told"]) =>
  <A, I>(
    target: Target,
    shape: Schema.Schema<A, I>,
    path: string,
    wanted: { readonly [name: string]: string },
    withinMs: number
  ): Effect.Effect<A | undefined> => {
    const decode = Schema.decodeUnknownOption(Schema.parseJson(shape))
    const decoded = ({ status, text }: Answered): A | undefined =>
      status === 200 ? Option.getOrUndefined(decode(text)) : undefined
    const url = `${target.url}${path}?${new URLSearchParams(wanted)}`
    return told<A | undefined>(target, get(url, withinMs), decoded, () => undefined)
  }

const make = (exchange: Exchange.Exchange, names: typeof Names.Service, options: Options): SspClientShape => {
  const { allowedHosts, isTlsOnly = false, timeoutMs } = options
  const { addressesOf, judge } = makeUrlJudge(names, allowedHosts, isTlsOnly)
  let heard: (ssp: string) => void = () => {}
  const denied = (ssp: string): void => heard(ssp)
  const { asked, post, told } = makeAsking(exchange.request, judge, options, denied)
  const read = reading(told)
  return {
    watchSecrets: (by) => void (heard = by),
    check: (url) => {
      if (isTlsOnly && !isTls(url))
        return Effect.succeed(Either.left("must be an https:// address where SVC_TLS_CA_FILE is set"))
      const listed = Hosts.checkUrl(url, allowedHosts, [])
      return Either.isLeft(listed)
        ? Effect.succeed(listed)
        : Effect.map(addressesOf(Hosts.hostOf(listed.right)), (resolved = []) =>
            Hosts.checkUrl(url, allowedHosts, resolved)
          )
    },
    health: (target) => asked(target, get(`${target.url}/health`, timeoutMs), undefined, toHealth, unseen),
    deliver: (target, body, traceparent) => post(target, "/ingest", body, toDelivery, undelivered, traceparent),
    registerView: (target, body) => post(target, "/view/register", JsonText.write(body), toPlaced, unreached),
    unregisterView: (target, body) => post(target, "/view/unregister", JsonText.write(body), toDropped, unreached),
    freeView: (target, body) => post(target, "/view/free", JsonText.write(body), toDropped, unreached),
    executeJob: (target, body, change) =>
      Effect.flatMap(post(target, "/job/execute", JsonText.write(body), toExecuted, unreached), (outcome) =>
        outcome === undefined
          ? post(target, "/ingest", JsonText.write(change), toTaken, unreached)
          : Effect.succeed(outcome)
      ),
    costliest: (target, limit, search = "") =>
      read(target, ListedViews, "/views", { order: "cost", limit: String(limit), search }, timeoutMs),
    roots: (target) => read(target, Integrity.Tables, "/integrity", {}, hashesTimeoutMs),
    node: (target, table, level, index) =>
      read(
        target,
        Integrity.Node,
        "/integrity",
        { table, level: String(level), index: String(index) },
        hashesTimeoutMs
      ),
    open: SspOpen.makeOpener(exchange, judge, options, denied),
    changeStream: (target, stream, body) =>
      told(
        target,
        {
          method: "POST",
          url: `${target.url}/stream/${encodeURIComponent(stream)}`,
          headers: { "content-type": Exchange.json },
          body,
          withinMs: timeoutMs
        },
        ({ status }) => status === 200,
        () => false
      ),
    forward: SspPass.make(exchange.clientAt, judge, timeoutMs)
  }
}

export const layerOver = (exchange: Exchange.Exchange, options: Options): Layer.Layer<SspClient, never, Names> =>
  Layer.effect(
    SspClient,
    Effect.map(Names, (names) => make(exchange, names, options))
  )

/** {@link layerOver} any HTTP client. */
export const layer = (options: Options): Layer.Layer<SspClient, never, HttpClient.HttpClient | Names> =>
  Layer.unwrapEffect(
    Effect.map(HttpClient.HttpClient, (client) => layerOver(Exchange.over(Exchange.withoutSpans(client)), options))
  )
