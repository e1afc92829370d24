/**
 * What goes wrong in the world, as the wire says it: the one place where faults become codes (D6).
 *
 * Exhaustive by type: a new error of a service does not compile until it is given an answer here.
 */
import * as HttpApiError from "@effect/platform/HttpApiError"
import * as HttpServerError from "@effect/platform/HttpServerError"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Effect } from "effect"
import { maxDepth } from "../core/jsonDepth.ts"
import type { Answer } from "../ports/Front.ts"
import type { BodyRefused } from "../ports/RequestBody.ts"
import { isWireError, statusOf, type WireError } from "../protocol/errors.ts"
import type { Overloaded, QueryRefused, SequenceGap, StaleEpoch, StoreFailed, ViewNotFound } from "./viewTypes.ts"

export const unauthorized = {
  code: "UNAUTHORIZED" as const,
  message: "needs the header `Authorization: Bearer <secret>` with the secret of this service (setting SVC_AUTH_SECRET)"
}

export const notReady = (phase: string) => ({ code: "SSP_NOT_READY" as const, message: `this SSP is ${phase}; try again when /health answers 200` })

export const invalidRequest = (details: ReadonlyArray<{ readonly path: string; readonly reason: string }>) => {
  const [first] = details
  const message = first !== undefined && details.length === 1 ? `${first.path === "" ? "body" : first.path} ${first.reason}` : `${details.length} faults in the request, see details`
  return { code: "INVALID_REQUEST" as const, message, details }
}

export const tooDeep = invalidRequest([{ path: "", reason: `nests deeper than ${maxDepth} levels, the limit for JSON bodies (fixed, no setting)` }])

export const tooLarge = (limitBytes: number) => ({
  code: "PAYLOAD_TOO_LARGE" as const,
  message: `the body is larger than ${limitBytes} bytes, the limit for request bodies (setting SVC_MAX_BODY_BYTES)`
})

export const notText = invalidRequest([{ path: "", reason: "is not UTF-8" }])

export const overloaded = (error: { readonly message: string; readonly retryAfterSecs: number }) => ({
  code: "OVERLOADED" as const, message: error.message, retryAfterSecs: error.retryAfterSecs
})

export const fromBody = (error: BodyRefused, limitBytes: number) => (error.reason === "too large" ? tooLarge(limitBytes) : error.reason === "not utf-8" ? notText : invalidRequest([{ path: "", reason: "ended early" }]))

const internal: WireError = { code: "INTERNAL", message: "a fault of the service itself; its log says more" }

/** By tag; every error a service of this room can fail with. */
const mapping = {
  Overloaded: overloaded,
  SequenceGap: (error: SequenceGap) => ({ code: "SEQUENCE_GAP" as const, message: error.message, details: { expected: error.expected } }),
  StaleEpoch: (error: StaleEpoch) => ({ code: "STALE_EPOCH" as const, message: error.message }),
  StoreFailed: (error: StoreFailed) => ({ code: "STORE_FAILED" as const, message: error.message }),
  QueryRefused: (error: QueryRefused) => ({ code: "INVALID_QUERY" as const, message: error.message, details: { line: error.line, column: error.column } }),
  ViewNotFound: (error: ViewNotFound) => ({ code: "VIEW_NOT_FOUND" as const, message: `no view is registered under ${JSON.stringify(error.id.slice(0, 200))}` })
}

export type World = Overloaded | SequenceGap | StaleEpoch | StoreFailed | QueryRefused | ViewNotFound
type Mapped<E extends World> = E extends World ? ReturnType<(typeof mapping)[E["_tag"]]> : never

/** The wire's word for a service's error. */
export const fromWorld = <E extends World>(error: E): Mapped<E> => (mapping[error._tag] as unknown as (error: E) => Mapped<E>)(error)

/** Handlers end with this: service errors become declared ones. */
export const mapped = <A, E extends World, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Mapped<E>, R> => Effect.mapError(effect, fromWorld)

/** The exact body and the headers that belong to the code. */
export const toAnswer = (error: WireError & { readonly retryAfterSecs?: number }): Answer => {
  const { code, details, message } = error
  const body = JSON.stringify(details === undefined ? { code, message } : { code, message, details })
  const status = statusOf[code]
  if (code === "UNAUTHORIZED") return { status, body, headers: { "www-authenticate": "Bearer" } }
  if (code === "OVERLOADED") return { status, body, headers: { "retry-after": String(Math.max(1, Math.ceil(error.retryAfterSecs ?? 1))) } }
  return { status, body }
}

const respond = (answer: Answer): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(answer.body, { status: answer.status, contentType: "application/json", headers: answer.headers ?? {} })

/** A response of ours that breaks its own schema fails like a malformed request; only its message tells (facts: HttpApi). */
const isOurResponse = (error: HttpApiError.HttpApiDecodeError): boolean => error.message.startsWith("(<declaration schema> <->")

const cut = (reason: string): string => (reason.length > 300 ? `${reason.slice(0, 300)}…` : reason)

const dotted = (path: ReadonlyArray<PropertyKey>): string => path.map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`)).join("")

/** One fault a place: of the members of a union (a value, null, absent) the first is what the client meant. */
const faultsOf = (error: HttpApiError.HttpApiDecodeError): ReadonlyArray<{ readonly path: string; readonly reason: string }> => {
  const byPath = new Map<string, string>()
  for (const issue of error.issues) {
    const path = dotted(issue.path)
    if (!byPath.has(path) && byPath.size < 100) byPath.set(path, path === "" ? "must be a JSON object" : cut(issue.message))
  }
  return [...byPath].map(([path, reason]) => ({ path, reason }))
}

const decodable = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** `allow` answers the methods a path knows, in upper case. */
const noRoute = (request: HttpServerRequest.HttpServerRequest, allow: (path: string) => ReadonlyArray<string>): Answer => {
  const path = request.url.split("?", 1)[0] ?? ""
  if (!decodable(path)) return toAnswer({ code: "NOT_FOUND", message: `${request.method} ${cut(path)}: the path is not valid percent-encoding` })
  const methods = allow(path)
  const takes = methods.length === 0 ? "no such route; GET /openapi.json lists them" : `this path takes ${methods.join(", ")}`
  const answer = toAnswer({ code: "NOT_FOUND", message: `${request.method} ${cut(path)}: ${takes}` })
  return methods.length === 0 ? answer : { ...answer, headers: { allow: methods.join(", ") } }
}

/** Last resort of every route: whatever failed, the client gets JSON with a code; defects are logged and not shown. */
export const answerCause = (cause: Cause.Cause<unknown>, allow: (path: string) => ReadonlyArray<string>): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
  const failure = Cause.failureOption(cause)
  const error = failure._tag === "Some" ? failure.value : undefined
  if (isWireError(error)) return Effect.succeed(respond(toAnswer(error)))
  if (error instanceof HttpApiError.HttpApiDecodeError && !isOurResponse(error)) {
    return Effect.succeed(respond(toAnswer(invalidRequest(faultsOf(error)))))
  }
  if (error instanceof HttpServerError.RouteNotFound) return Effect.succeed(respond(noRoute(error.request, allow)))
  return Effect.as(Effect.logError("a request met a fault of the service itself", cause), respond(toAnswer(internal)))
}
