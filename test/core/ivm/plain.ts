/**
 * The oracle of the engine's tests: a fresh run of a query by the plain evaluator over the same store.
 */
import { Either } from "effect"
import { rerun } from "../../../src/core/ivm/rerun.ts"
import { TrackedSource } from "../../../src/core/ivm/source.ts"
import type { Store } from "../../../src/core/ivm/store.ts"
import { toJson } from "../../../src/core/surql/json.ts"
import { parseSelect } from "../../../src/core/surql/parse.ts"
import type { Value } from "../../../src/core/surql/value.ts"

export interface PlainResult {
  readonly flat: ReadonlyArray<readonly [string, number]>
  readonly tree: ReadonlyArray<unknown>
}

export const plainRows = (store: Store, text: string, params: { readonly [name: string]: Value }): PlainResult => {
  const select = parseSelect(text)
  if (Either.isLeft(select)) throw new Error(select.left.message)
  const { rows } = rerun(select.right, params, new TrackedSource(store), store)()
  return { flat: rows.map((row) => [row.key, row.version]), tree: rows.map((row) => toJson(row.value)) }
}
