/**
 * What this process uses of its machine, for heartbeats (D24), and whether its heap has room (D43).
 *
 * A port with a default, because only a runtime knows, and a node without one must do: heartbeats then leave the
 * figures out.
 */
import { Context, Effect } from "effect"
import { type Memory, unwatched } from "../core/record/memory.ts"

export interface Figures {
  /** Processor time so far, of all threads, in microseconds. */
  readonly cpuMicros: number
  readonly residentBytes: number
  readonly heapBytes?: number
  /** The most that the heap may hold. */
  readonly heapLimitBytes?: number | undefined
  /** Unix time. */
  readonly startedAtSecs?: number
  /** How late the event loop runs timers, lately; undefined where it is not watched. */
  readonly loopLag?: { readonly p99Secs: number; readonly maxSecs: number } | undefined
}

/** Answers undefined where they are unknown. */
export class ProcessFigures extends Context.Reference<ProcessFigures>()("ports/ProcessFigures", {
  defaultValue: (): Effect.Effect<Figures | undefined> => Effect.succeed(undefined)
}) {}

export interface HeapShape {
  /** As the last full collection left it. A look costs nothing. */
  readonly memory: () => Memory
  /**
   * For what loads much: the same, after a collection of its own where the heap looks full and something has been made
   * since the last one.
   */
  readonly measured: () => Memory
  /** To be called after much memory was released: a collection shows at once how much is left in use. */
  readonly released: () => void
}

/** A heap that is not watched always has room. */
export const unwatchedHeap: HeapShape = { memory: () => unwatched, measured: () => unwatched, released: () => {} }

/** The heap of this process. */
export class Heap extends Context.Reference<Heap>()("ports/Heap", {
  defaultValue: () => unwatchedHeap
}) {}
