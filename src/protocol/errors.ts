/**
 * Every error answer of both servers (D6): code, status, extra headers, and the exact body `{ code, message, details?
 * }`.
 *
 * Plain structs told apart by a literal `code`, not tagged error classes: HttpApi encodes errors through one union over
 * the whole API, and a class would put its `_tag` on the wire.
 */
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Schema } from "effect"
import { scopes } from "../core/access/scopes.ts"

const statuses = {
  SSP_NOT_READY: 503,
  SCHEDULER_CLONING: 503,
  NO_SSP_AVAILABLE: 503,
  OVERLOADED: 503,
  TABLES_JOINING: 503,
  NOT_LEADER: 503,
  UNAUTHORIZED: 401,
  SCOPE_REQUIRED: 403,
  FORBIDDEN: 403,
  MISDIRECTED_REQUEST: 421,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  INVALID_REQUEST: 400,
  INVALID_OPERATION: 400,
  INVALID_QUERY: 400,
  NOT_FOUND: 404,
  VIEW_NOT_FOUND: 404,
  SSP_NOT_REGISTERED: 404,
  JOB_NOT_FOUND: 404,
  STREAM_NOT_FOUND: 404,
  VIEW_QUARANTINED: 409,
  JOB_STATUS: 409,
  BUFFER_OVERFLOW: 409,
  SSP_FENCED: 409,
  SEQUENCE_GAP: 409,
  STALE_EPOCH: 409,
  PAYLOAD_TOO_LARGE: 413,
  SSP_UNREACHABLE: 502,
  REPLICA_FAILED: 500,
  QUERY_FAILED: 500,
  STORE_FAILED: 500,
  INTERNAL: 500
} as const

export type Code = keyof typeof statuses

/** HTTP status by code. */
export const statusOf: { readonly [C in Code]: (typeof statuses)[C] } = statuses

/** One fault of a request body: where (`record.id`, empty for the body itself) and the reason. */
export const Fault = Schema.Struct({ path: Schema.String, reason: Schema.String })

/** Place of a fault in a query; line and column from 1. */
export const Position = Schema.Struct({ line: Schema.Int, column: Schema.Int })

const plain = <const C extends Code>(code: C, description: string) =>
  Schema.Struct({ code: Schema.Literal(code), message: Schema.String }).annotations({
    ...HttpApiSchema.annotations({ status: statuses[code] }),
    identifier: code,
    description,
    examples: [{ code, message: description } as never]
  })

const detailed = <const C extends Code, A, I>(code: C, details: Schema.Schema<A, I>, description: string, example: A) =>
  Schema.Struct({ code: Schema.Literal(code), message: Schema.String, details }).annotations({
    ...HttpApiSchema.annotations({ status: statuses[code] }),
    identifier: code,
    description,
    examples: [{ code, message: description, details: example } as never]
  })

