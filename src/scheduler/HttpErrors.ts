/**
 * Error codes of the scheduler on the wire (D6), all in this file: of its services' errors, and of the pool's refusals.
 *
 * Refusals of the pool are replies, not errors of a service; here both become the same kind of answer.
 */
import type { Reply } from "../core/cluster/messages.ts"
import * as State from "../core/cluster/state.ts"
import { isoOf } from "../core/view/viewTimes.ts"
import { invalidRequest, overloaded } from "../node/http/answers.ts"
import type { NotLeader, Overloaded, ReplicaFailed } from "./errors.ts"

/** 401 for a request without an accepted secret. */
export const unauthorized = {
  code: "UNAUTHORIZED" as const,
  message:
    "this scheduler asks for `Authorization: Bearer <secret>` (settings SVC_SCHEDULER_AUTH_SECRET and SVC_AUTH_SECRETS)"
}

/** 401 of view routes, which need a secret or token at a scheduler without one too. */
export const unauthorizedView = {
  code: "UNAUTHORIZED" as const,
  message:
    "this asks for `Authorization: Bearer <token of POST /view/token>` or a secret (settings SVC_SCHEDULER_AUTH_SECRET and SVC_AUTH_SECRETS, or SVC_AUTH_SECRET where neither is set)"
}

/** 503 while the replica is being cloned. */
export const cloning = {
  code: "SCHEDULER_CLONING" as const,
  message: "this scheduler still takes its copy of the database; try again when /readyz answers 200"
}

/** Names the first ready SSP that refuses the scheduler's secret, to append to a message; empty if none does. */
const secretFaults = (state: State.State): string =>
  State.ready(state)
    .flatMap(({ refusesSecret, ssp }) => (refusesSecret ? [`: ${State.secretFault(ssp)}`] : []))
    .slice(0, 1)
    .join("")

/** 503 because no SSP is ready. `of`: names the SSP that is needed; empty if any would do. */
export const noSsp = (state: State.State, of = "") => ({
  code: "NO_SSP_AVAILABLE" as const,
  message: `no SSP is ready to take it${of}; see /info${secretFaults(state)}`
})

export const viewNotFound = (id: string) => ({
  code: "VIEW_NOT_FOUND" as const,
  message: `no view is registered under ${JSON.stringify(id.slice(0, 200))}`
})

export const viewUnplaced = (id: string, state: State.State) => ({
  code: "NO_SSP_AVAILABLE" as const,
  message: `no SSP has the view ${JSON.stringify(id.slice(0, 200))} now; it waits for one that is ready, see /info${secretFaults(state)}`
})

export const viewQuarantined = (id: string, { at, ends }: { readonly at: number; readonly ends: number }) => ({
  code: "VIEW_QUARANTINED" as const,
  message: `the query of view ${JSON.stringify(id.slice(0, 200))} is set aside: ${ends} SSPs ended while they evaluated it; POST /view/free with the view's id lets it be evaluated again`,
  details: { ends, last: isoOf(at) }
})

export const jobNotFound = (id: string) => ({
  code: "JOB_NOT_FOUND" as const,
  message: `there is no job ${JSON.stringify(id.slice(0, 200))} in a job table of this cluster`
})

export const unreachable = ({ message }: { readonly message: string }) => ({
  code: "SSP_UNREACHABLE" as const,
  message
})

export const notRegistered = (ssp: string) => ({
  code: "SSP_NOT_REGISTERED" as const,
  message: `no SSP is registered as ${JSON.stringify(ssp.slice(0, 200))}; it must register`
})

/** 409 for an SSP that must bootstrap again. */
export const bufferOverflow = {
  code: "BUFFER_OVERFLOW" as const,
  message: "this SSP cannot go on from where it stands; it must bootstrap again through a new registration"
}

export const fenced = (url: string) => ({
  code: "SSP_FENCED" as const,
  message: `a newer process${url === "" ? "" : ` at ${url}`} holds this SSP id; this one must stop`
})

/** 503 of a scheduler that does not lead, or may not lead any more. */
export const notLeader = {
  code: "NOT_LEADER" as const,
  message: "another scheduler leads this cluster now, or may; ask again, here or there"
}

export const ingestError = (error: NotLeader | Overloaded | ReplicaFailed) => {
  switch (error._tag) {
    case "Overloaded":
      return overloaded(error)
    case "NotLeader":
      return notLeader
    case "ReplicaFailed":
      return { code: "REPLICA_FAILED" as const, message: error.message }
  }
}

export const poolOverloaded = (reply: Reply & { readonly kind: "overloaded" }) =>
  overloaded({
    message: `${reply.reason}; try again later`,
    retryAfterSecs: Math.max(1, Math.ceil(reply.retryAfterMs / 1000))
  })

interface Fault {
  readonly path: string
  readonly reason: string
}

const isFault = (u: unknown): u is Fault =>
  typeof u === "object" &&
  u !== null &&
  "path" in u &&
  typeof u.path === "string" &&
  "reason" in u &&
  typeof u.reason === "string"

const isPlace = (u: unknown): u is { readonly line: number; readonly column: number } =>
  typeof u === "object" &&
  u !== null &&
  "line" in u &&
  Number.isInteger(u.line) &&
  "column" in u &&
  Number.isInteger(u.column)

/** The 400 of an SSP, passed on (D31): with its code if this contract has it, else as a malformed request. */
export const passedOnRefusal = (answer: unknown) => {
  const { code, details, message } =
    typeof answer === "object" && answer !== null
      ? (answer as { readonly code?: unknown; readonly message?: unknown; readonly details?: unknown })
      : {}
  const words = typeof message === "string" && message !== "" ? message : "the SSP refuses the registration"
  if (code === "INVALID_QUERY" && isPlace(details))
    return { code: "INVALID_QUERY" as const, message: words, details: { line: details.line, column: details.column } }
  const faults = Array.isArray(details) ? details.filter(isFault).map(({ path, reason }) => ({ path, reason })) : []
  return { ...invalidRequest(faults.length > 0 ? faults : [{ path: "", reason: words }]), message: words }
}

/** Throws for a reply that the pool never gives to this command. */
export const unexpected = (reply: Reply): never => {
  throw new Error(`broken invariant: the pool replied ${reply.kind}`)
}
