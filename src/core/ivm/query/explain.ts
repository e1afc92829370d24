/**
 * The operators of a maintained view, for `/debug/view` (D13).
 */
import type { Costs } from "../workCounters.ts"
import type { Shape } from "./shape.ts"

/** One operator of a plan, as `/debug/view` shows it (D13). */
export interface PlanRow {
  readonly operator: string
  readonly incremental: boolean
  /** Why the query is recomputed; null if it is maintained. */
  readonly reason: string | null
  /** Number of rows held. */
  readonly rows: number
  /** Rows looked at by the last step that reached the operator and by all steps; if recomputed, evaluation steps. */
  readonly last_cost: number
  readonly total_cost: number
}

export interface PlanFigures {
  readonly tables: ReadonlyArray<string>
  readonly matching: number
  readonly shown: number
  /** Number of groups held; 0 without GROUP. */
  readonly groups: number
  /** For a page: order and rows of its index, and the number of views that read it; undefined for other views. */
  readonly page:
    | {
        readonly order: string
        readonly rows: number
        readonly readers: number
        /** How the page finds matching rows, and how many it knows, if a part of the filter is decided by no index. */
        readonly filtered: { readonly way: string; readonly rows: number } | undefined
      }
    | undefined
  /** Number of views that show the same stored rows; 0 if the view shares none. */
  readonly sharing: number
  /** Work in evaluated rows. */
  readonly costs: Costs
  /** Why a subquery is run for each row; undefined if its result is maintained. */
  readonly declined: (query: Shape["subqueries"][number]["query"]) => string | undefined
}

export const planOf = (
  shape: Shape,
  { costs, declined, groups, matching, page, sharing, shown, tables }: PlanFigures
): ReadonlyArray<PlanRow> => {
  const row = (operator: string, rows: number, reason: string | null = null): PlanRow => ({
    operator,
    incremental: reason === null,
    reason,
    rows,
    ...costs
  })
  return [
    row(`source ${tables.join(", ")}`, matching),
    ...(shape.access?.paths ?? []).map((path) => row(`index ${path.join(".")}`, matching)),
    ...(shape.residual === undefined ? [] : [row("filter", matching)]),
    ...(sharing === 0 ? [] : [row(`rows of the filter, kept once for ${sharing} views`, matching)]),
    ...shape.subqueries.map(({ name, query }) => row(`subquery ${name}`, shown, declined(query) ?? null)),
    ...(shape.splitting === undefined ? [] : [row("split", matching)]),
    ...(shape.groups === undefined
      ? []
      : [
          row("group", groups),
          ...shape.groups.folded.map((name) => row(`aggregate ${name}`, groups, "computed again over its group"))
        ]),
    ...(page !== undefined ? [row(`page of an index by ${page.order}, read by ${page.readers} views`, page.rows)] : []),
    ...(page?.filtered === undefined ? [] : [row(page.filtered.way, page.filtered.rows)]),
    ...(page === undefined && shape.windowed
      ? [row("window", groups || matching)]
      : page === undefined && shape.sort.length > 0
        ? [row("sort when read", matching)]
        : []),
    ...(shape.only ? [row("only", shown)] : []),
    row("project", shown)
  ]
}
