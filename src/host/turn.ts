/**
 * The runtime's own turn of the event loop, for `ports/Turn`.
 *
 * `setImmediate` runs right behind the poll phase, in Node and in Deno: everything that had arrived has been read.
 */
import { Effect, Layer } from "effect"
import { Turn } from "../ports/Turn.ts"

export const layerTurn: Layer.Layer<Turn> = Layer.succeed(Turn, {
  next: Effect.async<void>((resume) => {
    const handle = setImmediate(() => resume(Effect.void))
    return Effect.sync(() => clearImmediate(handle))
  })
})
