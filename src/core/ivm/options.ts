/**
 * What an engine is given, all of it optional: limits, counters of its work, and what is told of its evaluations.
 */
import type { Evaluating } from "./evaluating.ts"
import type { Taking } from "./releases.ts"
import { defaultSteps, type StepLimits } from "./view/source.ts"
import type { WorkCounters } from "./workCounters.ts"

export interface EngineOptions extends Partial<StepLimits>, Taking {
  /** Counts the work of steps. */
  readonly counters?: WorkCounters
  /** Told of each evaluation before it begins. */
  readonly evaluating?: Evaluating
  /** Bytes that rows of all views may keep of their own; without it there is no bound. */
  readonly viewBytesTotal?: number
  /** Deleted records that are remembered. */
  readonly maxTombstones?: number
  /** By chance where ids come from strangers: it decides which of them collide in a hash table. */
  readonly hashSeed?: number
}

export const limitsOf = ({ changeSteps, queryBytes, querySteps, rowSteps }: Partial<StepLimits>): StepLimits => ({
  rowSteps: rowSteps ?? defaultSteps.rowSteps,
  changeSteps: changeSteps ?? defaultSteps.changeSteps,
  querySteps: querySteps ?? defaultSteps.querySteps,
  queryBytes: queryBytes ?? defaultSteps.queryBytes
})
