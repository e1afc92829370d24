/**
 * Errors of the scheduler's services; `HttpErrors.ts` maps them to the wire.
 */
import { Data } from "effect"

/** A queue is full; the message names the limit, its value and the setting. */
export class Overloaded extends Data.TaggedError("Overloaded")<{
  readonly message: string
  readonly retryAfterSecs: number
}> {}

/** The log or the replica refused a change; no SSP got it. */
export class ReplicaFailed extends Data.TaggedError("ReplicaFailed")<{ readonly message: string }> {}

/** Another scheduler leads now, or may; the change may or may not have been logged. */
export class NotLeader extends Data.TaggedError("NotLeader")<{ readonly message: string }> {}
