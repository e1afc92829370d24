/**
 * The tables that a view reads: those that its query names, and those that its rows have come to by links, which are
 * known only once rows are there.
 */
import type { Dependencies, Reader } from "./dependencies.ts"
import { tableOfRead } from "./source.ts"
import type { View } from "./view.ts"

/** Reads that are looked at; the rows of one view mostly link to the same tables. */
const maxReads = 4000

/** O(`most`): as many reads in all, of the first rows of the view and of each subquery, a quarter as many of one. */
export const tablesRead = (dependencies: Dependencies, view: View, most = maxReads): ReadonlySet<string> => {
  let left = most
  const tables = new Set([...view.mainTables, ...view.otherTables])
  const readers = new Set<unknown>([view])
  // Results of subqueries are added on the way.
  for (const reader of readers) {
    for (const read of dependencies.readsOf(reader as Reader, Math.ceil(most / 4))) {
      if (left-- <= 0) return tables
      const table = typeof read === "string" ? tableOfRead(read) : undefined
      if (table !== undefined) tables.add(table)
      if (typeof read !== "string") readers.add(read)
    }
  }
  return tables
}
