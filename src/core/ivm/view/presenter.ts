/**
 * The ways to show the rows of a view: as they are, split into pieces, or in groups.
 *
 * A new way is one more presenter and a line that chooses it. A presenter serves all views and has no state: state
 * stands in the view (`groups`), so that a change loads one object and not two.
 */
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import type { GroupEntry } from "../operators/groupScan.ts"
import type { Groups } from "../operators/groups.ts"
import type { TakesRows } from "../operators/resultSet.ts"
import { movePieces, piecesOf } from "../operators/split.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import type { Shape } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { groupedRow, type Matching, pieceRow } from "./evaluate.ts"
import type { OutputRow } from "./output.ts"
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
   * The row of a matching record, `before` if nothing of it changed; raises if the row fails. Undefined for rows that
   * only show their record: `evaluate.ts` makes those itself, since nearly every change makes one.
   */
  readonly rowOf: RowOf | undefined
  /** Shows a row's new state instead of its old one; undefined: not matching. Called once for a row that moved. */
  move(view: V, before: ViewRow | undefined, after: ViewRow | undefined): void
  /**
   * Ends a step or the first fill: shows what waited until all rows had moved; changed rows get this version. True if
   * the set of failing groups changed.
   */
  settle(view: V, version: number): boolean
  /** The slow part of {@link settle} at the end of a first fill, with pauses. */
  settleSliced(view: V, version: number): Slices<void>
  /** The shown rows of some matching rows, in order. */
  inOrder(view: V, rows: Iterable<ViewRow>): ReadonlyArray<OutputRow>
  inOrderSliced(view: V, rows: Iterable<ViewRow>): Slices<ReadonlyArray<OutputRow>>
  /** Failures that belong to no single row. */
  errors(view: V): Iterable<RowError>
}

/** The parts of a view that show rows. */
interface Shows extends Showing, TakesRows<OutputRow> {
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
  move: (view, before, after) =>
    view.groups!.move(before?.part as GroupEntry | undefined, after?.part as GroupEntry | undefined),
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
