/**
 * The oracle of the end-to-end tests: a fresh run of a query by the plain evaluator over the test's own mirror of the
 * data.
 *
 * Why the evaluator and not something else: it is plain enough to be read, it is tested by itself, and law L1 is stated
 * in its terms. It shares nothing with the engine but the meaning of expressions.
 */
import { Either } from "effect"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../src/core/surql/evaluate/scope.ts"
import { selectRows } from "../../src/core/surql/evaluate/select/select.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"
import { fromJson, toJson } from "../../src/core/surql/values/json.ts"
import type { Value } from "../../src/core/surql/values/value.ts"
import type { JsonObject } from "../data/dataset.ts"
import type { Mirror } from "./Mirror.ts"

export interface Fresh {
  /** Rows as they leave the service. */
  readonly rows: ReadonlyArray<unknown>
  /** Record ids in result order. */
  readonly keys: ReadonlyArray<string>
}

/** `tables`: the first one named holds all there is to read, or the query looks into others too. */
export const freshRun = (
  surql: string,
  params: JsonObject,
  mirror: Mirror,
  tables: "first" | "all" = "first"
): Fresh => {
  const parsed = parseSelect(surql)
  if (Either.isLeft(parsed)) throw new Error(`${surql}: ${parsed.left.message}`)
  const table = tables === "all" ? undefined : /FROM (\w+)/.exec(surql)?.[1]
  const typed = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, fromJson(value)])) as {
    [name: string]: Value
  }
  const answer = selectRows(parsed.right, {
    source: fromRecords(mirror.all(table).map((held) => held.doc)),
    params: typed,
    budget: makeBudget(1e9, "none"),
    onFailure: "leaveOut"
  })
  if (Either.isLeft(answer)) throw new Error(`${surql}: ${JSON.stringify(answer.left)}`)
  return {
    rows: answer.right.rows.map((row) => toJson(row.value)),
    keys: answer.right.rows.map((row) => row.record?.text ?? "no record")
  }
}
