/**
 * The operators of a maintained instance, for `/debug/view` (D13).
 *
 * Why apart: it is made on demand from the shape and a few counts, so that instances keep little for it.
 */
import type { PlanRow } from "./instance.ts"
import type { Shape } from "./shape.ts"

/** Rows counted at one place of an instance: in the last step, and in all. */
export class Work {
  private total = 0
  private before = 0
  private lastStep = -1

  count(step: number): void {
    if (step !== this.lastStep) {
      this.lastStep = step
      this.before = this.total
    }
    this.total++
  }

  costs(): { readonly last_cost: number; readonly total_cost: number } {
    return { last_cost: this.total - this.before, total_cost: this.total }
  }
}

export interface PlanFigures {
  readonly tables: ReadonlyArray<string>
  readonly matching: number
  readonly shown: number
  /** Groups held; 0 without GROUP. */
  readonly groups: number
  /** Rows evaluated. */
  readonly evaluated: Work
  /** Why a subquery is run again for each row; undefined where its result is maintained. */
  readonly declined: (query: Shape["subqueries"][number]["query"]) => string | undefined
}

export const planOf = (shape: Shape, { declined, evaluated, groups, matching, shown, tables }: PlanFigures): ReadonlyArray<PlanRow> => {
  const costs = evaluated.costs()
  const row = (operator: string, rows: number, reason: string | null = null): PlanRow => ({ operator, incremental: reason === null, reason, rows, ...costs })
  return [
    row(`source ${tables.join(", ")}`, matching),
    ...(shape.access?.paths ?? []).map((path) => row(`index ${path.join(".")}`, matching)),
    ...(shape.residual === undefined ? [] : [row("filter", matching)]),
    ...shape.subqueries.map(({ name, query }) => row(`subquery ${name}`, shown, declined(query) ?? null)),
    ...(shape.splitting === undefined ? [] : [row("split", matching)]),
    ...(shape.groups === undefined ? [] : [row("group", groups), ...shape.groups.folded.map((name) => row(`aggregate ${name}`, groups, "computed again over its group"))]),
    ...(shape.windowed ? [row("window", groups || matching)] : shape.sort.length > 0 ? [row("sort when read", matching)] : []),
    ...(shape.only ? [row("only", shown)] : []),
    row("project", shown)
  ]
}
