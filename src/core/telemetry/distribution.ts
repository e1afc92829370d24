/**
 * Counts by size in buckets that only grow, with their sum: a histogram whose memory and cost do not depend on how much
 * is counted.
 */

export class Distribution {
  /** Count per bucket, not cumulative; one more than `bounds`, for values above all of them. */
  readonly counts: Array<number>
  sum = 0

  /** @param bounds upper bounds, ascending; a value that equals a bound counts below that bound */
  constructor(readonly bounds: ReadonlyArray<number>) {
    this.counts = new Array<number>(bounds.length + 1).fill(0)
  }

  /** O(log buckets). */
  observe(value: number): void {
    let low = 0
    let high = this.bounds.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (value <= this.bounds[middle]!) high = middle
      else low = middle + 1
    }
    this.counts[low]!++
    this.sum += value
  }
}
