/**
 * Values that cost nothing to make and cannot be written out: refused when they are made.
 *
 * Why so: a short query must not be able to stop the process, and sharing makes a value of 2^60 parts in sixty steps.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../../src/core/surql/evaluate/select/select.ts"
import { maxLevels, maxParts } from "../../../../src/core/surql/evaluate/weigh.ts"
import { parseStatements } from "../../../../src/core/surql/syntax/parse.ts"

const reason = (text: string): string => {
  const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(e.message))
  const answer = evaluate(statement!, {
    source: fromRecords([]),
    params: {},
    budget: makeBudget(5e6, "TEST", Infinity, 1e9)
  })
  return Either.isLeft(answer) ? answer.left.reason : "answered"
}

const repeated = (n: number, text: (i: number) => string, by = ""): string =>
  Array.from({ length: n }, (_, i) => text(i)).join(by)

const numbers = (n: number): string => `[${repeated(n, String, ",")}]`

const tooLarge = `The query makes a value of more than ${maxParts} parts`

describe("values that double", () => {
  it.each([
    ["in a fold", `RETURN array::fold(${numbers(60)}, 1, |$a, $b| [$a, $a])`],
    ["as objects in a fold", `RETURN array::fold(${numbers(60)}, 1, |$a, $b| { x: $a, y: $a })`],
    ["as texts in a fold", `RETURN array::fold(${numbers(60)}, 'ab', |$a, $b| $a + $a)`],
    ["in a chain", `RETURN [1]${repeated(60, () => ".chain(|$a| [$a, $a])")}`],
    ["by LET", `RETURN { LET $a = 1; ${repeated(60, () => "LET $a = [$a, $a]; ")}$a }`],
    [
      "by a patch",
      `RETURN value::patch({ a: {} }, [${repeated(60, (i) => `{ op: 'copy', path: '/a/x${i}', from: '/a' }`, ", ")}])`
    ]
  ])("%s are refused", (_, text) => {
    expect(reason(text)).toBe(tooLarge)
  })

  it("nest no deeper than can be printed", () => {
    expect(reason(`RETURN array::fold(${numbers(1000)}, 1, |$a, $b| [$a])`)).toBe(
      `The query makes a value that nests deeper than ${maxLevels} levels`
    )
    expect(reason(`RETURN array::fold(${numbers(200)}, 1, |$a, $b| [$a])`)).toBe("answered")
  })

  it("are answered while they are small", () => {
    expect(reason(`RETURN array::fold(${numbers(16)}, 1, |$a, $b| [$a, $a])`)).toBe("answered")
    expect(reason(`RETURN array::len(array::map(array::range(0, 20000), |$v| [$v, { a: $v }]))`)).toBe("answered")
  })
})
