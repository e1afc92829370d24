/**
 * Where the rows of a view come from: a router shows it changed records, a page reads an ordered index, another view
 * lends its rows, or the query is run again.
 *
 * The engine adds a view, fills it and lets it go through its source, and need not know which kind of view it is.
 * Between `enlist` and `leave` holds:
 *
 * - Each write that may change the result reaches the view in the step of the write, when the view's stratum is due.
 *   The store and all indexes have the write by then, views of lower strata too.
 * - The state of a row before the step is the row that its slot holds of the view (`heldBy`). It is never computed
 *   again.
 * - A view that moves says so once a step (`changed`), and is asked for its net effect when its stratum ends
 *   (`finish`). What moves in the first fill is no delta.
 * - No source fails. The failure of an expression is noted with the view, under the row's id.
 * - Cost: O(log n) for each row that moves, and nothing for a write that does not concern the view.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"

/** One source serves all views of its kind. `R`: the router of the view's shape. */
export interface RowSource<V, R> {
  /** From here on changes reach the view. */
  enlist(view: V, router: R): void
  /**
   * The first fill; undefined if the view is filled already. `isWaitedFor`: a row waits for this subquery result, so
   * a short fill is done at once.
   */
  fill(view: V, router: R, isWaitedFor: boolean): Slices<void> | undefined
  /** Ends the subscription and removes the records' pointers to the view's rows. */
  leave(view: V, router: R): void
}
