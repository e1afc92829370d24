/**
 * What this process uses, as Node and Deno tell it.
 *
 * A layer of its own, so that a composed node can leave it out. The event loop is watched by
 * the runtime itself, from the first look on that asks for it; of two windows of time the worse one is told, so that a
 * look right behind another still sees what was.
 */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { Effect, Layer } from "effect"
import { type Figures, ProcessFigures } from "../../ports/ProcessFigures.ts"
import * as Heap from "./heap.ts"

const windowMs = 10_000
/**
 * How often the runtime looks; a sleep that long is not a delay. Each look wakes the process: at 10 ms they are most of
 * what an idle one spends, and a delay shorter than this does not trouble a service that answers over a network.
 */
const resolutionMs = 50

type Lag = NonNullable<Figures["loopLag"]>

const lagOf = (histogram: IntervalHistogram): Lag => {
  const seconds = (nanos: number): number =>
    Math.max(0, (Number.isFinite(nanos) ? nanos : 0) / 1e9 - resolutionMs / 1000)
  return { p99Secs: seconds(histogram.percentile(99)), maxSecs: seconds(histogram.max) }
}

/** Undefined where the runtime does not watch its loop. */
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

/** With the heap and its room, as a server needs them. */
export const layers = ({ maxMemory }: { readonly maxMemory: number }) => Layer.merge(layer, Heap.layer(maxMemory))
