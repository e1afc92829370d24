/**
 * How long changes took on their way into this node: answers to `/ingest`, and what a scheduler's feed brought.
 *
 * A service, because the route of `/ingest` and the feed write it and the overview reads it, and two nodes in one
 * process must not count each other's.
 */
import { Context, Effect, Layer } from "effect"
import { Latency } from "../core/telemetry/latency.ts"
import type { Answer } from "./Front.ts"

export interface IngestTimesShape {
  readonly latency: Latency
  /** Changes of a scheduler's feed (D61), from when the first of them came until they were applied. */
  readonly fed: Latency
  /** Clock of both measurements, in milliseconds. */
  readonly nowMs: () => number
  /** The same callback, timed from now; refused changes do not count. */
  readonly timed: (answer: (answer: Answer) => void) => (answer: Answer) => void
}

/** How long changes took, for the figures of a node. */
export class IngestTimes extends Context.Tag("ports/IngestTimes")<IngestTimes, IngestTimesShape>() {
  static readonly layer: Layer.Layer<IngestTimes> = Layer.effect(
    IngestTimes,
    Effect.map(Effect.clock, (clock) => {
      const latency = new Latency()
      const nowMs = (): number => Number(clock.unsafeCurrentTimeNanos()) / 1e6
      return {
        latency,
        fed: new Latency(),
        nowMs,
        timed: (answer) => {
          const begun = nowMs()
          return (given) => {
            if (given.status === 200) latency.observe(nowMs() - begun)
            answer(given)
          }
        }
      }
    })
  )
}
