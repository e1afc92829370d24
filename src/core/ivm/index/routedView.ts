/** A view as routers and indexes know it: its keys, and the calls that show it a record. */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Obj } from "../../surql/values/value.ts"
import type { BoundSources } from "../query/boundSources.ts"
import type { Params } from "../query/lift.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { UnfilledResult } from "../unfilled.ts"
import type { CoveringView } from "./secondaryIndex.ts"

export interface RoutedView extends CoveringView {
  /** Shape and arguments as text: equal keys are the same view. */
  readonly key: string
  /** The same object for the views of one router. */
  readonly plainShape: object
  /** Views of a lower stratum are brought up to date first. */
  readonly stratum: number
  readonly params: Params
  readonly failsAsWhole: boolean
  readonly boundSources: BoundSources | undefined
  /** Tables of the view's main rows. */
  readonly mainTables: ReadonlyArray<string>
  /**
   * Updates the view for one record. `doc`: its new state, undefined if it is deleted or cannot match. `routed`: the
   * index has already checked the conjuncts that the view is filed by.
   */
  update(slot: RecordSlot, doc: Obj | undefined, routed: boolean): void
  /**
   * As {@link update}, in a first fill. Answers the result of a subquery that has to be filled before the record can be
   * shown, if there is one.
   */
  attempt(slot: RecordSlot, routed: boolean): UnfilledResult | undefined
  /** Fills the missing result with pauses, then updates the view for the record. */
  updateLater(slot: RecordSlot, unfilled: UnfilledResult): Slices<void>
  /** Drops the row of this record, if the view has one. */
  dropRow(slot: RecordSlot): void
  /** The slow part of ending the first fill, with pauses; comes before {@link begin}. */
  finishFill(): Slices<void>
  /** `spent`: evaluation steps of the whole engine so far. */
  readonly context: { readonly source: { readonly spent: number } }
  /** Called once, when the view has been shown all rows of its first fill. */
  begin(): void
}
