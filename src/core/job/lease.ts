/**
 * Leases: which runner may call for a job, until when, and what happens to a job whose runner is gone (D35, D39).
 *
 * A lease outlives the longest call, so that the holder of a lease that has expired is no longer calling; it is
 * renewed while its holder waits or works. A restart honours the lease that the same holder had before, because nothing
 * says that the process before it has ended; only a store that one process alone can have open says so
 * (`ssp/jobs/recordJobs.ts`).
 */
import type { JobStatus } from "./status.ts"

export interface Holder {
  readonly holder: string
  /** Drawn at every start: a restarted process is another holder. */
  readonly incarnation: string
}

export interface Lease extends Holder {
  readonly untilMs: number
}

/** Longer than the longest call by this much (D35). */
const graceMs = 10_000

export const leaseMs = (timeoutMs: number): number => timeoutMs + graceMs

export const isHeldBy = (lease: Lease | undefined, { holder, incarnation }: Holder): boolean =>
  lease !== undefined && lease.holder === holder && lease.incarnation === incarnation

export const isLive = (lease: Lease | undefined, nowMs: number): lease is Lease =>
  lease !== undefined && lease.untilMs > nowMs

/** `claim`: free to take. `leave`: another runner holds it. `over`: nothing is left to do. */
type Claim = "claim" | "leave" | "over"

/** Whether `by` may take a job that stands so. One's own live lease may be taken again: that is how a retry begins. */
export const claim = (status: JobStatus, lease: Lease | undefined, by: Holder, nowMs: number): Claim => {
  if (status === "success" || status === "failed") return "over"
  return isLive(lease, nowMs) && !isHeldBy(lease, by) ? "leave" : "claim"
}

/** When to renew: half of the time is gone. */
export const isDue = (untilMs: number, leaseMs: number, nowMs: number): boolean => untilMs - nowMs <= leaseMs / 2
