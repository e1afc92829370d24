/**
 * Statements to one PostgreSQL, and the meaning of their failures: refused, or with unknown outcome.
 *
 * Each is autocommitted: a client that stops in the middle of a transaction would keep its locks.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Duration, Effect, Fiber, Schedule } from "effect"
import { WalFailed } from "../../ports/Wal.ts"

export type Row = { readonly [column: string]: unknown }

const retryMs = 200

const textOf = ({ cause, message }: SqlError): string =>
  cause instanceof Error && cause.message !== "" ? cause.message : message

const hints: { readonly [code: string]: string } = {
  "42501": `; what its user must be granted is in the run book ("Who may use the log in PostgreSQL")`,
  "3F000": "; the schema of its user's search_path is not there, or may not be used"
}

/** A failure by which the server says that the statement did nothing; undefined if it may have been carried out. */
const refusal = (error: SqlError, shown: string): WalFailed | undefined => {
  const { code, severity } = (error.cause ?? {}) as { readonly code?: unknown; readonly severity?: unknown }
  if (severity !== "ERROR" || typeof code !== "string" || /^(08|40|57|XX)/.test(code)) return undefined
  return new WalFailed({
    reason: code === "53100" ? "full" : "failed",
    message: `the log at ${shown} (SVC_LOG_URL) refused: ${textOf(error)} (${code})${hints[code] ?? ""}`,
    cause: error
  })
}

interface LinkOptions {
  readonly shown: string
  /** Time limit of a statement. Its outcome is unknown afterwards: the server may have carried it out. */
  readonly answerMs: number
}

export class Link {
  readonly shown: string
  private readonly answerMs: number

  constructor(
    private readonly sql: SqlClient.SqlClient,
    { answerMs, shown }: LinkOptions
  ) {
    this.shown = shown
    this.answerMs = answerMs
  }

  failed(reason: WalFailed["reason"], what: string): WalFailed {
    return new WalFailed({ reason, message: `the log at ${this.shown} (SVC_LOG_URL): ${what}` })
  }

  /**
   * One attempt; `unreachable` if it may have been carried out. Forked: a hanging statement must be cut even if its
   * caller is uninterruptible, and a statement under way goes on if its caller is interrupted.
   */
  run(text: string, values: ReadonlyArray<unknown> = []): Effect.Effect<ReadonlyArray<Row>, WalFailed> {
    const timed = this.sql.unsafe<Row>(text, values).pipe(
      Effect.mapError((error) => refusal(error, this.shown) ?? this.unanswered(textOf(error))),
      Effect.disconnect,
      Effect.timeoutFail({
        duration: Duration.millis(this.answerMs),
        onTimeout: () => this.unanswered(`no answer within ${this.answerMs} ms`)
      })
    )
    return Effect.flatMap(Effect.forkDaemon(Effect.interruptible(timed)), Fiber.join)
  }

  private unanswered(why: string): WalFailed {
    return this.failed("unreachable", `it does not answer: ${why}`)
  }

  /** Repeats a statement without an answer; only for statements that may be carried out more than once. */
  asked(text: string, values?: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<Row>, WalFailed> {
    return Effect.retry(this.run(text, values), {
      while: ({ reason }) => reason === "unreachable",
      times: 10,
      schedule: Schedule.spaced(retryMs)
    })
  }
}
