/**
 * Whether and when a job is called again (D38).
 *
 * Delay before retry n (1, 2, ...): linear base × n, exponential base × 2^(n-1), capped, then ±10 % by a number the
 * caller draws; a backend's `Retry-After` may only make it longer. O(1).
 */
import { failures, type Job, type JobError, jobError, type Strategy } from "./job.ts"
import type { Outcome } from "./outcome.ts"

const maxDelayMs = 300_000
const maxRetryAfterMs = 3_600_000
/** Share of the delay that is random, to either side. */
const jitterShare = 0.1

/** Limits of a job's retries. */
export interface Policy {
  readonly baseMs: number
  /** Upper limit for a job's `max_retries`. */
  readonly maxRetries: number
}

/** Delay before retry `n` (from 1) in milliseconds. `jitter`: -1 <= x <= 1. */
export const delayMs = (strategy: Strategy, n: number, baseMs: number, jitter: number): number => {
  const raw = strategy === "exponential" ? baseMs * 2 ** Math.min(n - 1, 60) : baseMs * n
  return Math.round(Math.min(maxDelayMs, raw) * (1 + jitterShare * jitter))
}

export type Decision =
  | { readonly kind: "success" }
  | { readonly kind: "retry"; readonly delayMs: number; readonly error: JobError }
  | { readonly kind: "failed"; readonly error: JobError }

export interface Draw {
  readonly nowMs: number
  readonly jitter: number
}

/** The next state of a job after an attempt, by the attempt's outcome and the failures before. */
export const decide = (
  job: Pick<Job, "errors" | "maxRetries" | "strategy">,
  outcome: Outcome,
  policy: Policy,
  { jitter, nowMs }: Draw
): Decision => {
  if (outcome.kind === "success") return { kind: "success" }
  const attempt = failures(job.errors) + 1
  const error = jobError(attempt, outcome.code, outcome.reason, nowMs)
  if (outcome.kind === "final" || attempt > Math.min(job.maxRetries, policy.maxRetries))
    return { kind: "failed", error }
  const asked = Math.min(maxRetryAfterMs, outcome.retryAfterMs ?? 0)
  const wait = Math.max(asked, delayMs(job.strategy, attempt, policy.baseMs, jitter))
  return { kind: "retry", delayMs: wait, error: { ...error, retry_at: new Date(nowMs + wait).toISOString() } }
}

const momentOf = (entry: object, field: "at" | "retry_at"): number => {
  const text = (entry as { readonly [name: string]: unknown })[field]
  return typeof text === "string" ? Date.parse(text) : Number.NaN
}

/**
 * How long a runner that takes over the job waits before it calls: until `retry_at` of the last failed attempt. The
 * wait is the difference of two moments in the record, so a wrong clock here cannot make it longer.
 */
export const waitMs = (errors: ReadonlyArray<unknown>, nowMs: number): number => {
  const last = errors.at(-1)
  if (typeof last !== "object" || last === null) return 0
  const until = momentOf(last, "retry_at")
  const wait = Math.min(until - nowMs, until - momentOf(last, "at"), maxRetryAfterMs)
  return wait > 0 ? wait : 0
}
