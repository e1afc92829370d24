/**
 * The figures that every node has (D34): of its process, its heap and its tasks. A node adds its own figures to them.
 */
import { Effect, Layer } from "effect"
import type { Memory } from "../../core/record/memory.ts"
import * as Core from "../../core/telemetry/meters.ts"
import { Meters } from "../../ports/Meters.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import { type Figures, Heap, ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Progress, running } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { steadyMs } from "../../ports/Turn.ts"

/** Figures of the heap; none if the heap is not watched. */
const ofMemory = ({ isFull, limitBytes, usedBytes }: Memory): Core.Readings =>
  limitBytes === Infinity ? {} : { memoryUsed: usedBytes, memoryLimit: limitBytes, memoryFull: isFull ? 1 : 0 }

/** Figures of the process; none if they are unknown. */
const ofProcess = (figures: Figures | undefined): Core.Readings =>
  figures === undefined
    ? {}
    : {
        processStart: figures.startedAtSecs,
        processCpu: figures.cpuMicros / 1e6,
        processMemory: figures.residentBytes,
        heapUsed: figures.heapBytes,
        loopLagP99: figures.loopLag?.p99Secs,
        loopLagMax: figures.loopLag?.maxSecs
      }

/** Processor time and memory as overviews show them; null where they are unknown. */
export const usedOf = (figures: Figures | undefined) =>
  figures === undefined ? null : { cpu_seconds: figures.cpuMicros / 1e6, memory_megabytes: figures.residentBytes / 1e6 }

/** `own` answers what the node counts at `now`, a time of the steady clock. */
export const layer = <R>(
  on: "ssp" | "scheduler",
  own: Effect.Effect<(now: number) => Effect.Effect<Core.Readings>, never, R>
): Layer.Layer<NodeFigures, never, R | Release> =>
  Layer.effect(
    NodeFigures,
    Effect.gen(function* () {
      const { version } = yield* Release
      const process = yield* ProcessFigures
      const heap = yield* Heap
      const meters = yield* Meters
      const progress = yield* Progress
      const readings = yield* own
      return Effect.gen(function* () {
        const now = yield* steadyMs
        const compared = progress.endedAt("reconcile")
        return Core.families(on, meters, {
          ...ofProcess(yield* process),
          ...ofMemory(heap.memory()),
          buildInfo: [[[version, on], 1]],
          tasksRunning: running(progress.tasks()),
          reconcileAge: compared === undefined ? undefined : Math.max(0, now - compared) / 1000,
          ...(yield* readings(now))
        })
      })
    })
  )
