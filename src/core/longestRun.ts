/**
 * Which items of a list that was put in another order have stayed: a longest run of places that rise.
 */
import { firstWhere } from "./bisect.ts"

/** The positions, in order, of a longest rising subsequence of distinct numbers. Cost: O(n log n). */
export const longestRun = (places: ReadonlyArray<number>): ReadonlyArray<number> => {
  /** Where the best run of each length ends. */
  const ends: Array<number> = []
  const previous: Array<number> = []
  for (let i = 0; i < places.length; i++) {
    const length = firstWhere(ends.length, (at) => places[ends[at]!]! >= places[i]!)
    previous[i] = length > 0 ? ends[length - 1]! : -1
    ends[length] = i
  }
  const run: Array<number> = []
  for (let i = ends.at(-1) ?? -1; i >= 0; i = previous[i]!) run.push(i)
  return run.reverse()
}
