/**
 * Sets from items: sorted by the total order, without equal neighbours.
 *
 * Why so: a set is equal whatever order it was written in, so it is normalised once when it is made.
 */
import { compare, equalWithoutPatterns, sortValues } from "./order.ts"
import type { Value } from "./value.ts"
import { SetValue } from "./value.ts"

/** A set of the items. Of equal ones (`1`, `1.0`) the first is kept, or the last, as a cast does. */
export const makeSet = (items: ReadonlyArray<Value>, keep: "first" | "last" = "first"): SetValue => {
  const sorted = sortValues(items, compare)
  return new SetValue(
    sorted.filter((item, i) =>
      keep === "first"
        ? i === 0 || !equalWithoutPatterns(item, sorted[i - 1])
        : i === sorted.length - 1 || !equalWithoutPatterns(item, sorted[i + 1])
    )
  )
}
