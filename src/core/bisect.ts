/**
 * Binary search: the first position at which `holds` is true; it must be false for all earlier and true for all later
 * positions. `length` if it never is. Cost: O(log length) calls.
 */
export const firstWhere = (length: number, holds: (at: number) => boolean): number => {
  let low = 0
  for (let high = length; low < high; ) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
