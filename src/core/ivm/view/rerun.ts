/**
 * A whole run of a query by the plain evaluator over the engine's store, rows named by their records.
 *
 * What {@link Recomputed} repeats; failing rows are left out and listed (D2a).
 */
import { Either } from "effect"
import type { Select } from "../../surql/ast.ts"
import { encode } from "../../surql/encode.ts"
import { rowBudget, type Slices } from "../../surql/scope.ts"
import { selectRowsSliced } from "../../surql/select.ts"
import type { Value } from "../../surql/value.ts"
import type { Outcome } from "./recomputedView.ts"
import type { StepLimits, StoreSource } from "./source.ts"
import type { Store } from "../store/store.ts"

/**
 * It runs without a pause at every change, so it may take no more steps than a row. A query that fails as a whole shows
 * no rows and names the reason under an empty id. Rows that would share a key (a record that several sources give, or
 * SPLIT shows several times) are numbered in result order.
 */
export const rerun = (
  select: Select,
  params: { readonly [name: string]: Value },
  source: StoreSource,
  store: Store,
  limits: StepLimits
) =>
  function* (): Slices<Outcome> {
    const budget = rowBudget(limits.rowSteps, limits.queryBytes)
    const selected = yield* selectRowsSliced(select, { source, params, budget, onFailure: "leaveOut" })
    const cost = budget.limit - budget.left
    if (Either.isLeft(selected)) return { rows: [], errors: [{ id: "", reason: selected.left.reason }], cost }
    const seen = new Map<string, number>()
    const rows = selected.right.rows.map(({ group, record, value }) => {
      // Stable keys for rows that are no records: a group is named by the values of its keys, any other row by its
      // content.
      const key = record?.text ?? encode(group ?? value)
      const times = (seen.get(key) ?? 0) + 1
      seen.set(key, times)
      return {
        key: times === 1 ? key : `${key}#${times}`,
        version: record === undefined ? undefined : (store.get(record)?.version ?? 0),
        value
      }
    })
    return {
      rows,
      errors: selected.right.left.map((left) => ({ id: left.record?.text ?? "", reason: left.reason })),
      cost
    }
  }
