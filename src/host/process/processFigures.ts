/**
 * Resource use of this process, from Node or Deno.
 *
 * A layer of its own, so that a composed node can leave it out. The runtime measures the event loop's lag from the
 * first look on; the worse of two windows of time is reported, so that two readers in a row see the same lag.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { Effect, Layer } from "effect"
import { type Figures, ProcessFigures } from "../../ports/ProcessFigures.ts"
import * as Heap from "./heap.ts"

const windowMs = 10_000
/**
 * Interval of the runtime's measurements; of a delay only the part beyond this interval counts. Each measurement wakes
 * the process: at 10 ms they are most of an idle process's work, and a shorter delay does not matter over a network.
 */
const resolutionMs = 50

type Lag = NonNullable<Figures["loopLag"]>

const lagOf = (histogram: IntervalHistogram): Lag => {
  const seconds = (nanos: number): number =>
    Math.max(0, (Number.isFinite(nanos) ? nanos : 0) / 1e9 - resolutionMs / 1000)
  return { p99Secs: seconds(histogram.percentile(99)), maxSecs: seconds(histogram.max) }
}

/** Undefined if the runtime does not measure its loop. */
const watchLoop = (): IntervalHistogram | undefined => {
  try {
    const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
    histogram.enable()
    return histogram
  } catch {
    return undefined
  }
}

const lagReader = (histogram: IntervalHistogram | undefined): (() => Lag | undefined) => {
  let begun = performance.now()
  let before: Lag = { p99Secs: 0, maxSecs: 0 }
  return () => {
    if (histogram === undefined) return undefined
    const now = lagOf(histogram)
    const told = { p99Secs: Math.max(before.p99Secs, now.p99Secs), maxSecs: Math.max(before.maxSecs, now.maxSecs) }
    if (performance.now() - begun >= windowMs) {
      before = now
      begun = performance.now()
      histogram.reset()
    }
    return told
  }
}

const layer = Layer.scoped(
  ProcessFigures,
  Effect.gen(function* () {
    const histogram = yield* Effect.acquireRelease(Effect.sync(watchLoop), (watched) =>
      Effect.sync(() => watched?.disable())
    )
    const lag = lagReader(histogram)
    const heapLimitBytes = getHeapStatistics().heap_size_limit
    const startedAtSecs = Date.now() / 1000 - process.uptime()
    return Effect.sync(() => {
      const { system, user } = process.cpuUsage()
      const { heapUsed, rss } = process.memoryUsage()
      return {
        cpuMicros: user + system,
        residentBytes: rss,
        heapBytes: heapUsed,
        heapLimitBytes,
        startedAtSecs,
        loopLag: lag()
      }
    })
  })
)

/** Process figures, and the heap with its limit, as a server needs them. */
export const layers = ({ maxMemory }: { readonly maxMemory: number }) => Layer.merge(layer, Heap.layer(maxMemory))
