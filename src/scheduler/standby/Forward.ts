/**
 * Forwards requests from a standby scheduler to the leader: same body, same credentials of the caller, one hop.
 *
 * A caller is not redirected, so it needs no address but the one it has (D15). A forwarded request is not forwarded
 * again: two schedulers that take each other for the leader would pass it to and fro.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Stream } from "effect"
import { fromBody, respond, toAnswer } from "../../node/http/answers.ts"
import { Serving } from "../../ports/Front.ts"
import { RequestBody } from "../../ports/RequestBody.ts"
import { feedType } from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import type { LeaderElection } from "./LeaderElection.ts"

/** Header with the id of the scheduler that has forwarded the request. */
export const forwardedHeader = "svc-forwarded-by"

/** Headers that are not forwarded: they belong to one connection, or were judged at this scheduler. */
const dropped: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "origin",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

const kept = (headers: { readonly [name: string]: string }): { readonly [name: string]: string } =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)))

const methods = { GET: "GET", HEAD: "HEAD", POST: "POST", PUT: "PUT", PATCH: "PATCH", DELETE: "DELETE" } as const

const isMethod = (method: string): method is keyof typeof methods => Object.hasOwn(methods, method)

/** Content types of answers without an end. */
const endless = ["text/event-stream", feedType]

/**
 * The leader's answer. `stopping` ends an answer without an end, which would otherwise keep this process from stopping.
 */
const answered = (response: HttpClientResponse.HttpClientResponse, isHead: boolean, stopping: Effect.Effect<void>) => {
  const headers = kept(response.headers)
  const { status } = response
  if (isHead || status === 204 || status === 304) return HttpServerResponse.empty({ status, headers })
  const length = Number(response.headers["content-length"])
  const body = response.stream.pipe(Stream.catchAll(() => Stream.dieMessage("the leader broke off its answer")))
  const goesOn = endless.some((type) => response.headers["content-type"]?.startsWith(type))
  return HttpServerResponse.stream(goesOn ? Stream.interruptWhen(body, stopping) : body, {
    status,
    headers,
    contentType: response.headers["content-type"] ?? "application/json",
    ...(Number.isSafeInteger(length) ? { contentLength: length } : {})
  })
}

const notLeader = respond(toAnswer(Errors.notLeader))

const needs = Effect.all([HttpClient.HttpClient, RequestBody, SchedulerConfig, Serving])

/** Forwards a request, or answers 503 `NOT_LEADER`. */
export const make = (election: Pick<LeaderElection, "leaderUrl" | "otherLeader" | "reach">) =>
  Effect.map(needs, ([given, body, config, { stopping }]) => {
    // The caller's trace context is forwarded unchanged; a span of this client would replace it.
    const client = given.pipe(
      HttpClient.withTracerDisabledWhen(() => true),
      HttpClient.withTracerPropagation(false)
    )
    const send = (request: HttpServerRequest.HttpServerRequest, url: string, text: string | undefined) => {
      const method = isMethod(request.method) ? request.method : "GET"
      const headers = { ...kept(request.headers), [forwardedHeader]: config.schedulerId }
      const bare = HttpClientRequest.make(method)(`${url}${request.url}`, { headers })
      const contentType = request.headers["content-type"] ?? "application/json"
      return client.execute(text === undefined ? bare : HttpClientRequest.bodyText(bare, text, contentType)).pipe(
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.map((response) => answered(response, method === "HEAD", stopping))
      )
    }
    return (request: HttpServerRequest.HttpServerRequest): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
      Effect.gen(function* () {
        const url = election.leaderUrl()
        const isHandedOn = request.headers[forwardedHeader] !== undefined
        if (!isHandedOn) election.reach?.asked()
        if (url === undefined || isHandedOn) return notLeader
        const hasBody = request.method !== "GET" && request.method !== "HEAD"
        const text = hasBody
          ? yield* Effect.raceFirst(
              Effect.mapError(body.text(request, config.maxBodyBytes), (error) => fromBody(error, config.maxBodyBytes)),
              // The body of acknowledgements from an SSP has no end to wait for.
              Effect.zipRight(stopping, Effect.fail(Errors.notLeader))
            ).pipe(Effect.interruptible)
          : undefined
        // A leader that hangs never answers, so the wait ends when another scheduler leads. Interruptible, because the
        // handler around it is not, and the losing call could not be ended.
        return yield* Effect.raceFirst(send(request, url, text), Effect.as(election.otherLeader, notLeader)).pipe(
          Effect.interruptible,
          Effect.tapError((error) => Effect.logDebug(`the leader at ${url} does not answer: ${error.message}`)),
          Effect.orElseSucceed(() => notLeader)
        )
      }).pipe(Effect.catchAll((error) => Effect.succeed(respond(toAnswer(error)))))
  })
