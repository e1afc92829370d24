/**
 * What the scheduler's services can fail with, before it is said on the wire.
 */
import { Data } from "effect"

/** A queue of ours is full; the message names the limit, its value and the setting. */
export class Overloaded extends Data.TaggedError("Overloaded")<{
  readonly message: string
  readonly retryAfterSecs: number
}> {}

/** Log or replica did not take a change; nothing was delivered. */
export class ReplicaFailed extends Data.TaggedError("ReplicaFailed")<{ readonly message: string }> {}

/** Another scheduler leads now, or may; whether the change was taken is not known here. */
export class NotLeader extends Data.TaggedError("NotLeader")<{ readonly message: string }> {}
