/**
 * A SurrealDB as a place to send statements to: text with bound values out, one typed answer per statement back.
 *
 * Why a port below `Database` and `Upstream`: what they say to the database is the same wherever it runs; that it is a
 * server behind a socket or an engine in this process, and how a lost connection is mended, is the driver's business.
 * Values are always bound, never spliced into the text. What was sent is never sent again by the driver once it may
 * have been applied: a caller that knows a write to be repeatable repeats it.
 */
import { Context, Data, Effect, Either, Schedule } from "effect"
import type { Value } from "../core/surql/values/value.ts"

/**
 * `unreachable`: no connection, or it broke; `timeout`: no answer in time; `unauthorized`: the credentials were not
 * taken; `forbidden`: these credentials may not do it; `conflict`: another transaction was faster, nothing was applied;
 * `missing`: a table that is not defined; `damaged`, `locked`: the embedded database cannot be opened; `refused`: the
 * database does not do what the statement says.
 */
export class SurrealError extends Data.TaggedError("SurrealError")<{
  readonly reason:
    | "unreachable"
    | "timeout"
    | "unauthorized"
    | "forbidden"
    | "conflict"
    | "missing"
    | "damaged"
    | "locked"
    | "refused"
  readonly message: string
  /** Whether a write may have been applied all the same. */
  readonly uncertain: boolean
  readonly cause?: unknown
}> {
  /** Whether the same statements may succeed later, unchanged. */
  get transient(): boolean {
    return this.reason === "unreachable" || this.reason === "timeout" || this.reason === "conflict"
  }
}

export type Bindings = { readonly [name: string]: Value }

export interface SurrealShape {
  /** One answer per statement, in order: its value, or why the database refused it. BEGIN and COMMIT answer NONE. */
  readonly ask: (
    statements: string,
    bindings?: Bindings
  ) => Effect.Effect<ReadonlyArray<Either.Either<Value, SurrealError>>, SurrealError>
  /** As `ask`, but fails as a whole, with the refusal that says why (not with those that follow from it). */
  readonly query: (statements: string, bindings?: Bindings) => Effect.Effect<ReadonlyArray<Value>, SurrealError>
  /**
   * Registers a live query and runs `heard` at each of its notifications, until that answers that it has heard enough:
   * then the query is taken back. Fails when it is refused or ends by itself, with its connection or its table.
   * Notifications may be lost and come in any order, so they are good for a wake-up only. Never ends and hears nothing
   * where there are none (over HTTP, in this process).
   */
  readonly listen: (statement: string, heard: () => "more" | "enough") => Effect.Effect<void, SurrealError>
}

/** A connection to a SurrealDB, wherever it runs; drivers are in `host/surreal/Surreal.ts`. */
export class SurrealClient extends Context.Tag("ports/SurrealClient")<SurrealClient, SurrealShape>() {}

/** Statements before the one that failed a transaction, and those behind it, say only that they were not run. */
const followsFromAnother = /^The query was not executed due to a (?:failed|cancelled) transaction/

const firstCause = (answers: ReadonlyArray<Either.Either<Value, SurrealError>>): SurrealError | undefined => {
  let found: SurrealError | undefined
  for (const answer of answers) {
    if (Either.isRight(answer)) continue
    if (!followsFromAnother.test(answer.left.message)) return answer.left
    found ??= answer.left
  }
  return found
}

/** The rest of a client, made of `ask`; without notifications unless it is said how to listen. */
export const fromAsk = (
  ask: SurrealShape["ask"],
  listen: SurrealShape["listen"] = () => Effect.never
): SurrealShape => ({
  ask,
  listen,
  query: (statements, bindings) =>
    Effect.flatMap(ask(statements, bindings), (answers) => {
      const cause = firstCause(answers)
      return cause === undefined
        ? Effect.succeed(answers.map((answer) => Either.getOrThrow(answer)))
        : Effect.fail(cause)
    })
})

/** How often statements that met another transaction are sent again, with pauses that double from 20 ms: about 5 s. */
const repeats = 8
const pauses = Schedule.intersect(
  Schedule.recurs(repeats),
  Schedule.jitteredWith(Schedule.exponential("20 millis"), { min: 0.3, max: 1 })
)

/**
 * The same client, whose `query` repeats what met another transaction. Only for texts that are one transaction, or may
 * be applied twice.
 */
export const overConflicts = (client: SurrealShape): SurrealShape => ({
  ...client,
  query: (statements, bindings) =>
    client.query(statements, bindings).pipe(
      Effect.retry({ while: ({ reason }) => reason === "conflict", schedule: pauses }),
      Effect.mapError((error) => {
        const { cause, message, reason, uncertain } = error
        return reason === "conflict"
          ? new SurrealError({ reason, message: `${message} (tried ${repeats + 1} times)`, uncertain, cause })
          : error
      })
    )
})
