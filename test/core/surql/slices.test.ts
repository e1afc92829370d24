/**
 * Sliced evaluation: the same answer, with pauses.
 *
 * Why so: a long query must not keep the host from its heartbeats, so the evaluator offers places to stop.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate, evaluateSliced } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"

const source = fromRecords(Array.from({ length: 3000 }, (_, i) => ({ id: RecordIds.make("n", i), v: i % 7 })))

describe("slices", () => {
  it.each([
    "SELECT * FROM n WHERE v > 3",
    "SELECT v FROM n WHERE v + 1 > 0 ORDER BY v LIMIT 5",
    "SELECT v, count() AS c FROM n GROUP BY v",
    "RETURN 1"
  ])("%s pauses while it works and answers the same", (query) => {
    const [statement] = Either.getOrThrow(parseStatements(query))
    const options = () => ({ source, params: {}, budget: makeBudget(1e6, "TEST_STEPS") })
    const run = evaluateSliced(statement!, options())
    let pauses = 0
    let step = run.next()
    while (step.done !== true) {
      pauses++
      step = run.next()
    }
    expect(step.value).toEqual(evaluate(statement!, options()))
    expect(pauses >= 10).toBe(query.startsWith("SELECT"))
  })
})
