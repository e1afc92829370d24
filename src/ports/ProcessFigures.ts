/**
 * What this process uses of its machine, for heartbeats (D24).
 *
 * A port with a default, because only a runtime knows, and a node without one must do: heartbeats then leave the figures out.
 */
import { Context, Effect } from "effect"

export interface Figures {
  /** Processor time so far, of all threads, in microseconds. */
  readonly cpuMicros: number
  readonly residentBytes: number
}

/** Answers undefined where nobody knows. */
export class ProcessFigures extends Context.Reference<ProcessFigures>()("ports/ProcessFigures", {
  defaultValue: (): Effect.Effect<Figures | undefined> => Effect.succeed(undefined)
}) {}
