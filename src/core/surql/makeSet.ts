/**
 * Sets from items: sorted by the total order, without equal neighbours.
 *
 * Why so: a set is equal whatever order it was written in, so it is normalised once when it is made.
 */
import { compare, equal, sortValues } from "./order.ts"
import { SetValue } from "./value.ts"
import type { Value } from "./value.ts"

/** A set of the items. */
export const makeSet = (items: ReadonlyArray<Value>): SetValue => {
  const sorted = sortValues(items, compare)
  return new SetValue(sorted.filter((item, i) => i === 0 || !equal(item, sorted[i - 1])))
}
