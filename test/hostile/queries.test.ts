/**
 * Queries that are made to stop a process (D48): each ends with an answer or a declared error, within its budget.
 *
 * The table of `attacks/queries.ts` over the evaluator that `/proxy/query` and views share, from text to value. What is
 * checked is counted: steps and bytes that were charged, steps between two pauses, and how much the process grew; how
 * long it takes is only bounded by the test's end.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { type Budget, limits, queryBudget, type Slices } from "../../src/core/surql/evaluate/scope.ts"
import { evaluateSliced } from "../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../src/core/surql/syntax/parse.ts"
import * as RecordIds from "../../src/core/surql/values/recordId.ts"
import { doubling, layered } from "./attacks/doubling.ts"
import { declared, queries } from "./attacks/queries.ts"

const many = Array.from({ length: 200 }, (_, i) => ({
  id: RecordIds.make("t", i),
  n: i,
  tags: Array.from({ length: 200 }, (__, k) => k)
}))
const source = fromRecords([...many, ...layered(40)])
const heap = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external

/** Runs to the end; the most steps that were charged between two pauses. What is refused is charged and not done. */
const stepped = <A, E>(slices: Slices<Either.Either<A, E>>, budget: Budget) => {
  for (let most = 0, left = budget.left; ; left = budget.left) {
    const step = slices.next()
    if (step.done === true && Either.isLeft(step.value)) return { answer: step.value, most }
    most = Math.max(most, left - budget.left)
    if (step.done === true) return { answer: step.value, most }
  }
}

describe("queries", () => {
  it.each([...queries, ...doubling])(
    "D48 %s ends with an answer or a declared error, within its budget",
    (_, query) => {
      const parsed = parseStatements(query)
      if (Either.isLeft(parsed)) return expect(parsed.left.message).not.toBe("")
      for (const statement of parsed.right) {
        const budget = queryBudget(),
          before = heap()
        const slices = evaluateSliced(statement, { source, params: {}, budget, maxRows: limits.queryRows.value })
        const { answer, most } = stepped(slices, budget)
        // A row is evaluated without a pause, and a step stands for some ten nanoseconds.
        expect(most).toBeLessThanOrEqual(limits.rowSteps.value + 2048)
        expect(heap() - before).toBeLessThan(512 * 1024 * 1024)
        if (Either.isLeft(answer))
          expect(answer.left.reason).toMatch(declared), expect(answer.left.reason.length).toBeLessThan(20_000)
        else expect(budget.left).toBeGreaterThanOrEqual(0), expect(budget.bytes).toBeGreaterThanOrEqual(0)
      }
    }
  )
})
