/**
 * Where audit lines go: the process's own log, whatever its level, marked so that a collector can keep them apart
 * (D53).
 *
 * Why the log and no file of its own: its lines are already carried to where an operator looks, and a second file needs
 * a second rotation, a second disk that is full and a second thing to forget.
 */
import { Cause, Context, Effect, Exit, Layer, Logger, LogLevel } from "effect"
import { type AuditEntry, annotationsOf } from "../core/access/audit.ts"
import { LineBudget, windowMs } from "../core/telemetry/lineBudget.ts"
import { isMapping } from "../core/typeGuards.ts"
import type { Caller } from "../protocol/access.ts"
import { isWireError } from "../protocol/errors.ts"

const line = (annotations: { readonly [name: string]: unknown }): Effect.Effect<void> =>
  Effect.logInfo("audit").pipe(Effect.annotateLogs(annotations), Logger.withMinimumLogLevel(LogLevel.All))

/** Address in an audit line when the server does not know the client's. */
export const unknownAddress = "unknown"

/** Writes audit lines. */
export class Audit extends Context.Tag("ports/Audit")<
  Audit,
  {
    /** Writes the line of an audited operation. */
    readonly done: (entry: AuditEntry) => Effect.Effect<void>
    /** Writes a line about a refused caller: bounded per minute, so that guesses do not fill a disk. */
    readonly turnedAway: (entry: Omit<AuditEntry, "operation">) => Effect.Effect<void>
  }
>() {
  /** `mostTurned`: lines per minute about refused callers with the same secret, or with no known one. */
  static readonly layer = (mostTurned: number): Layer.Layer<Audit> =>
    Layer.scoped(
      Audit,
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        // All callers without a known secret count as one: a flood of guesses suppresses no line of a known secret.
        const turned = new LineBudget(mostTurned)
        const ended = Effect.suspend(() =>
          Effect.forEach(
            turned.end(),
            ([secret, count]) =>
              line({ audit: true, operation: "access", secret, left_out: count, outcome: "left out" }),
            { discard: true }
          )
        )
        yield* Effect.addFinalizer(() => ended)
        return {
          done: (entry) => line(annotationsOf(entry)),
          turnedAway: (entry) =>
            Effect.suspend(() => {
              // Interruptible, though the handler may not be: the end of the process must not wait for the minute.
              const begin = turned.isIdle
                ? Effect.asVoid(
                    Effect.forkIn(Effect.interruptible(Effect.zipRight(Effect.sleep(windowMs), ended)), scope)
                  )
                : Effect.void
              return Effect.zipRight(
                begin,
                turned.take(entry.secret) ? line(annotationsOf({ ...entry, operation: "access" })) : Effect.void
              )
            })
        }
      })
    )
}

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit))
    return isMapping(exit.value) && typeof exit.value["status"] === "number" && exit.value["status"] >= 400
      ? `HTTP ${exit.value["status"]}`
      : "ok"
  if (Cause.isInterruptedOnly(exit.cause)) return "interrupted"
  const error = Cause.squash(exit.cause)
  return isWireError(error) ? error.code : "INTERNAL"
}

/** A request, as far as its audit line names it. */
interface AuditedCall {
  readonly endpoint: string
  /** Operation that the endpoint declares (D53); undefined if the endpoint is not audited. */
  readonly operation: string | undefined
  readonly caller: Caller["Type"]
  readonly asked: { readonly address: string | undefined }
}

/** Wraps the work of a request: writes its audit line, with `object`, however the work ends. */
export const make = Effect.map(
  Audit,
  ({ done }) =>
    ({ asked: { address = unknownAddress }, caller, endpoint, operation }: AuditedCall, object: string) =>
    <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      operation === undefined
        ? Effect.dieMessage(`broken invariant: ${endpoint} is audited and declares no operation`)
        : Effect.onExit(work, (exit) =>
            done({ operation, object, secret: caller.name, address, outcome: outcomeOf(exit) })
          )
)
