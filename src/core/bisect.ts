/**
 * The first position from which on a condition holds; it holds for no earlier position, and `length` is the answer
 * where it holds for none. Cost: O(log length) calls.
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
