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

/** Work of the last step that reached an operator and of all steps, in rows looked at. */
export interface Costs {
  readonly last_cost: number
  readonly total_cost: number
}

/** Rows counted: in the last step, and in all. What counts them extends it, so that there is no object more to load. */
export class CountsWork {
  private worked = 0
  private workedBefore = 0
  private workedLast = -1

  protected count(step: number): void {
    if (step !== this.workedLast) {
      this.workedLast = step
      this.workedBefore = this.worked
    }
    this.worked++
  }

  protected costs(): Costs {
    return { last_cost: this.worked - this.workedBefore, total_cost: this.worked }
  }
}
