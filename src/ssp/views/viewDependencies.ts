/** Dependencies of the views service. */
import type { Cause, Effect, Scope } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { Database } from "../../ports/Database.ts"
import type { Meters } from "../../ports/Meters.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import type { Progress } from "../../ports/Progress.ts"
import type { SavedState } from "../../ports/SavedState.ts"
import type { Turn } from "../../ports/Turn.ts"
import type { WatchdogShape } from "../../ports/Watchdog.ts"
import type { EdgesShape } from "../edges/EdgeWriter.ts"
import type { CommitContext, Committer } from "./committer.ts"

/** How the service's loops are run and its defects are reported. */
export interface Supervision {
  /** Runs a loop for the life of the scope and reports its defects. */
  readonly fork: (loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>
  /** Reports a broken invariant, which ends the process. */
  readonly crash: (cause: Cause.Cause<unknown>) => void
}

export interface ViewServiceDependencies {
  /** Steady time in milliseconds. */
  readonly clock: () => number
  readonly committer: Committer
  readonly database: Database["Type"]
  readonly edges: EdgesShape
  readonly engine: Engine
  readonly run: CommitContext["run"]
  readonly slicer: Slicer
  readonly savedState: SavedState["Type"]
  readonly meters: typeof Meters.Service
  readonly progress: typeof Progress.Service
  readonly heap: HeapShape
  readonly turn: Turn["Type"]
  readonly watchdog: WatchdogShape
}
