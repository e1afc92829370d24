/**
 * One turn of the event loop: waits until the input that is ready now has been read.
 *
 * Why a port: group commit wants to gather every request that has already arrived before it pays for a flush, and
 * only the runtime knows when that is.
 */
import { Context, Effect, Layer } from "effect"

/** When arrived bytes have been read; `layerYield` does where no server is to be waited for. */
export class Turn extends Context.Tag("ports/Turn")<
  Turn,
  {
    /** Calls back once, later. */
    readonly next: (run: () => void) => void
  }
>() {
  /** For tests and simulations: other fibers run, no input is waited for. */
  static readonly layerYield: Layer.Layer<Turn> = Layer.succeed(Turn, {
    next: (run) => void Effect.runFork(Effect.zipRight(Effect.yieldNow(), Effect.sync(run)))
  })
}
