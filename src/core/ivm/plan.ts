/**
 * The operators of a maintained instance, for `/debug/view` (D13).
 *
 * Why apart: it is made on demand from the shape and two counts, so that instances keep nothing for it.
 */
import type { PlanRow } from "./instance.ts"
import type { Shape } from "./shape.ts"

export const planOf = (shape: Shape, tables: ReadonlyArray<string>, matching: number, shown: number): ReadonlyArray<PlanRow> => {
  const row = (operator: string, rows: number): PlanRow => ({ operator, incremental: true, reason: null, rows })
  return [
    row(`source ${tables.join(", ")}`, matching),
    ...shape.paths.map((path) => row(`index ${path.join(".")}`, matching)),
    ...(shape.residual === undefined ? [] : [row("filter", matching)]),
    ...(shape.windowed ? [row("window", matching)] : shape.sort.length > 0 ? [row("sort when read", matching)] : []),
    ...(shape.only ? [row("only", shown)] : []),
    ...shape.children.map(({ alias }) => row(`subquery ${alias}`, shown)),
    row("project", shown)
  ]
}
