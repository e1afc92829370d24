/**
 * The tables that a view reads: the ones that its query names, and the ones that its rows reach by links, which only
 * the reads of the rows show.
 */
import type { Dependencies, Reader } from "./dependencies.ts"
import { tableOfRead } from "./source.ts"
import type { View } from "./view.ts"

/** Most reads looked at; the rows of one view mostly link to the same tables. */
const maxReads = 4000

/** Walks at most `most` reads: of the first rows of the view and of each subquery, a quarter of them per reader. */
export const tablesRead = (dependencies: Dependencies, view: View, most = maxReads): ReadonlySet<string> => {
  let left = most
  const tables = new Set([...view.mainTables, ...view.otherTables])
  const readers = new Set<unknown>([view])
  // Results of subqueries are added to `readers` in the loop.
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
