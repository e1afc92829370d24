/**
 * A whole run of a query by the plain evaluator over the engine's store, rows named by their records.
 *
 * {@link RecomputedView} repeats it; failing rows are left out and listed (D2a).
 */
import { Either } from "effect"
import { failureOf } from "../../surql/evaluate/failure.ts"
import type { Budget, Slices } from "../../surql/evaluate/scope.ts"
import { type SelectedRow, selectRowsSliced } from "../../surql/evaluate/select/select.ts"
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import type { Value } from "../../surql/values/value.ts"
import { writeOut } from "../../surql/written/paid.ts"
import type { EngineContext } from "../context.ts"
import { digestOf } from "../delta/hash.ts"
import type { Params } from "../query/lift.ts"
import type { Store } from "../store/store.ts"
import { type Outcome, RecomputedView } from "./recomputedView.ts"
import { StoreSource } from "./source.ts"

/**
 * The evaluator of one recomputed view. It runs without a pause at every change, so it may take no more steps than a
 * row. A query that fails as a whole has no rows and one error with an empty id. Rows that would share a key (a record
 * that several sources give, or SPLIT shows several times) are numbered in result order.
 */
export const rerun = (
  select: Select,
  params: { readonly [name: string]: Value },
  source: StoreSource,
  store: Store,
  budgetOf: () => Budget
) =>
  function* (): Slices<Outcome> {
    const budget = budgetOf()
    const selected = yield* selectRowsSliced(select, { source, params, budget, onFailure: "leaveOut" })
    const cost = budget.limit - budget.left
    if (Either.isLeft(selected)) return { rows: [], errors: [{ id: "", failure: selected.left }], cost, bytes: 0 }
    const bytes = budget.byteLimit - budget.bytes
    try {
      return {
        rows: yield* named(selected.right.rows, store, budget),
        errors: selected.right.left.map((left) => ({ id: left.record?.text ?? "", failure: left.failure })),
        cost: budget.limit - budget.left,
        bytes
      }
    } catch (error) {
      return {
        rows: [],
        errors: [{ id: "", failure: failureOf(error) }],
        cost: budget.limit - budget.left,
        bytes: 0
      }
    }
  }

/** Rows processed between two pauses. */
const pauseAfter = 128

/** Rows with their keys and digests; their texts count against the budget of the query. */
function* named(selected: ReadonlyArray<SelectedRow>, store: Store, budget: Budget): Slices<Outcome["rows"]> {
  const seen = new Map<string, number>()
  const rows: Array<Outcome["rows"][number]> = []
  for (const { group, record, value } of selected) {
    if (rows.length % pauseAfter === pauseAfter - 1) yield
    const text = writeOut(budget, value)
    // Stable keys for rows that are no records: a group is named by the values of its keys, any other row by its
    // content.
    const key = record?.text ?? (group === undefined ? text : writeOut(budget, group))
    const times = (seen.get(key) ?? 0) + 1
    seen.set(key, times)
    rows.push({
      key: times === 1 ? key : `${key}#${times}`,
      version: record === undefined ? undefined : (store.get(record)?.version ?? 0),
      value,
      digest: digestOf([text])
    })
  }
  return rows
}

/** A recomputed view, and why it is not maintained. */
export interface Rerun {
  readonly key: string
  readonly text: string
  readonly generation: number
  readonly reason: string
  readonly watchSlot: number
}

/** Makes the recomputed view of a query; `original` is the query with its constants. */
export const makeRecomputedView = (
  original: Select,
  select: Select,
  params: Params,
  { generation, key, reason, text, watchSlot }: Rerun,
  context: Pick<EngineContext, "failing" | "kept" | "store">,
  budgetOf: () => Budget
): RecomputedView => {
  const facts = analyze(original, params)
  const about = {
    key,
    shape: text,
    mainTables: facts.mainTables,
    otherTables: facts.referencedTables,
    only: select.only,
    generation,
    readsAnyTable: facts.reaches || facts.computedSource
  }
  const { store } = context
  const view = new RecomputedView(
    about,
    reason,
    context,
    rerun(select, params, new StoreSource(store), store, budgetOf)
  )
  view.watchSlot = watchSlot
  return view
}
