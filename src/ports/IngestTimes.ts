/**
 * How long this node's answers to `/ingest` took.
 *
 * A service, because the hot route writes it and the overview reads it, and two nodes in one process must not count
 * each other's.
 */
import { Context, Effect, Layer } from "effect"
import { Latency } from "../core/telemetry/latency.ts"
import type { Answer } from "./Front.ts"

export interface IngestTimesShape {
  readonly latency: Latency
  /** The same callback, timed from now; refused changes do not count. */
  readonly timed: (answer: (answer: Answer) => void) => (answer: Answer) => void
}

/** How long ingest took, for the figures of a node. */
export class IngestTimes extends Context.Tag("ports/IngestTimes")<IngestTimes, IngestTimesShape>() {
  static readonly layer: Layer.Layer<IngestTimes> = Layer.effect(
    IngestTimes,
    Effect.map(Effect.clock, (clock) => {
      const latency = new Latency()
      const now = (): number => Number(clock.unsafeCurrentTimeNanos()) / 1e6
      return {
        latency,
        timed: (answer) => {
          const begun = now()
          return (given) => {
            if (given.status === 200) latency.observe(now() - begun)
            answer(given)
          }
        }
      }
    })
  )
}
