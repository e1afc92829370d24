/**
 * Counters of the work steps do.
 *
 * Why: law L4 is about work, so tests assert it and not only results; counts are exact where clocks are noise.
 */

export interface WorkCounters {
  /** Changed rows shown to views. */
  views: number
  /** Rows evaluated. */
  rows: number
  /** Groups computed again. */
  groups: number
  /** Rows put into or taken out of ordered windows. */
  windows: number
}

export const newWorkCounters = (): WorkCounters => ({ views: 0, rows: 0, groups: 0, windows: 0 })
