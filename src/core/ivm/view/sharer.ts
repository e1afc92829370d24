/**
 * A view that borrows its rows from another view of the same filter, as that view and the engine know it.
 */
import type { Failure } from "../../surql/evaluate/failure.ts"
import { noSlot } from "../../view/watch.ts"
import type { Delta, DeltaBuilder } from "../delta/delta.ts"
import type { GroupEntry } from "../operators/groupScan.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { IncrementalView } from "./incrementalView.ts"
import type { ChangedViews, View } from "./view.ts"

/** The old and the new group entry of one row, or why the row fails. */
export interface EntryChange {
  readonly slot: RecordSlot
  readonly before: GroupEntry | undefined
  readonly after: GroupEntry | undefined
  readonly failure: Failure | undefined
}

/** The effect of a step on a view that lends its rows. */
export interface LenderStep {
  readonly delta: Delta
  readonly moves: DeltaBuilder
  /** Group entries of the moved rows, by the text of the keys and columns: one evaluation for all equal texts. */
  readonly entryChanges: Map<string, ReadonlyArray<EntryChange>>
}

export interface Sharer extends View {
  readonly lender: IncrementalView
  /** Called once for each step that moves the lender's rows, after the lender is settled. Answers the changed views. */
  lenderChanged(lent: LenderStep, told: ChangedViews): ChangedViews
}

/** Watchdog slot that the view frees: its own, or none if its lender has the same slot and frees that. */
export const ownSlotOf = ({ lender, watchSlot }: Sharer): number =>
  lender.watchSlot === watchSlot ? noSlot : watchSlot
