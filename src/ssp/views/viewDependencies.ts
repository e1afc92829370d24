/** What the views service is made of, and what it takes from its surroundings. */
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

/** The surroundings of the service besides its ports. */
export interface Supervision {
  /** Runs a loop for the life of the scope and is told of its defects. */
  readonly fork: (loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>
  /** A broken invariant: the process must not go on as if nothing had happened. */
  readonly crash: (cause: Cause.Cause<unknown>) => void
}

export interface ViewServiceDependencies {
  /** Unix milliseconds. */
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
