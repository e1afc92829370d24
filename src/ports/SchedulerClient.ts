/**
 * The scheduler as an SSP sees it: registration, heartbeats, goodbye, and the snapshot behind the proxy.
 *
 * The layer over HTTP has no schedule of its own; the caller decides when to try again. Answers are told apart by
 * status, and by the code in the body only where the specification has no status of its own: a scheduler that knows
 * nothing but the specification must do.
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
  readonly status?: 400
}> {}

/**
 * An answer of `/proxy/query`: its text, JSON or (`exact`) the encoding that loses nothing; the position it was read
 * at, where the scheduler says so.
 */
export interface ProxyAnswer {
  readonly seq: number | undefined
  readonly exact: boolean
  readonly text: string
}

/** Tables of the log to follow (D61); `*` for all. */
export interface FeedAsk {
  readonly registration: number
  readonly after: number
  readonly tables: ReadonlyArray<string>
}

/**
 * The text of an answer that goes on: each time all that has come since the last, at least a piece. Fails with `None`
 * where it ends. One fiber may wait for it.
 */
export type Pieces<E> = Effect.Effect<string, Option.Option<E>>

/** One request on which it is said again and again what is applied (D61). */
export interface AppliedWords {
  /** False: not on this request, which was not admitted yet or is over. Nothing answers a word that was said. */
  readonly say: (applied: typeof SspApplied.Type) => boolean
  /** Has the scheduler answer that it has read every word; the request is over then. */
  readonly end: () => void
  /** Ends it; no callback is called afterwards. */
  readonly close: () => void
}

/**
 * How such a request ended: `refused`, it was never admitted; `cut`, words that were said last may not have been read;
 * `read`, they were.
 */
export type WordsOver = "refused" | "cut" | "read"

export interface SchedulerClientShape {
  /** Answers the position of the snapshot frozen for this SSP. */
  readonly register: (
    registration: typeof SspRegistration.Type
  ) => Effect.Effect<typeof SspRegistered.Type, SchedulerError>
  readonly heartbeat: (heartbeat: typeof Heartbeat.Type) => Effect.Effect<void, SchedulerError>
  /** Extension (D31). */
  readonly deregister: (goodbye: typeof SspDeregistration.Type) => Effect.Effect<void, SchedulerError>
  readonly signin: Effect.Effect<void, SchedulerError>
  readonly use: Effect.Effect<void, SchedulerError>
  /** Hands on a body of `/ingest`; absent where this client cannot. */
  readonly ingest?: (body: string) => Effect.Effect<void, SchedulerError>
  /** Parameters are an extension (D20), and for a scheduler that answers exactly. */
  readonly query: (query: string, params?: Obj) => Effect.Effect<ProxyAnswer, SchedulerError>
  /**
   * Extension (D61): the text of a feed, for as long as the scope is open; it ends when the connection does, and fails
   * when nothing is heard on it for long. Absent, with `applied`, where this client cannot follow: it is sent events.
   *
   * No `Stream`: each commit of the log is a piece, and its way through a stream took longer than what it brings.
   */
  readonly feed?: (asked: FeedAsk) => Effect.Effect<Pieces<SchedulerError>, SchedulerError, Scope.Scope>
  /** Extension (D61). */
  readonly applied?: (applied: typeof SspApplied.Type) => Effect.Effect<void, SchedulerError>
  /** The same, many times on one request; never calls back before it has returned. Absent: by single requests. */
  readonly words?: (over: (how: WordsOver) => void) => AppliedWords
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