export const SspNotReady = plain("SSP_NOT_READY", "The SSP is not ready; see /health.")
export const SchedulerCloning = plain("SCHEDULER_CLONING", "The scheduler is still taking its copy of the database.")
export const NoSspAvailable = plain("NO_SSP_AVAILABLE", "No SSP is ready to take it.")
export const TablesJoining = plain(
  "TABLES_JOINING",
  "Records of tables that the view reads are on their way to this SSP (D61); ask it again after `Retry-After` seconds."
)
export const Overloaded = plain("OVERLOADED", "A queue or a limit is full; try again after `Retry-After` seconds.")
export const NotLeader = plain(
  "NOT_LEADER",
  "This scheduler does not lead its cluster, and cannot reach the one that does; ask another one, or again after `Retry-After` seconds (extension)."
)
export const Unauthorized = plain("UNAUTHORIZED", "The bearer secret is missing or wrong.")
export const ScopeRequired = detailed(
  "SCOPE_REQUIRED",
  Schema.Struct({ scope: Schema.Literal(...scopes) }),
  "The secret does not open this endpoint; `details` names the scope that does (extension).",
  { scope: "admin" as const }
)
export const Forbidden = plain(
  "FORBIDDEN",
  "A page of another origin, an address from outside at a server that asks for no secret, or an SSP that speaks for another (extension)."
)
export const MisdirectedRequest = plain(
  "MISDIRECTED_REQUEST",
  "A server that asks for no secret was asked under a name that may be somebody else's (extension)."
)
export const UnsupportedMediaType = plain(
  "UNSUPPORTED_MEDIA_TYPE",
  "A page sent a body that is not application/json (extension)."
)
export const RateLimited = plain(
  "RATE_LIMITED",
  "More requests from this address than the operator allows; try again after `Retry-After` seconds (extension)."
)
export const InvalidRequest = detailed(
  "INVALID_REQUEST",
  Schema.Array(Fault),
  "The request is malformed; one entry per fault.",
  [{ path: "record", reason: "must be an object" }]
)
export const InvalidOperation = detailed(
  "INVALID_OPERATION",
  Schema.Array(Fault),
  "`op` is none of CREATE, UPDATE, DELETE.",
  [{ path: "op", reason: "must be CREATE, UPDATE or DELETE" }]
)
export const InvalidQuery = detailed("INVALID_QUERY", Position, "The query does not parse or is not supported.", {
  line: 1,
  column: 10
})
export const NotFound = plain("NOT_FOUND", "No such route, or another method.")
export const ViewNotFound = plain("VIEW_NOT_FOUND", "No view is registered under this id.")
export const ViewQuarantined = detailed(
  "VIEW_QUARANTINED",
  Schema.Struct({ ends: Schema.Int, last: Schema.String }),
  "The query is set aside, because processes ended while they evaluated it; an operator can free it (extension).",
  { ends: 2, last: "2026-03-01T10:00:00.000Z" }
)
export const SspNotRegistered = plain("SSP_NOT_REGISTERED", "No SSP is registered under this id: register (again).")
export const BufferOverflow = plain(
  "BUFFER_OVERFLOW",
  "The SSP has fallen too far behind: bootstrap again through a new registration."
)
export const SspFenced = plain("SSP_FENCED", "A newer process holds this SSP id: this one must stop (extension).")
export const SequenceGap = detailed(
  "SEQUENCE_GAP",
  Schema.Struct({ expected: Schema.Int }),
  "Changes are missing before this one; nothing was applied (extension).",
  { expected: 42 }
)
export const StaleEpoch = plain(
  "STALE_EPOCH",
  "From an older scheduler start or another log; nothing was applied (extension)."
)
export const PayloadTooLarge = plain("PAYLOAD_TOO_LARGE", "The body is larger than the limit that the message names.")
export const ReplicaFailed = plain(
  "REPLICA_FAILED",
  "The log or the replica did not take the change; nothing was delivered."
)
export const QueryFailed = plain("QUERY_FAILED", "The query failed while it ran.")
export const StoreFailed = plain("STORE_FAILED", "The store refused a write; nothing was applied.")
export const JobNotFound = plain("JOB_NOT_FOUND", "No job of a job table has this id (extension).")
export const StreamNotFound = plain("STREAM_NOT_FOUND", "No stream of several views is open under this id (extension).")
export const JobStatus = detailed(
  "JOB_STATUS",
  Schema.Struct({ status: Schema.String }),
  "The job's status does not allow it (extension).",
  { status: "processing" }
)
export const SspUnreachable = plain("SSP_UNREACHABLE", "The SSP that has it could not be asked (extension).")
export const Internal = plain("INTERNAL", "A fault of the service itself; its log says more.")

/** Any error answer as data, before it becomes a response. */
export interface WireError {
  readonly code: Code
  readonly message: string
  readonly details?: unknown
}

/** Whether a failure is already an error answer. */
export const isWireError = (u: unknown): u is WireError =>
  typeof u === "object" &&
  u !== null &&
  "code" in u &&
  typeof u.code === "string" &&
  Object.hasOwn(statuses, u.code) &&
  "message" in u &&
  typeof u.message === "string"
