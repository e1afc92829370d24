/**
 * Where the rows of a view come from: a router shows it changed records, a page reads an ordered index, another view
 * lends its rows, or the query is run again.
 *
 * The engine adds a view, fills it and lets it go through its source, and need not know which kind of view it is.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"

/** One source serves all views of its kind. `R`: the router of the view's shape. */
export interface RowSource<V, R> {
  /** From here on changes reach the view. */
  enlist(view: V, router: R): void
  /**
   * The first fill; undefined: the view has been filled. `isWaitedFor`: it is the result of a subquery that a row waits
   * for, so that pauses are of no use.
   */
  fill(view: V, router: R, isWaitedFor: boolean): Slices<void> | undefined
  /** No change reaches the view any more; what records hold of it is taken back. */
  leave(view: V, router: R): void
}
