/**
 * How the rows of a view are shown: as they are, split into pieces, or in groups.
 *
 * A new way of showing rows is one more presenter and a line that chooses it. A presenter serves all views and keeps
 * nothing: its state stands in the view (`groups`), so that a change loads one object and not two.
 */
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import type { Entry } from "../operators/groupScan.ts"
import type { Groups } from "../operators/groups.ts"
import type { TakesRows } from "../operators/resultSet.ts"
import { movePieces, piecesOf } from "../operators/split.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import type { Shape } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { groupedRow, type Matching, pieceRow } from "./evaluate.ts"
import type { Output } from "./output.ts"
import { inOrder, inOrderSliced, type Showing } from "./showing.ts"
import type { RowError } from "./view.ts"

type RowOf = (
  view: Matching,
  slot: RecordSlot,
  scope: Scope,
  before: ViewRow | undefined,
  sourceIndex: number
) => ViewRow

export interface Presenter<V> {
  /**
   * The row that a matching record makes, `before` again where nothing of it changed; raises why it fails. Undefined: a
   * row that shows its record, which is made where the filter is evaluated, for it is made for nearly every change.
   */
  readonly rowOf: RowOf | undefined
  /** Puts what a row shows now in place of what it showed; undefined: nothing. Called once for a row that moved. */
  move(view: V, before: ViewRow | undefined, after: ViewRow | undefined): void
  /**
   * Ends a step or the first fill: what was put off until all rows had moved is shown, changed rows with this version.
   * True when other things fail now.
   */
  settle(view: V, version: number): boolean
  /** As much of it with pauses as can be done before the end of a first fill. */
  settleSliced(view: V, version: number): Slices<void>
  /** What is shown of the matching rows, in order. */
  inOrder(view: V, rows: Iterable<ViewRow>): ReadonlyArray<Output>
  inOrderSliced(view: V, rows: Iterable<ViewRow>): Slices<ReadonlyArray<Output>>
  /** Why something is left out that is no row. */
  errors(view: V): Iterable<RowError>
}

/** What of a view shows rows. */
interface Shows extends Showing, TakesRows<Output> {
  readonly groups: Groups | undefined
}

const none: ReadonlyArray<never> = []

function* nothing(): Slices<void> {}

const asTheyAre: Presenter<Shows> = {
  rowOf: undefined,
  move: (view, before, after) => view.move(before, after),
  settle: () => false,
  settleSliced: nothing,
  inOrder: (view, rows) => inOrder(view, rows, view.plainShape.reaches),
  inOrderSliced: (view, rows) => inOrderSliced(view, rows, view.plainShape.reaches),
  errors: () => none
}

const inPieces: Presenter<Shows> = {
  ...asTheyAre,
  rowOf: pieceRow,
  move: (view, before, after) => movePieces(view, piecesOf(before), piecesOf(after))
}

const inGroups: Presenter<Shows> = {
  rowOf: groupedRow,
  move: (view, before, after) => view.groups!.move(before?.part as Entry | undefined, after?.part as Entry | undefined),
  settle: (view, version) => view.groups!.settle(version),
  settleSliced: (view, version) => view.groups!.settleSliced(version),
  inOrder: (view) => drain(view.groups!.rowsSliced()),
  inOrderSliced: (view) => view.groups!.rowsSliced(),
  errors: (view) => {
    const { failure } = view.groups!
    return failure === undefined ? none : [{ id: "", failure }]
  }
}

export const presenterOf = ({ groups, splitting }: Shape): Presenter<Shows> =>
  groups !== undefined ? inGroups : splitting !== undefined ? inPieces : asTheyAre
