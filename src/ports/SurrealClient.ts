/**
 * A SurrealDB that takes statements: text with bound values, one typed answer per statement.
 *
 * Why a port below `Database` and `Upstream`: their statements are the same for a server behind a socket and for an
 * engine in this process; the driver alone knows which it is, and how a lost connection is mended. Values are always
 * bound, never spliced into the text. The driver never resends a statement that may have been applied: only a caller
 * that knows a write to be repeatable repeats it.
 */
import { Context, Data, Effect, Either, Schedule } from "effect"
import type { Value } from "../core/surql/values/value.ts"

/**
 * A failed statement or connection. `unreachable`: no connection, or it broke; `timeout`: no answer in time;
 * `unauthorized`: wrong credentials; `forbidden`: these credentials may not do it; `conflict`: another transaction was
 * faster, nothing was applied; `missing`: a table that is not defined; `damaged`, `locked`: the embedded database
 * cannot be opened; `refused`: any other error of the database.
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
  /** Whether a write may have been applied nevertheless. */
  readonly uncertain: boolean
  readonly cause?: unknown
}> {
  /** Whether the same statements may succeed later, unchanged. */
  get transient(): boolean {
    return this.reason === "unreachable" || this.reason === "timeout" || this.reason === "conflict"
  }
}

/** Values bound to `$name` in statements. */
export type Bindings = { readonly [name: string]: Value }

/** Runs statements; both methods fail with a {@link SurrealError}. */
export interface SurrealShape {
  /** One answer per statement, in order: its value, or the database's refusal. BEGIN and COMMIT answer NONE. */
  readonly ask: (
    statements: string,
    bindings?: Bindings
  ) => Effect.Effect<ReadonlyArray<Either.Either<Value, SurrealError>>, SurrealError>
  /** As `ask`, but fails if one statement does, with the original refusal and not with those that follow from it. */
  readonly query: (statements: string, bindings?: Bindings) => Effect.Effect<ReadonlyArray<Value>, SurrealError>
  /**
   * Runs a live query and calls `heard` for each notification until it answers "enough"; then ends the live query.
   * Fails if the query is refused, or ends by itself with its connection or its table. Notifications may be lost and
   * come in any order, so they only serve to wake a reader. Without notifications (over HTTP, in this process) it waits
   * for ever.
   */
  readonly listen: (statement: string, heard: () => "more" | "enough") => Effect.Effect<void, SurrealError>
}

/** A connection to a SurrealDB, wherever it runs; drivers are in `host/surreal/Surreal.ts`. */
export class SurrealClient extends Context.Tag("ports/SurrealClient")<SurrealClient, SurrealShape>() {}

/** In a failed transaction, the other statements only say that they were not run. */
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

/** A client made of `ask`; without notifications unless `listen` is given. */
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

/** Repetitions of statements that met another transaction, with pauses that double from 20 ms: about 5 s. */
const repeats = 8
const pauses = Schedule.intersect(
  Schedule.recurs(repeats),
  Schedule.jitteredWith(Schedule.exponential("20 millis"), { min: 0.3, max: 1 })
)

/**
 * The same client, whose `query` repeats statements that met another transaction. Only for texts that are one
 * transaction, or may be applied twice.
 */
export const retryingConflicts = (client: SurrealShape): SurrealShape => ({
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
