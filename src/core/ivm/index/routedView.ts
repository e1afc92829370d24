/** A view as routers and indexes know it: what it is filed by, and how it is shown a record. */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Obj } from "../../surql/values/value.ts"
import type { BoundSources } from "../query/boundSources.ts"
import type { Params } from "../query/lift.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { CoveringView } from "./secondaryIndex.ts"

export interface RoutedView extends CoveringView {
  /** Shape and arguments as text. */
  readonly key: string
  /** The same object for the views of one router. */
  readonly plainShape: object
  /** Views of a lower stratum are brought up to date first. */
  readonly stratum: number
  readonly params: Params
  readonly failsAsWhole: boolean
  readonly boundSources: BoundSources | undefined
  /** Tables of its main rows. */
  readonly mainTables: ReadonlyArray<string>
  /**
   * Brings one record up to date. `doc` is its new state, undefined when it is gone or cannot match; `routed`: the
   * index has already checked the conjuncts that it is filed by.
   */
  update(slot: RecordSlot, doc: Obj | undefined, routed: boolean): void
  /** Forgets the row of this record, where it holds one. */
  letGo(slot: RecordSlot): void
  /** What {@link begin} has to do that takes long, with pauses. */
  finishFill(): Slices<void>
  /** Its engine's count of the steps that evaluations have taken. */
  readonly around: { readonly source: { readonly spent: number } }
  /** Called once, when it has been shown all rows of its first result. */
  begin(): void
}
