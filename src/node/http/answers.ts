/**
 * Error answers of both servers: from a code to body and headers, and from a failure to a code (D6).
 *
 * In one place, so that errors of both servers look alike. Errors of one of them alone are mapped in its own
 * `HttpErrors.ts`.
 */
import * as HttpServerError from "@effect/platform/HttpServerError"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Effect, Option, ParseResult, Schema } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import * as MetricText from "../../core/telemetry/metricText.ts"
import type { Answer, NoText } from "../../ports/Front.ts"
import { isWireError, statusOf, type WireError } from "../../protocol/errors.ts"

export const invalidRequest = (details: ReadonlyArray<{ readonly path: string; readonly reason: string }>) => {
  const [first] = details
  const message =
    first !== undefined && details.length === 1
      ? `${first.path === "" ? "body" : first.path} ${first.reason}`
      : `${details.length} faults in the request, see details`
  return { code: "INVALID_REQUEST" as const, message, details }
}

export const tooDeep = invalidRequest([
  { path: "", reason: `nests deeper than ${JsonText.maxDepth} levels, the limit for JSON bodies (fixed, no setting)` }
])

const tooLarge = (limitBytes: number) => ({
  code: "PAYLOAD_TOO_LARGE" as const,
  message: `the body is larger than ${limitBytes} bytes, the limit for request bodies (setting SVC_MAX_BODY_BYTES)`
})

const notText = invalidRequest([{ path: "", reason: "is not UTF-8" }])

export const overloaded = (error: { readonly message: string; readonly retryAfterSecs: number }) => ({
  code: "OVERLOADED" as const,
  message: error.message,
  retryAfterSecs: error.retryAfterSecs
})

export const fromBody = (error: NoText, limitBytes: number) => {
  if (error.reason === "overloaded") return overloaded({ message: error.message ?? "", retryAfterSecs: 1 })
  return error.reason === "too large"
    ? tooLarge(limitBytes)
    : error.reason === "not utf-8"
      ? notText
      : invalidRequest([{ path: "", reason: "ended early" }])
}

/** Body, status and headers of an error. */
export const toAnswer = (error: WireError & { readonly retryAfterSecs?: number }): Answer => {
  const { code, details, message } = error
  const body = JSON.stringify(details === undefined ? { code, message } : { code, message, details })
  const status = statusOf[code]
  if (code === "UNAUTHORIZED") return { status, body, headers: { "www-authenticate": "Bearer" } }
  if (code === "SCOPE_REQUIRED")
    return { status, body, headers: { "www-authenticate": 'Bearer error="insufficient_scope"' } }
  if (code === "OVERLOADED" || code === "TABLES_JOINING" || code === "RATE_LIMITED" || code === "NOT_LEADER")
    return { status, body, headers: { "retry-after": String(Math.max(1, Math.ceil(error.retryAfterSecs ?? 1))) } }
  return { status, body }
}

/** Answer to a client for a fault of the node's own. */
export const internal = toAnswer({ code: "INTERNAL", message: "a fault of the service itself; its log says more" })

/** A value as JSON whose integers keep all their digits. */
export const json = (value: unknown): Answer => ({ status: 200, body: JsonText.write(value) })

/** A value that is plain JSON. */
export const plainJson = (value: unknown): Answer => ({ status: 200, body: JSON.stringify(value) })

/** Figures in the Prometheus text format. */
export const figures = (families: Parameters<typeof MetricText.render>[0]): Answer => ({
  status: 200,
  headers: { "content-type": MetricText.contentType },
  body: MetricText.render(families)
})

/** {@link json} for an endpoint's own schema; a value that breaks it is a defect. */
export const jsonOf = <A, I>(schema: Schema.Schema<A, I>): ((value: A) => Effect.Effect<Answer>) => {
  const encode = Schema.encodeSync(schema)
  return (value) => Effect.sync(() => json(encode(value)))
}

export const respond = ({ body, headers = {}, status }: Answer): HttpServerResponse.HttpServerResponse => {
  const { "content-type": contentType = "application/json", ...others } = headers
  return HttpServerResponse.text(body, { status, contentType, headers: others })
}

const cut = (reason: string): string => (reason.length > 300 ? `${reason.slice(0, 300)}…` : reason)

const dotted = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`)).join("")

/** One fault for each path: of a union's members (a value, null, absent) the first is what the client meant. */
const faultsOf = (error: ParseResult.ParseError): ReadonlyArray<{ readonly path: string; readonly reason: string }> => {
  const byPath = new Map<string, string>()
  for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
    const path = dotted(issue.path)
    if (!byPath.has(path) && byPath.size < 100)
      byPath.set(path, path === "" ? "must be a JSON object" : cut(issue.message))
  }
  return [...byPath].map(([path, reason]) => ({ path, reason }))
}

/** Answer to a request that a schema of the contract refuses. */
export const undecodable = (error: ParseResult.ParseError) => invalidRequest(faultsOf(error))

const decodable = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** `allow` answers the methods of a path, in upper case. */
const noRoute = (
  request: HttpServerRequest.HttpServerRequest,
  allow: (path: string) => ReadonlyArray<string>
): Answer => {
  const path = request.url.split("?", 1)[0] ?? ""
  if (!decodable(path))
    return toAnswer({
      code: "NOT_FOUND",
      message: `${request.method} ${cut(path)}: the path is not valid percent-encoding`
    })
  const methods = allow(path)
  const takes =
    methods.length === 0 ? "no such route; GET /openapi.json lists them" : `this path takes ${methods.join(", ")}`
  const answer = toAnswer({ code: "NOT_FOUND", message: `${request.method} ${cut(path)}: ${takes}` })
  return methods.length === 0 ? answer : { ...answer, headers: { allow: methods.join(", ") } }
}

/** The answer to a declared failure; undefined for any other, which is a fault of the service. */
export const ofFailure = (cause: Cause.Cause<unknown>): Answer | undefined => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return isWireError(error) ? toAnswer(error) : undefined
}

/** Logs a fault of the service, which clients are not told. */
export const logFault = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("a request met a fault of the service itself", cause)

/** Last resort of the routes beside the contract: any failure is answered as JSON with a code. */
export const answerCause = (
  cause: Cause.Cause<unknown>,
  allow: (path: string) => ReadonlyArray<string>
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
  const answer = ofFailure(cause)
  if (answer !== undefined) return Effect.succeed(respond(answer))
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error instanceof HttpServerError.RouteNotFound) return Effect.succeed(respond(noRoute(error.request, allow)))
  return Effect.as(logFault(cause), respond(internal))
}
