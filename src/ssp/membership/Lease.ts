/**
 * Whether this SSP may act on the database now: write edges, claim jobs (D21).
 *
 * In a cluster it may while its heartbeats are answered: a process that was paused or cut off must find out by its own
 * clock that others have taken over. Standalone it always may. A service without dependencies, so that its readers do
 * not depend on membership.
 */
import { Context, Effect, Layer } from "effect"
import { steadyOf } from "../../ports/Turn.ts"
import { SspConfig } from "../Config.ts"

export class Lease extends Context.Tag("ssp/membership/Lease")<
  Lease,
  {
    /** Whether this SSP may act; to be asked right before each action. */
    readonly held: () => boolean
    /** Steady time until which this SSP may act; replaces an earlier one. */
    readonly holdUntil: (ms: number) => void
    /** Starts no further job, for the goodbye; returns the jobs whose calls are in flight. */
    readonly end: () => ReadonlyArray<string>
    /** Sets the callback that {@link end} asks. */
    readonly atEnd: (answer: () => ReadonlyArray<string>) => void
  }
>() {
  static readonly layer: Layer.Layer<Lease, never, SspConfig> = Layer.effect(
    Lease,
    Effect.gen(function* () {
      const { mode } = yield* SspConfig
      const nowMs = steadyOf(yield* Effect.clock)
      let until = mode === "standalone" ? Infinity : 0
      let calling = (): ReadonlyArray<string> => []
      return {
        held: () => nowMs() < until,
        holdUntil: (ms: number) => void (until = ms),
        end: () => calling(),
        atEnd: (answer: typeof calling) => void (calling = answer)
      }
    })
  )
}
