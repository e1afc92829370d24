/**
 * What functions and operators charge (D48): in proportion to what they walk and make, counted, never by a clock.
 *
 * A table over every function there is: each is called with arguments that double in size. One that is not named here
 * as looking at one place must charge about twice the steps; all must charge no fewer bytes than the answer takes. A
 * function that somebody adds is tested as soon as it is in the table of functions.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { partsOf } from "../../../../src/core/surql/evaluate/charge.ts"
import { functions } from "../../../../src/core/surql/evaluate/functions.ts"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { queryBudget } from "../../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../../src/core/surql/evaluate/select/select.ts"
import { functionsWithOwnCost } from "../../../../src/core/surql/functions/costs.ts"
import { parseStatements } from "../../../../src/core/surql/syntax/parse.ts"
import type { Value } from "../../../../src/core/surql/values/value.ts"
import { call, charged, kinds, shapes, sizeable } from "../costCases.ts"

describe("functions", () => {
  it("D48 each that takes something of any size is tested with something that grows", () => {
    expect(sizeable.length).toBeGreaterThan(130)
    expect(sizeable.filter((name) => !shapes.some(([pattern]) => pattern.test(name)))).toEqual([])
    expect(functionsWithOwnCost.filter((name) => !functions.has(name))).toEqual([])
  })

  it.each(sizeable)("D48 %s charges twice as much for twice the size", (name) => {
    const args = shapes.find(([pattern]) => pattern.test(name))![1]
    // Large enough that what every call charges does not count, small enough for what takes the square.
    const size = /::(distance|similarity)::/.test(name) ? 60 : 400
    const [small, large] = [call(name, args, size), call(name, args, 2 * size)]
    expect(large.steps / small.steps).toBeGreaterThan(1.7)
    expect(large.steps / small.steps).toBeLessThan(5)
    for (const { bytes, outcome } of [small, large]) {
      if (Either.isRight(outcome)) {
        const answer = outcome.right
        const least = Array.isArray(answer) ? 8 * answer.length : typeof answer === "string" ? answer.length / 2 : 0
        expect(bytes).toBeGreaterThanOrEqual(least)
      }
    }
  })

  it("D48 what makes more than it takes is charged for all of it, before it is made", () => {
    const bytes = (text: string): number => charged(text).bytes
    expect(bytes("RETURN array::windows(array::range(0, 2000), 1000)")).toBeGreaterThan(8 * 1000 * 1000)
    expect(bytes("RETURN array::transpose([array::range(0, 5000), array::range(0, 5000), [1]])")).toBeGreaterThan(
      8 * 3 * 5000
    )
    expect(bytes("RETURN array::combine(array::range(0, 1000), array::range(0, 1000)).len()")).toBeGreaterThan(
      8 * 2 * 1_000_000
    )
    expect(bytes("RETURN array::flatten(array::repeat(array::range(0, 1000), 1000)).len()")).toBeGreaterThan(
      8 * 1_000_000
    )
    expect(bytes("RETURN string::repeat('x', 1000000)")).toBeGreaterThanOrEqual(1_000_000)
  })
})

/** Two values of a size on both sides of an operator. */
const sides: ReadonlyArray<readonly [string, string]> = [
  ...["=", "!=", "<", "<=", ">", ">=", "+", "*=", "?=", "IN", "NOT IN", "CONTAINS", "CONTAINSNOT"].flatMap(
    (op) =>
      [
        [op, "numbers"],
        [op, "lists"]
      ] as const
  ),
  ...["CONTAINSALL", "CONTAINSANY", "CONTAINSNONE", "ALLINSIDE", "ANYINSIDE", "NONEINSIDE"].flatMap(
    (op) =>
      [
        [op, "numbers"],
        [op, "set"],
        [op, "strings"]
      ] as const
  ),
  ...["=", "+", "IN", "CONTAINS"].map((op) => [op, "text"] as const),
  ...["=", "<", "+"].map((op) => [op, "object"] as const)
]

describe("operators", () => {
  it.each(sides)("D48 %s of two %s charges at least twice as much for twice the size", (op, kind) => {
    const value = (n: number): Value =>
      Either.getOrThrowWith(charged(`RETURN ${kinds[kind]!(n)}`).outcome, (why) => new Error(why))
    const steps = (n: number): number => charged(`RETURN $a ${op} $b`, { a: value(n), b: value(n) }).steps
    expect(steps(2000)).toBeGreaterThan(1.7 * steps(1000))
  })

  it("D48 primitives are free: plain fields and comparisons of small values charge nothing", () => {
    for (const text of [
      "$a = $b",
      "$a < 5",
      "$a + 1",
      "$s = 'abc'",
      "$s IN 'abcdef'",
      "$s + 'abc'",
      "$a AND $b",
      "$o.x = 1"
    ]) {
      expect(charged(`RETURN ${text}`, { a: 1, b: 2, s: "abc", o: { x: 1 } })).toMatchObject({ steps: 0, bytes: 0 })
    }
  })
})

describe("limits", () => {
  const reason = (text: string): string => {
    const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(e.message))
    return Either.match(
      evaluate(statement!, {
        source: fromRecords([]),
        params: {},
        budget: queryBudget(undefined, undefined, 1_000_000)
      }),
      { onLeft: (why) => why.reason, onRight: (v) => `answered ${partsOf(v, 1e9)} parts` }
    )
  }
  it("D48 bytes: the error names limit and setting", () => {
    expect(reason("RETURN array::windows(array::range(0, 1000), 500)")).toBe(
      `The query makes more than 1000000 bytes; raise SVC_QUERY_BYTES to allow it`
    )
  })
})
