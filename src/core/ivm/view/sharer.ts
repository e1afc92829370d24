/**
 * A view that has its rows from another view of the same filter, as that view and the engine know it.
 */
import type { Failure } from "../../surql/evaluate/failure.ts"
import { noSlot } from "../../view/watch.ts"
import type { Delta, DeltaBuilder } from "../delta/delta.ts"
import type { Entry } from "../operators/groupScan.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { IncrementalView } from "./incrementalView.ts"
import type { Told, View } from "./view.ts"

/** What one row brought and brings, or why it fails. */
export interface Bringing {
  readonly slot: RecordSlot
  readonly before: Entry | undefined
  readonly after: Entry | undefined
  readonly failure: Failure | undefined
}

/** What a step has done to a view that lends its rows. */
export interface Lent {
  readonly delta: Delta
  readonly moves: DeltaBuilder
  /** What rows that moved bring to groups, by what is asked of them: it is evaluated once for all views alike. */
  readonly brought: Map<string, ReadonlyArray<Bringing>>
}

export interface Sharer extends View {
  readonly lender: IncrementalView
  /** Called once for each step that moves the lender's rows, when these are settled. Answers the views that changed. */
  hear(lent: Lent, told: Told): Told
}

/** A view that is made to lend has the slot of the first view it was made for, and is the one that gives it back. */
export const ownSlotOf = ({ lender, watchSlot }: Sharer): number =>
  lender.watchSlot === watchSlot ? noSlot : watchSlot
