/**
 * The runtime's turn of the event loop, for `ports/Turn`.
 *
 * `setImmediate` runs right behind the poll phase, in Node and in Deno: all input that had arrived has been read.
 */
import { Layer } from "effect"
import { Turn } from "../../ports/Turn.ts"

export const layerTurn: Layer.Layer<Turn> = Layer.succeed(Turn, { next: (run) => void setImmediate(run) })
