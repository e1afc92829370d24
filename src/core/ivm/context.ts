/**
 * The state that defines a view, and the engine services that every view uses.
 */
import type { Failure } from "../surql/evaluate/failure.ts"
import type { Scope } from "../surql/evaluate/scope.ts"
import type { Obj } from "../surql/values/value.ts"
import type { ChildResult } from "./delta/delta.ts"
import type { StepLog } from "./delta/stepLog.ts"
import type { EvaluationNote } from "./evaluating.ts"
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

/** The maintained result of a subquery, as its parent row uses it. */
interface MaintainedChild extends ChildResult, ReadResult {
  /** Why the whole result fails; undefined if it does not. */
  readonly failure: () => Failure | undefined
}

/** A page that a step may have changed. */
export interface Page {
  readonly stratum: number
  /** Brings the page up to date. */
  readonly applyUpdate: (update: PageUpdate) => void
}

/** The records of one page that a step has touched. */
export interface PageUpdate {
  readonly page: Page
  readonly slots: Array<RecordSlot>
  /** The first record's place in the index before the step; {@link unmovedPlace} if the record did not move. */
  readonly from: Place | undefined
  readonly to: Place | undefined
}

/** A view with rows that one change had no evaluation steps left for. */
export interface HasDeferredRows {
  readonly stratum: number
  /** Brings the row up to date. */
  updateDeferred(slot: RecordSlot): void
}

/** Engine services for views of type `V`. */
export interface EngineContext<V = never> {
  readonly store: Store
  /** Makes the scopes of evaluations and notes what an evaluation reads; one evaluation at a time. */
  readonly source: TrackedSource
  readonly counters: WorkCounters
  /** Notes for the watchdog which view is evaluated. */
  readonly evaluating: EvaluationNote
  readonly moves: StepLog
  /** Bytes that rows of all views hold beside their records. */
  readonly kept: KeptBytes
  readonly failing: FailingViews
  /** Why the results of a subquery cannot be maintained; undefined if they are. */
  readonly declined: (query: ChildField["query"]) => string | undefined
  /**
   * Position of a child among the subqueries of `shape`, if its shape alone tells; undefined if the row has to be
   * asked.
   */
  readonly childAt: (shape: Shape, child: Shape) => number | undefined
  /** The maintained result of a subquery for the row in scope; undefined if the subquery has to be run. */
  readonly resultOf: (query: ChildField["query"], scope: Scope) => MaintainedChild | undefined
  /** Replaces the noted reads of a reader's row. Answers how many bytes more they take. */
  readonly watch: (reader: Reader, row: ReaderRow, reads: ReadonlySet<Read>) => number
  /** How many reads of a row are noted. */
  readonly readsOf: (reader: Reader, row: ReaderRow) => number
  /** Notes a row that one change had no steps left for: a later step evaluates it again. */
  readonly defer: (view: HasDeferredRows, slot: RecordSlot) => void
  /**
   * Views whose first fill waits for the result of a subquery, each with the rows that changed meanwhile: the fill
   * evaluates those when it goes on.
   */
  readonly postponed: Map<HasDeferredRows, Set<RecordSlot>>
  /** Called when a step first changes the view. */
  readonly dirty: (view: V) => void
  /**
   * Called when a step first touches a page. The page is updated when its stratum is due. Answers the position of the
   * note.
   */
  readonly noteUpdate: (update: PageUpdate) => number
  /** The note at this position. */
  readonly updateAt: (place: number) => PageUpdate
  /** How many records the current step writes. */
  readonly writes: () => number
  /** A record as it was before the current step. */
  readonly docBefore: (slot: RecordSlot) => Obj | undefined
  /** Number of the current step. */
  readonly step: () => number
}

/** Everything that a view is made from. Two views with equal keys are the same view. */
export interface ViewSpec {
  readonly key: string
  readonly shape: Shape
  readonly params: Params
  readonly bounds: Bounds
  /** Undefined if the view reads the whole table of its shape. */
  readonly boundSources: BoundSources | undefined
  readonly failsAsWhole: boolean
  readonly generation: number
  /** The view holds only the rows of its page, without a window of all matching rows. */
  readonly paged: boolean
}
