/**
 * The oracle of the engine's tests: a fresh run of a query by the plain evaluator over the same store.
 */
import { rerun } from "../../../src/core/ivm/rerun.ts"
import { TrackedSource } from "../../../src/core/ivm/source.ts"
import type { Store } from "../../../src/core/ivm/store.ts"
import type { Select } from "../../../src/core/surql/ast.ts"
import { toJson } from "../../../src/core/surql/json.ts"
import type { Value } from "../../../src/core/surql/value.ts"

export interface PlainResult {
  /** `[row key, version, row as JSON]` in result order; no version where the row is no record. */
  readonly rows: ReadonlyArray<readonly [string, number | undefined, unknown]>
  /** Records left out because an expression fails on them. */
  readonly errors: ReadonlySet<string>
}

export const plainRows = (store: Store, select: Select, params: { readonly [name: string]: Value }): PlainResult => {
  const { errors, rows } = rerun(select, params, new TrackedSource(store), store)()
  return { rows: rows.map((row) => [row.key, row.version, toJson(row.value)] as const), errors: new Set(errors.map((error) => error.id)) }
}
