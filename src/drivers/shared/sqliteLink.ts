/**
 * One synchronous connection to an embedded SQLite file: a statement's answer is there when the call returns.
 *
 * Synchronous, because the evaluator reads records in the middle of an expression, and other work must not see half a
 * commit. Drivers of embedded SQLite work that way underneath; another driver fails with its first statement. Errors
 * are thrown as {@link ReplicaError}.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { Cause, Effect, Exit, type Scope } from "effect"
import { ReplicaError } from "../../ports/Replica.ts"
import { classify } from "./sqliteFailure.ts"

export type Cell = string | number | null

export type Statement = readonly [sql: string, params?: ReadonlyArray<Cell>]

export interface Link {
  /** Rows as arrays of cells; empty for a statement without rows. */
  readonly all: (...statement: Statement) => ReadonlyArray<ReadonlyArray<Cell>>
  /** Runs all statements or none. */
  readonly write: (statements: ReadonlyArray<Statement>) => void
}

/** An error of SQLite as this port's error. */
export const failure = (error: unknown): ReplicaError => {
  if (error instanceof ReplicaError) return error
  const { message, reason } = classify(error)
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
  // A fault of the disk may have ended the transaction already, so the rollback may fail; its own error is ignored.
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
