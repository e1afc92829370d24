/**
 * What a view is made of, and what the engine lends it.
 */
import type { Failure } from "../surql/evaluate/failure.ts"
import type { Scope } from "../surql/evaluate/scope.ts"
import type { Obj } from "../surql/values/value.ts"
import type { ChildResult } from "./delta/delta.ts"
import type { StepLog } from "./delta/stepLog.ts"
import type { Evaluating } from "./evaluating.ts"
import type { FailingViews } from "./failingViews.ts"
import type { Place } from "./index/pageViews.ts"
import type { KeptBytes } from "./keptBytes.ts"
import type { Bounds } from "./operators/window.ts"
import type { BoundSources } from "./query/boundSources.ts"
import type { Params } from "./query/lift.ts"
import type { ChildField, Shape } from "./query/shape.ts"
import type { RecordSlot } from "./store/recordSlot.ts"
import type { Store } from "./store/store.ts"
import type { Read, Reader, ReaderRow, ReadResult } from "./view/dependencies.ts"
import type { TrackedSource } from "./view/source.ts"
import type { WorkCounters } from "./workCounters.ts"

/** The maintained result of a subquery, as the row around it uses it. */
interface MaintainedChild extends ChildResult, ReadResult {
  /** Why it fails as a whole; undefined where it does not. */
  readonly failure: () => Failure | undefined
}

/** A page that a step may have changed. */
export interface Page {
  readonly stratum: number
  /** Brings it up to date. */
  readonly turn: (turn: Turn) => void
}

/** What a step has touched of one page. */
export interface Turn {
  readonly page: Page
  readonly slots: Array<RecordSlot>
  /** Where the first of them was and is in the index; {@link inPlace} where it stayed. */
  readonly from: Place | undefined
  readonly to: Place | undefined
}

/** A view as it is told of a row again that one change had no steps left for. */
export interface Indebted {
  readonly stratum: number
  /** Brings the row up to date. */
  settleDebt(slot: RecordSlot): void
}

/** What the engine lends a view, which is of type `V`. */
export interface EngineContext<V = never> {
  readonly store: Store
  /** Scopes that note what is read; one evaluation at a time. */
  readonly source: TrackedSource
  readonly counters: WorkCounters
  /** Told of each evaluation before it begins. */
  readonly evaluating: Evaluating
  readonly moves: StepLog
  /** What rows of all views keep of their own. */
  readonly kept: KeptBytes
  readonly failing: FailingViews
  /** Why the results of a subquery cannot be maintained; undefined where they are. */
  readonly declined: (query: ChildField["query"]) => string | undefined
  /**
   * Which child of a row these results are, known by their shape alone: the row need not be looked at. Undefined where
   * it must.
   */
  readonly childAt: (shape: Shape, child: Shape) => number | undefined
  /** The maintained result of a subquery for the row in scope; undefined where it has to be run. */
  readonly resultOf: (query: ChildField["query"], scope: Scope) => MaintainedChild | undefined
  /** Replaces what a row of this reader has read. */
  readonly watch: (reader: Reader, row: ReaderRow, reads: ReadonlySet<Read>) => void
  /** Whether a row of this reader has read anything. */
  readonly watches: (reader: Reader, row: ReaderRow) => boolean
  /** Told of a row that one change had no steps left for: later ones evaluate it again. */
  readonly owe: (view: Indebted, slot: RecordSlot) => void
  /** Called when a step first changes this view. */
  readonly dirty: (view: V) => void
  /** Called when a step first touches a page, which is turned to when its stratum is due. Answers where it is noted. */
  readonly turnTo: (turn: Turn) => number
  /** What it has been told of the page. */
  readonly turnAt: (place: number) => Turn
  /** How many records the step that runs now writes. */
  readonly writes: () => number
  /** A record as it was before the step that runs now. */
  readonly docBefore: (slot: RecordSlot) => Obj | undefined
  /** The number of the step that runs now. */
  readonly step: () => number
}

/** What makes a view the one it is. */
export interface ViewSpec {
  readonly key: string
  readonly shape: Shape
  readonly params: Params
  readonly bounds: Bounds
  /** Undefined for the one whole table of the shape. */
  readonly boundSources: BoundSources | undefined
  readonly failsAsWhole: boolean
  readonly generation: number
  /** It is shown the rows of its page only, and has no window of its own. */
  readonly paged: boolean
}
