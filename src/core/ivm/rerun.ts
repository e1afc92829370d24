/**
 * A whole run of a query by the plain evaluator over the engine's store, rows named by their records.
 *
 * What {@link Recomputed} repeats; failing rows are left out and listed (D2a).
 */
import { Either } from "effect"
import type { Select } from "../surql/ast.ts"
import { selectRows } from "../surql/select.ts"
import type { Value } from "../surql/value.ts"
import type { Outcome } from "./recomputed.ts"
import { queryBudget, type TrackedSource } from "./source.ts"
import type { Store } from "./store.ts"

/** A query that fails as a whole shows no rows and names the reason under an empty id. */
export const rerun = (select: Select, params: { readonly [name: string]: Value }, source: TrackedSource, store: Store) => (): Outcome => {
  const selected = selectRows(select, { source, params, budget: queryBudget(), onFailure: "leaveOut" })
  if (Either.isLeft(selected)) return { rows: [], errors: [{ id: "", reason: selected.left.reason }] }
  const seen = new Map<string, number>()
  const rows = selected.right.rows.map(({ record, value }) => {
    const id = record?.text ?? ""
    const times = (seen.get(id) ?? 0) + 1
    seen.set(id, times)
    return { key: times === 1 ? id : `${id}#${times}`, version: record === undefined ? 0 : store.get(record)?.version ?? 0, value }
  })
  return { rows, errors: selected.right.left.map((left) => ({ id: left.record?.text ?? "", reason: left.reason })) }
}
