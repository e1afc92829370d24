/**
 * What the page remembers of the last minutes: one sample a second, rates and percentiles made from counts that only
 * grow.
 *
 * Kept here and not in the service, so that looking costs it nothing; a restart of the service begins anew.
 */
// @ts-check
import { quantile } from "./format.js"

/** Seconds kept. */
export const span = 180

/**
 * @typedef {{ at: number, events: number | null, p50: number | null, p99: number | null, cpu: number | null, lag: {
 * [name: string]: number } }} Sample
 */

export class Samples {
  constructor() {
    /** @type {Array<Sample>} */
    this.list = []
    /**
     * @type {{ at: number, total: number, feeds: boolean, counts: ReadonlyArray<number>, cpu: number | undefined,
     * uptime: number } | undefined}
     */
    this.before = undefined
  }

  /**
   * @param {any} overview @param {number} at seconds @param {number} total record changes so far @param {{ [name:
   * string]: number }} lag
   * @returns {Sample}
   */
  add(overview, at, total, lag) {
    // An SSP that follows a scheduler's feed is sent no changes.
    const times = overview.feed ?? overview.ingest
    const now = {
      at,
      total,
      feeds: times === overview.feed,
      counts: times.counts,
      cpu: overview.used?.cpu_seconds,
      uptime: overview.uptime_seconds
    }
    const before =
      this.before !== undefined &&
      this.before.uptime <= now.uptime &&
      this.before.total <= total &&
      this.before.feeds === now.feeds
        ? this.before
        : undefined
    this.before = now
    const seconds = before === undefined ? 0 : Math.max(0.2, at - before.at)
    const counts =
      before === undefined
        ? []
        : now.counts.map((/** @type {number} */ n, /** @type {number} */ i) => n - (before.counts[i] ?? 0))
    const sample = {
      at,
      lag,
      events: before === undefined ? null : (total - before.total) / seconds,
      p50: quantile(times.bounds_ms, counts, 0.5) ?? null,
      p99: quantile(times.bounds_ms, counts, 0.99) ?? null,
      cpu: before?.cpu === undefined || now.cpu === undefined ? null : ((now.cpu - before.cpu) / seconds) * 100
    }
    this.list.push(sample)
    if (this.list.length > span) this.list.shift()
    return sample
  }

  /** @param {(sample: Sample) => number | null | undefined} read */
  values(read) {
    return this.list.map((sample) => read(sample) ?? null)
  }
}
