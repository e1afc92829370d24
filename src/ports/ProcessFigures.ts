/**
 * CPU time and memory of this process, for heartbeats (D24), and the room in its heap (D43).
 *
 * A port with a default, because only a runtime knows the figures: without one, heartbeats leave them out.
 */
import { Context, Effect } from "effect"
import { type Memory, unwatched } from "../core/record/memory.ts"

/** Resource use of this process. */
export interface Figures {
  /** Processor time so far, of all threads, in microseconds. */
  readonly cpuMicros: number
  readonly residentBytes: number
  readonly heapBytes?: number
  /** Upper limit of the heap. */
  readonly heapLimitBytes?: number | undefined
  /** Start of the process, Unix seconds. */
  readonly startedAtSecs?: number
  /** Delay of timers in the last interval; undefined if it is not measured. */
  readonly loopLag?: { readonly p99Secs: number; readonly maxSecs: number } | undefined
}

/** Reads the figures; undefined if they are unknown. */
export class ProcessFigures extends Context.Reference<ProcessFigures>()("ports/ProcessFigures", {
  defaultValue: (): Effect.Effect<Figures | undefined> => Effect.succeed(undefined)
}) {}

/** Readings of the heap. */
export interface HeapShape {
  /** Heap use after the last full collection. Costs nothing. */
  readonly memory: () => Memory
  /**
   * The same, after a new collection if the heap looks full and memory was allocated since the last one: for callers
   * that load much.
   */
  readonly measured: () => Memory
  /** To be called after much memory was released: the next reading is then made by a collection. */
  readonly released: () => void
}

/** Readings without a watched heap: there is always room. */
export const unwatchedHeap: HeapShape = { memory: () => unwatched, measured: () => unwatched, released: () => {} }

/** The heap of this process. */
export class Heap extends Context.Reference<Heap>()("ports/Heap", {
  defaultValue: () => unwatchedHeap
}) {}
