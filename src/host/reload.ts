/**
 * SIGHUP: the files that hold secrets are read anew, while everything goes on.
 *
 * Not on a terminal: there the signal means that the terminal is gone, and the process stops as on SIGTERM (`Process`).
 */
import { Effect, Layer } from "effect"
import type { Reloaded } from "../ports/secrets.ts"

const said = ({ name, outcome }: Reloaded): Effect.Effect<void> =>
  typeof outcome === "object"
    ? Effect.logWarning(`SIGHUP: the secret of ${name} stays what it was: ${outcome.fault}`)
    : Effect.logInfo(`SIGHUP: the secret of ${name} is ${outcome === "changed" ? "replaced" : "what it was"}`)

/** Listens as long as its scope lives. */
export const layer = (reload: () => ReadonlyArray<Reloaded>): Layer.Layer<never> =>
  process.stdout.isTTY ? Layer.empty : Layer.scopedDiscard(Effect.gen(function*() {
    const runtime = yield* Effect.runtime()
    const onSignal = (): void => {
      const outcomes = reload()
      const report = outcomes.length === 0 ? Effect.logInfo("SIGHUP: no secret comes from a file, nothing to reload") : Effect.forEach(outcomes, said, { discard: true })
      void Effect.runFork(Effect.provide(report, runtime))
    }
    yield* Effect.acquireRelease(Effect.sync(() => process.on("SIGHUP", onSignal)), () => Effect.sync(() => process.off("SIGHUP", onSignal)))
  }))
