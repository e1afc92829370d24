/**
 * How long answers took, as counts in buckets that only grow: two readings give the percentiles of the time in
 * between.
 *
 * A few integers and no samples, so that it costs the same per answer under any load, and looking costs nothing.
 */
import { Distribution } from "./distribution.ts"

/** Upper bounds in milliseconds, each about half as much again as the one before. */
export const boundsMs: ReadonlyArray<number> = [
  0.1, 0.15, 0.25, 0.4, 0.6, 1, 1.5, 2.5, 4, 6, 10, 15, 25, 40, 60, 100, 150, 250, 400, 600, 1000, 1500, 2500, 4000,
  6000, 10_000
]

/** The counts as a histogram in seconds. */
export const histogram = ({
  bounds,
  counts,
  sum
}: Latency): {
  readonly bounds: ReadonlyArray<number>
  readonly counts: ReadonlyArray<number>
  readonly sum: number
} => ({ bounds: bounds.map((ms) => ms / 1000), counts, sum: sum / 1000 })

export class Latency extends Distribution {
  constructor() {
    super(boundsMs)
  }

  /** Copy of the current counts. */
  snapshot(): { readonly bounds_ms: ReadonlyArray<number>; readonly counts: ReadonlyArray<number> } {
    return { bounds_ms: this.bounds, counts: [...this.counts] }
  }
}
