/**
 * Queries that are set aside, because a process ended abnormally while it evaluated them (D48).
 *
 * Once is enough: an evaluation is written down only where it takes far longer than a row may, and a process that ends
 * again at each start serves no view.
 *
 * A query is known by its text and parameters and not by the id of a view: ids with the same query share one result, so
 * that it is unknown which of them it was, and a new id would start the count anew.
 */

/** Queries that are remembered; beyond it the one that ended a process longest ago is forgotten. */
export const mostRemembered = 1000

export interface Entry {
  /** Names query and parameters. */
  readonly query: string
  /** Id of the view that was evaluated when the process last ended. */
  readonly id: string
  readonly ends: number
  /** Time of the last end, Unix milliseconds. */
  readonly last: number
}

/** With one more abnormal end in a query. */
export const struck = (
  entries: ReadonlyArray<Entry>,
  { id, last, query }: Omit<Entry, "ends">
): ReadonlyArray<Entry> => {
  const before = entries.find((entry) => entry.query === query)
  const others = entries.filter((entry) => entry !== before)
  return [...others, { query, id, last, ends: (before?.ends ?? 0) + 1 }].slice(-mostRemembered)
}
