/**
 * Queries in quarantine, because a process ended abnormally while it evaluated them (D48).
 *
 * Once is enough: an evaluation is noted only if it takes far longer than a row may, and a process that ends again at
 * each start serves no view.
 *
 * A query is identified by its text and parameters and not by a view id: ids with the same query share one result, so
 * it is unknown which of them it was, and a new id would start the count again.
 */

/** Most queries remembered; the one that ended a process longest ago is forgotten first. */
export const mostRemembered = 1000

export interface Entry {
  /** Key of query and parameters. */
  readonly query: string
  /** Id of the view that was evaluated when the process last ended. */
  readonly id: string
  readonly ends: number
  /** Time of the last end, Unix milliseconds. */
  readonly last: number
}

/** The queries after one more abnormal end in `query`. */
export const withAbnormalEnd = (
  entries: ReadonlyArray<Entry>,
  { id, last, query }: Omit<Entry, "ends">
): ReadonlyArray<Entry> => {
  const before = entries.find((entry) => entry.query === query)
  const others = entries.filter((entry) => entry !== before)
  return [...others, { query, id, last, ends: (before?.ends ?? 0) + 1 }].slice(-mostRemembered)
}
