/** What groups keep is paid for, whatever the limit is (D48). */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { queryBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"

const records = Array.from({ length: 100 }, (_, n) => ({ id: Ids.make("t", n), kind: n % 3, text: "x".repeat(640) }))

describe("D48 the bytes of groups", () => {
  for (const limit of [2 ** 20, 2 ** 31, 3 * 2 ** 30, 10 ** 12])
    it(`are taken from a limit of ${limit}`, () => {
      const budget = queryBudget(1e6, 1e6, limit)
      const [statement] = Either.getOrThrow(
        parseStatements("SELECT kind, array::group(text) AS texts FROM t GROUP BY kind")
      )
      const rows = Either.getOrThrow(evaluate(statement!, { source: fromRecords(records), params: {}, budget }))
      expect(rows).toHaveLength(3)
      // A text of 640 characters is ten parts of 64 bytes, and one for its place.
      expect(limit - budget.bytes).toBeGreaterThan(100 * 640)
      expect(limit - budget.bytes).toBeLessThan(4 * 100 * 640)
    })
})
