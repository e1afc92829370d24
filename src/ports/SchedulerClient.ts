/**
 * The scheduler as an SSP sees it: registration, heartbeats, goodbye, and the snapshot behind the proxy.
 *
 * The layer over HTTP has no schedule of its own; the caller decides when to try again. Answers are told apart by
 * status, and by the code in the body only if the specification has no status for them, so that a scheduler without
 * extensions works too.
 */
import { Context, Data, Effect, Layer, type Option, type Scope } from "effect"
import type { Obj } from "../core/surql/values/value.ts"
import type { Heartbeat, SspApplied, SspDeregistration, SspRegistered, SspRegistration } from "../protocol/wire.ts"

/**
 * `cloning`: there, but has no snapshot yet (no failure, D18); `overloaded`: it asks to come back later; `notLeader`:
 * the same, because no scheduler of its log leads now (D60); `unknown` (404), `conflict` (409); `fenced`: a newer
 * process has this id; `refused`: any other client error; `unreachable`: no answer, a server error, or an answer that
 * is not the contract's.
 */
export class SchedulerError extends Data.TaggedError("SchedulerError")<{
  readonly reason:
    | "cloning"
    | "overloaded"
    | "notLeader"
    | "unknown"
    | "conflict"
    | "fenced"
    | "refused"
    | "unreachable"
  readonly message: string
  /** Delay that the scheduler asked for, in milliseconds. */
  readonly retryAfterMs?: number
  /** HTTP status, set only where callers depend on it. */
  readonly status?: 400 | 500
}> {}

/**
 * An answer of `/proxy/query`: its text, as JSON or (`exact`) in the lossless encoding; and the position it was read
 * at, if the scheduler says so.
 */
export interface ProxyAnswer {
  readonly seq: number | undefined
  readonly exact: boolean
  readonly text: string
}

/** Tables of the log to follow by the feed (D61); `*` for all. */
export interface FeedAsk {
  readonly registration: number
  readonly after: number
  readonly tables: ReadonlyArray<string>
}

/**
 * Text of an endless answer: each run waits for all text that has come since the last. Fails with `None` at the end.
 * Only one fiber may wait at a time.
 */
export type TextPieces<E> = Effect.Effect<string, Option.Option<E>>

/** One long request that carries acknowledgements, positions that this SSP has applied (D61). */
export interface AckRequest {
  /** Sends an acknowledgement, which has no answer; false if the request is not admitted yet, or is over. */
  readonly send: (applied: typeof SspApplied.Type) => boolean
  /** Asks the scheduler to confirm that it has read every acknowledgement; ends the request. */
  readonly end: () => void
  /** Aborts the request; no callback is called afterwards. */
  readonly close: () => void
}

/**
 * End of such a request: `refused`, never admitted; `cut`, the last acknowledgements may be unread; `read`, all were
 * read.
 */
export type AckRequestEnd = "refused" | "cut" | "read"

/** Calls to the scheduler; each fails with a {@link SchedulerError}. */
export interface SchedulerClientShape {
  /** Registers; answers the position of the snapshot frozen for this SSP. */
  readonly register: (
    registration: typeof SspRegistration.Type
  ) => Effect.Effect<typeof SspRegistered.Type, SchedulerError>
  readonly heartbeat: (heartbeat: typeof Heartbeat.Type) => Effect.Effect<void, SchedulerError>
  /** Extension (D31): leaves the pool. */
  readonly deregister: (goodbye: typeof SspDeregistration.Type) => Effect.Effect<void, SchedulerError>
  readonly signin: Effect.Effect<void, SchedulerError>
  readonly use: Effect.Effect<void, SchedulerError>
  /** Forwards a body of `/ingest`; absent if this client cannot. */
  readonly ingest?: (body: string) => Effect.Effect<void, SchedulerError>
  /** Runs a query on the snapshot. `params` are an extension (D20), only for a scheduler that answers exactly. */
  readonly query: (query: string, params?: Obj) => Effect.Effect<ProxyAnswer, SchedulerError>
  /**
   * Extension (D61): the text of a feed, as long as the scope is open. It ends with the connection, and fails after a
   * long silence. Absent, together with `applied`, if this client cannot follow: then the scheduler sends events.
   *
   * No `Stream`: each commit of the log is a piece, and a stream costs more per piece than the piece itself.
   */
  readonly feed?: (asked: FeedAsk) => Effect.Effect<TextPieces<SchedulerError>, SchedulerError, Scope.Scope>
  /** Extension (D61): one acknowledgement as a request of its own. */
  readonly applied?: (applied: typeof SspApplied.Type) => Effect.Effect<void, SchedulerError>
  /** Opens a request for many acknowledgements; `over` is never called before `words` returns. Absent: `applied`. */
  readonly openAcks?: (over: (how: AckRequestEnd) => void) => AckRequest
}

const none = Effect.fail(
  new SchedulerError({ reason: "unreachable", message: "no scheduler is configured (setting SCHEDULER_URL)" })
)

/** Calls to the scheduler; `layerNone` for a standalone SSP. */
export class SchedulerClient extends Context.Tag("ports/SchedulerClient")<SchedulerClient, SchedulerClientShape>() {
  /** For a standalone SSP, which never calls it. */
  static readonly layerNone: Layer.Layer<SchedulerClient> = Layer.succeed(SchedulerClient, {
    register: () => none,
    heartbeat: () => none,
    deregister: () => none,
    signin: none,
    use: none,
    query: () => none
  })
}
