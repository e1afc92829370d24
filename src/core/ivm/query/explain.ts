/**
 * The operators of a maintained view, for `/debug/view` (D13).
 */
import type { Costs } from "../workCounters.ts"
import type { Shape } from "./shape.ts"

/** One operator of a plan, as `/debug/view` shows it (D13). */
export interface PlanRow {
  readonly operator: string
  readonly incremental: boolean
  /** Why it is recomputed; null where it is maintained. */
  readonly reason: string | null
  /** Rows held. */
  readonly rows: number
  /** Work of the last step that reached it and of all steps, in rows looked at (recomputed: in steps of evaluation). */
  readonly last_cost: number
  readonly total_cost: number
}

export interface PlanFigures {
  readonly tables: ReadonlyArray<string>
  readonly matching: number
  readonly shown: number
  /** Groups held; 0 without GROUP. */
  readonly groups: number
  /** Of a page: order and rows of the index that it reads, and how many views do; undefined for other views. */
  readonly page:
    | {
        readonly order: string
        readonly rows: number
        readonly readers: number
        /** How it comes by its rows, and how many it knows, where a part of the filter is decided by no index. */
        readonly filtered: { readonly way: string; readonly rows: number } | undefined
      }
    | undefined
  /** How many views show the same rows, which are kept once; 0 where the view has its own. */
  readonly sharing: number
  /** Rows evaluated. */
  readonly costs: Costs
  /** Why a subquery is run again for each row; undefined where its result is maintained. */
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
