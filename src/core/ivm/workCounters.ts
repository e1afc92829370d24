/**
 * Counters of the work that steps do.
 *
 * Why: law L4 is about work, so tests check counts, which are exact, and not times.
 */

export interface WorkCounters {
  /** Views that changed rows were shown to. */
  views: number
  /** Rows evaluated. */
  rows: number
  /** Groups built again. */
  groups: number
  /** Rows inserted into ordered windows or removed from them. */
  windows: number
}

export const newWorkCounters = (): WorkCounters => ({ views: 0, rows: 0, groups: 0, windows: 0 })

/** Work of an operator in rows looked at: in the last step that reached it, and in all steps. */
export interface Costs {
  readonly last_cost: number
  readonly total_cost: number
}

/** Counts rows, in the last step and in all. A base class: a change loads one object less than with a field. */
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
