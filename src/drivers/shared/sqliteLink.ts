/**
 * One connection to an embedded SQLite file, used at once: a statement's answer is there when the call returns.
 *
 * Why at once: the evaluator reads records in the middle of an expression, and a commit must not be seen half-way by
 * other work. The drivers of embedded SQLite work that way underneath; one that does not fails with its
 * first statement. Errors are thrown as {@link ReplicaError}.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { Cause, Effect, Exit, type Scope } from "effect"
import { ReplicaError } from "../../ports/Replica.ts"
import { sorted } from "./sqliteFailure.ts"

export type Cell = string | number | null

export type Statement = readonly [sql: string, params?: ReadonlyArray<Cell>]

export interface Link {
  /** Rows as lists of cells; none for a statement that answers nothing. */
  readonly all: (...statement: Statement) => ReadonlyArray<ReadonlyArray<Cell>>
  /** All of them or none. */
  readonly write: (statements: ReadonlyArray<Statement>) => void
}

/** An error of SQLite as this port's error. */
export const failure = (error: unknown): ReplicaError => {
  if (error instanceof ReplicaError) return error
  const { message, reason } = sorted(error)
  return new ReplicaError({ reason, message, cause: error })
}

const now = <A>(effect: Effect.Effect<A, unknown>): A => {
  const exit = Effect.runSyncExit(effect)
  if (Exit.isSuccess(exit)) return exit.value
  throw failure(Cause.squash(exit.cause))
}

const linkOf = (connection: Connection): Link => {
  const run = ([sql, params = []]: Statement) => connection.executeRaw(sql, params)
  const begin = run(["BEGIN IMMEDIATE"]),
    commit = run(["COMMIT"])
  // A fault of the disk may have ended it already; what matters is why.
  const rollback = Effect.ignore(run(["ROLLBACK"]))
  return {
    all: (sql, params = []) => now(connection.executeValues(sql, params)) as ReadonlyArray<ReadonlyArray<Cell>>,
    write: (statements) =>
      now(
        Effect.zipRight(
          begin,
          Effect.tapError(Effect.zipRight(Effect.forEach(statements, run, { discard: true }), commit), () => rollback)
        )
      )
  }
}

/** The connection of a client, for as long as the scope is open. */
export const link = (sql: SqlClient.SqlClient): Effect.Effect<Link, ReplicaError, Scope.Scope> =>
  sql.reserve.pipe(Effect.map(linkOf), Effect.mapError(failure))
