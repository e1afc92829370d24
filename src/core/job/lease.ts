/**
 * Leases: which runner may call for a job, until when, and what happens to a job whose runner is gone (D35, D39).
 *
 * A lease outlives the longest call, so that the holder of a lease that has expired is no longer calling; it is renewed
 * while its holder waits or works. After a restart the holder honours its own earlier lease, because the earlier
 * process may still run; only a store that a single process can open proves that it has ended
 * (`ssp/jobs/recordJobs.ts`).
 */
import type { JobStatus } from "./status.ts"

/** A runner: its name, and the start of its process. */
export interface Holder {
  readonly holder: string
  /** Drawn at every start: a restarted process is another holder. */
  readonly incarnation: string
}

/** The right of a holder to call for a job, until a time. */
export interface Lease extends Holder {
  readonly untilMs: number
}

/** Milliseconds by which a lease is longer than the longest call (D35). */
const graceMs = 10_000

/** Length in milliseconds of a lease for a job whose calls time out after `timeoutMs`. */
export const leaseMs = (timeoutMs: number): number => timeoutMs + graceMs

export const isHeldBy = (lease: Lease | undefined, { holder, incarnation }: Holder): boolean =>
  lease !== undefined && lease.holder === holder && lease.incarnation === incarnation

export const isLive = (lease: Lease | undefined, nowMs: number): lease is Lease =>
  lease !== undefined && lease.untilMs > nowMs

/** `claim`: free to take. `leave`: another runner holds it. `over`: nothing is left to do. */
type Claim = "claim" | "leave" | "over"

/** Whether `by` may claim a job in this state. A runner may claim its own live lease again: a retry begins so. */
export const claim = (status: JobStatus, lease: Lease | undefined, by: Holder, nowMs: number): Claim => {
  if (status === "success" || status === "failed") return "over"
  return isLive(lease, nowMs) && !isHeldBy(lease, by) ? "leave" : "claim"
}

/** Whether to renew: half of the time is over. */
export const isRenewalDue = (untilMs: number, leaseMs: number, nowMs: number): boolean => untilMs - nowMs <= leaseMs / 2
