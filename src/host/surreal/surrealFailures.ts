/**
 * Classifies failures of the database, from the many forms of the SDK, its transports and its engines.
 *
 * Only here, because the rest of the service decides by `reason` alone. Messages pass through as the database words
 * them; credentials are in none of them.
 */
import {
  CallTerminatedError,
  ConnectionUnavailableError,
  HttpConnectionError,
  ServerError,
  UnexpectedConnectionError
} from "surrealdb"
import { Unsendable } from "../../core/surql/values/cbor/cborWriter.ts"
import { SurrealError } from "../../ports/SurrealClient.ts"

/** The innermost message says most: `connect ECONNREFUSED 127.0.0.1:8000`. */
const messageOf = (error: unknown): string => {
  let inner = error
  for (
    let depth = 0;
    depth < 6 &&
    typeof inner === "object" &&
    inner !== null &&
    "cause" in inner &&
    inner.cause !== undefined &&
    inner.cause !== null;
    depth++
  )
    inner = inner.cause
  if (inner instanceof AggregateError && inner.message === "") inner = inner.errors[0]
  const text = inner instanceof Error && inner.message !== "" ? inner.message : String(inner)
  return text.split("\n").slice(0, 6).join("\n")
}

const authReasons =
  /token has expired|session has expired|Anonymous access not allowed|problem with authentication|InvalidToken|InvalidAuth/i

const ofServer = (error: ServerError): SurrealError["reason"] => {
  if (/can be retried/.test(error.message)) return "conflict"
  if (error.kind === "NotFound" && /^The table '.*' does not exist$/s.test(error.message)) return "missing"
  return authReasons.test(error.message) ? "unauthorized" : error.kind === "NotAllowed" ? "forbidden" : "refused"
}

/** Failures to open an embedded database. */
const ofFile = (message: string): SurrealError["reason"] =>
  /already locked|lock hold by current process|LOCK/i.test(message)
    ? "locked"
    : /corrupt|checksum|invalid (?:magic|header|format)|unable to load/i.test(message)
      ? "damaged"
      : "unreachable"

const refusedConnection = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/

export const failureOf = (error: unknown): SurrealError => {
  if (error instanceof SurrealError) return error
  const message = messageOf(error)
  if (error instanceof ServerError)
    return new SurrealError({ reason: ofServer(error), message: error.message, uncertain: false, cause: error })
  if (error instanceof HttpConnectionError) {
    const unauthorized = error.status === 401 || error.status === 403
    return new SurrealError({
      reason: unauthorized ? "unauthorized" : error.status >= 500 ? "unreachable" : "refused",
      message: error.message,
      uncertain: error.status >= 500,
      cause: error
    })
  }
  if (error instanceof CallTerminatedError)
    return new SurrealError({
      reason: "unreachable",
      message: "the connection broke before the answer",
      uncertain: true,
      cause: error
    })
  if (error instanceof ConnectionUnavailableError)
    return new SurrealError({
      reason: "unreachable",
      message: "there is no connection",
      uncertain: false,
      cause: error
    })
  if (error instanceof UnexpectedConnectionError)
    return new SurrealError({ reason: "unreachable", message, uncertain: false, cause: error })
  if (error instanceof DOMException && error.name === "TimeoutError")
    return new SurrealError({ reason: "timeout", message: "no answer in time", uncertain: true, cause: error })
  // Raised by the engine in this process for operations it does not support; over a wire there is no such error.
  const refusedHere = typeof error === "object" && error !== null && "code" in error && error.code === "GenericFailure"
  if (error instanceof Unsendable || refusedHere)
    return new SurrealError({ reason: "refused", message, uncertain: false, cause: error })
  // The remaining failure over HTTP is a fetch that failed: refused outright, or at an unknown point.
  return new SurrealError({ reason: "unreachable", message, uncertain: !refusedConnection.test(message), cause: error })
}

/** Failures to open the database inside the process, whose engine gives nothing but a text. */
export const openFailureOf = (error: unknown): SurrealError => {
  const message = messageOf(error)
  return new SurrealError({ reason: ofFile(message), message, uncertain: false, cause: error })
}
