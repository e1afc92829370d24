/**
 * Reloads files with secrets and certificates on SIGHUP, while everything goes on.
 *
 * Not on a terminal: there the signal means that the terminal is gone, and the process stops as on SIGTERM (`Process`).
 */
import { Effect, Layer } from "effect"
import type { Reloaded } from "../../node/config/secrets.ts"

const outcomeOf = ({ name, outcome, what }: Reloaded): Effect.Effect<void> => {
  if (typeof outcome !== "object")
    return Effect.logInfo(`SIGHUP: the ${what} of ${name} is ${outcome === "changed" ? "replaced" : "what it was"}`)
  const text = `SIGHUP: the ${what} of ${name} stays what it was: ${outcome.fault}`
  // An error, because the old certificate will expire.
  return what === "certificate" ? Effect.logError(text) : Effect.logWarning(text)
}

const said = (reloaded: Reloaded): Effect.Effect<void> =>
  Effect.zipRight(
    outcomeOf(reloaded),
    Effect.forEach(reloaded.warnings ?? [], (warning) => Effect.logWarning(`SIGHUP: ${warning}`), { discard: true })
  )

/** Listens as long as its scope lives. */
export const layer = (reload: () => ReadonlyArray<Reloaded>): Layer.Layer<never> =>
  process.stdout.isTTY
    ? Layer.empty
    : Layer.scopedDiscard(
        Effect.gen(function* () {
          const runtime = yield* Effect.runtime()
          const onSignal = (): void => {
            const outcomes = reload()
            const report =
              outcomes.length === 0
                ? Effect.logInfo("SIGHUP: no secret and no certificate comes from a file, nothing to reload")
                : Effect.forEach(outcomes, said, { discard: true })
            void Effect.runFork(Effect.provide(report, runtime))
          }
          yield* Effect.acquireRelease(
            Effect.sync(() => process.on("SIGHUP", onSignal)),
            () => Effect.sync(() => process.off("SIGHUP", onSignal))
          )
        })
      )
