/**
 * Options of an engine: limits, counters of its work, and the watchdog's note of what is evaluated.
 */
import type { EvaluationNote } from "./evaluating.ts"
import type { ReleaseOptions } from "./releases.ts"
import { defaultSteps, type StepLimits } from "./view/source.ts"
import type { WorkCounters } from "./workCounters.ts"

export interface EngineOptions extends Partial<StepLimits>, ReleaseOptions {
  /** Receives counts of the work of steps. */
  readonly counters?: WorkCounters
  /** Notes for the watchdog which view is evaluated. */
  readonly evaluating?: EvaluationNote
  /** Bytes that rows of all views may hold beside their records; no limit if absent. */
  readonly viewBytesTotal?: number
  /** Number of deleted records whose version is remembered. */
  readonly maxTombstones?: number
  /** Random if strangers choose ids: the seed decides which ids collide in a hash table. */
  readonly hashSeed?: number
}

export const limitsOf = ({ changeSteps, queryBytes, querySteps, rowSteps }: Partial<StepLimits>): StepLimits => ({
  rowSteps: rowSteps ?? defaultSteps.rowSteps,
  changeSteps: changeSteps ?? defaultSteps.changeSteps,
  querySteps: querySteps ?? defaultSteps.querySteps,
  queryBytes: queryBytes ?? defaultSteps.queryBytes
})
