/**
 * The figures of a whole node at this moment, for the parts that serve or send them (D34).
 *
 * A port between the node, which has the figures, and their two writers, `/metrics` and the exporter, which therefore
 * report the same.
 */
import { Context, type Effect } from "effect"
import type { Memory } from "../core/record/memory.ts"
import type { Family, Readings } from "../core/telemetry/meters.ts"
import type { Figures } from "./ProcessFigures.ts"

/** All figures of a node, as `/metrics` prints them. */
export class NodeFigures extends Context.Tag("ports/NodeFigures")<
  NodeFigures,
  Effect.Effect<ReadonlyArray<Family>>
>() {}

/** Readings of the heap; none if the heap is not watched. */
export const ofMemory = ({ isFull, limitBytes, usedBytes }: Memory): Readings =>
  limitBytes === Infinity ? {} : { memoryUsed: usedBytes, memoryLimit: limitBytes, memoryFull: isFull ? 1 : 0 }

/** Readings of the process; none if they are unknown. */
export const ofProcess = (figures: Figures | undefined): Readings =>
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
