/**
 * Queries during whose evaluation a process ended abnormally, and when one of them is set aside (D48).
 *
 * A query is known by its text and parameters and not by the id of a view: ids with the same query share one result, so
 * that it is unknown which of them it was, and a new id would start the count anew.
 */

/** Abnormal ends of a process in the same query, after which it is set aside. */
export const endsToSetAside = 2

/** Queries that are remembered; beyond it the one that ended a process longest ago is forgotten. */
export const mostRemembered = 1000

export interface Entry {
  /** Names query and parameters. */
  readonly query: string
  /** Of the view it was when the process last ended. */
  readonly id: string
  readonly ends: number
  /** Unix milliseconds of the last. */
  readonly last: number
}

export const isSetAside = ({ ends }: Entry): boolean => ends >= endsToSetAside

/** With one more abnormal end in a query. */
export const struck = (
  entries: ReadonlyArray<Entry>,
  { id, last, query }: Omit<Entry, "ends">
): ReadonlyArray<Entry> => {
  const before = entries.find((entry) => entry.query === query)
  const others = entries.filter((entry) => entry !== before)
  return [...others, { query, id, last, ends: (before?.ends ?? 0) + 1 }].slice(-mostRemembered)
}
