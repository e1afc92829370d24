/**
 * One connection to an embedded SQLite file, used at once: a statement's answer is there when the call returns.
 *
 * Why at once: the evaluator reads records in the middle of an expression, and a commit must not be seen half-way by whoever comes
 * between. The drivers of embedded SQLite work that way underneath; one that does not fails with its first statement. Errors are thrown as
 * {@link ReplicaError}.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { Cause, Effect, Exit, type Scope } from "effect"
import { ReplicaError } from "./Replica.ts"
import { sorted } from "./sqliteFailure.ts"

export type Cell = string | number | null

export interface Link {
  /** Rows as lists of cells; none for a statement that answers nothing. */
  readonly all: (sql: string, params?: ReadonlyArray<Cell>) => ReadonlyArray<ReadonlyArray<Cell>>
  /** All or nothing. */
  readonly transaction: (body: () => void) => void
}

/** What SQLite says, as this port's error. */
export const failure = (error: unknown): ReplicaError => {
  if (error instanceof ReplicaError) return error
  const { message, reason } = sorted(error)
  return new ReplicaError({ reason, message, cause: error })
}

const linkOf = (connection: Connection): Link => {
  const all: Link["all"] = (sql, params = []) => {
    const exit = Effect.runSyncExit(connection.executeValues(sql, params))
    if (Exit.isSuccess(exit)) return exit.value as ReadonlyArray<ReadonlyArray<Cell>>
    throw failure(Cause.squash(exit.cause))
  }
  const transaction = (body: () => void): void => {
    all("BEGIN IMMEDIATE")
    try {
      body()
      all("COMMIT")
    } catch (error) {
      // A fault of the disk may have ended it already.
      try {
        all("ROLLBACK")
      } catch (second) {
        if (!/no transaction is active/.test(failure(second).message)) throw failure(error)
      }
      throw error
    }
  }
  return { all, transaction }
}

/** The connection of a client, for as long as the scope is open. */
export const link = (sql: SqlClient.SqlClient): Effect.Effect<Link, ReplicaError, Scope.Scope> => sql.reserve.pipe(Effect.map(linkOf), Effect.mapError(failure))
