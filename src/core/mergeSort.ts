/** Merge sort with pauses after some hundred items sorted or merged. */

/** Items that are sorted or merged between two pauses. */
const run = 512

/** Stable. Calls `pay` with numbers of comparisons before they are made. May reorder `items`. */
export function* mergeSort<A>(
  items: Array<A>,
  compare: (a: A, b: A) => number,
  pay: (comparisons: number) => void = () => {}
): Generator<undefined, Array<A>, void> {
  // The runtime sorts each run without a pause; most comparisons are made by the merges.
  const sortRun = (from: Array<A>): Array<A> => {
    pay((from.length * Math.ceil(Math.log2(Math.max(2, from.length)))) >> 2)
    return from.sort(compare)
  }
  if (items.length <= run) return sortRun(items)
  let from: Array<A> = []
  for (let at = 0; at < items.length; at += run) {
    for (const item of sortRun(items.slice(at, at + run))) from.push(item)
    yield
  }
  for (let width = run; width < items.length; width *= 2) {
    const to: Array<A> = []
    for (let at = 0; at < items.length; at += 2 * width) {
      const middle = Math.min(at + width, items.length),
        end = Math.min(middle + width, items.length)
      for (let i = at, j = middle; i < middle || j < end; ) {
        to.push(j >= end || (i < middle && compare(from[i]!, from[j]!) <= 0) ? from[i++]! : from[j++]!)
        if (to.length % run !== 0) continue
        pay(run)
        yield
      }
    }
    from = to
  }
  return from
}
