/**
 * What this process uses of its machine, for heartbeats (D24).
 *
 * A port with a default, because only a runtime knows, and a node without one must do: heartbeats then leave the
 * figures out.
 */
import { Context, Effect } from "effect"

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
