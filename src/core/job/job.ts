/**
 * A job as its record has it (specification, job record), read from plain JSON.
 *
 * Lenient, because a job with an odd record must still end: a missing field takes the table's default, and an invalid
 * path is refused when the call is made, with a reason in `errors`.
 */
import { isCount } from "../typeGuards.ts"
import { isStatus, type JobStatus } from "./status.ts"

export type Strategy = "linear" | "exponential"

/** One entry of `errors` (D38). `attempt` 0: an operator's action; `code` 0: there was no HTTP answer. */
export interface JobError {
  readonly attempt: number
  readonly code: number
  readonly reason: string
  /** RFC 3339. */
  readonly at: string
  /** RFC 3339: the job is not called again before this; absent if no attempt follows. */
  readonly retry_at?: string
}

/** A job as its record states it. */
export interface Job {
  /** Text of the record's id. */
  readonly id: string
  readonly table: string
  readonly path: string
  /** JSON; undefined if the record has none. */
  readonly payload: unknown
  readonly status: JobStatus
  readonly maxRetries: number
  readonly strategy: Strategy
  /** Entries of the record; foreign ones are kept. */
  readonly errors: ReadonlyArray<unknown>
  /** W3C trace context to pass on, if the record has one (extension). */
  readonly traceparent: string | undefined
}

export const defaultMaxRetries = 3
/** Most characters of a reason in a job's record. */
export const maxReason = 2000

/** A reason for the record: at most {@link maxReason} characters, never cut inside a surrogate pair. */
export const cutReason = (text: string): string => {
  if (text.length <= maxReason) return text
  const end = /[\uD800-\uDBFF]/.test(text[maxReason - 2]!) ? maxReason - 2 : maxReason - 1
  return `${text.slice(0, end)}…`
}

export const jobError = (attempt: number, code: number, reason: string, nowMs: number): JobError => ({
  attempt,
  code,
  reason: cutReason(reason),
  at: new Date(nowMs).toISOString()
})

/** `version-trace-parent-flags`, as the recommendation writes it. */
const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

export const traceparentOf = (value: unknown): string | undefined =>
  typeof value === "string" && traceparentForm.test(value) ? value : undefined

/** Reads a job; undefined if the record's `status` is no job status, or missing. */
export const read = (id: string, table: string, record: { readonly [field: string]: unknown }): Job | undefined => {
  const { errors, max_retries: maxRetries, path, payload, retry_strategy: strategy, status, traceparent } = record
  if (!isStatus(status)) return undefined
  return {
    id,
    table,
    status,
    payload,
    path: typeof path === "string" ? path : "",
    maxRetries: isCount(maxRetries) ? maxRetries : defaultMaxRetries,
    strategy: strategy === "exponential" ? "exponential" : "linear",
    errors: Array.isArray(errors) ? errors : [],
    traceparent: traceparentOf(traceparent)
  }
}

const attemptOf = (entry: unknown): number | undefined => {
  const attempt = typeof entry === "object" && entry !== null && "attempt" in entry ? entry.attempt : undefined
  return isCount(attempt) ? attempt : undefined
}

/**
 * Failed attempts since an operator last asked for a retry: counted in `errors`, because the column `retries` resets on
 * every write.
 */
export const failures = (errors: ReadonlyArray<unknown>): number => {
  let count = 0
  for (const entry of errors) {
    const attempt = attemptOf(entry)
    if (attempt === 0) count = 0
    else if (attempt !== undefined) count++
  }
  return count
}
