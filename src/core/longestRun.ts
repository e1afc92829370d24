/**
 * Which items of a reordered list have kept their order: a longest increasing subsequence.
 */
import { firstWhere } from "./bisect.ts"

/** Indexes, in order, of a longest increasing subsequence of distinct numbers. Cost: O(n log n). */
export const longestRun = (places: ReadonlyArray<number>): ReadonlyArray<number> => {
  /** For each length, the index where the best run of that length ends. */
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
