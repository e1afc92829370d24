/**
 * Latencies of changes on their way into this node: answers to `/ingest`, and changes from a scheduler's feed.
 *
 * A service, because the route of `/ingest` and the feed write it and the overview reads it, and two nodes in one
 * process must not count each other's.
 */
import { Context, Effect, Layer } from "effect"
import { Latency } from "../core/telemetry/latency.ts"
import type { Answer } from "./Front.ts"

/** Latencies of changes by the way they came. */
export interface IngestTimesShape {
  readonly latency: Latency
  /** Changes of a scheduler's feed (D61): from the arrival of the first one of a batch until all were applied. */
  readonly fed: Latency
  /** Clock of both measurements, in milliseconds. */
  readonly nowMs: () => number
  /** Wraps the callback of an answer and times it from now; refused changes do not count. */
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
