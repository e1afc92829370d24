/**
 * Edges are written while the SSP is ready.
 */
import { Effect, Layer } from "effect"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { EdgeWriter } from "./EdgeWriter.ts"

export const layer: Layer.Layer<never, never, EdgeWriter | Lifecycle> = Layer.effectDiscard(
  Effect.gen(function* () {
    const { phase } = yield* Lifecycle
    const edges = yield* EdgeWriter
    edges.allowWhen(() => phase() === "ready")
  })
)
