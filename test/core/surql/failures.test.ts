/**
 * What a failure says to readers who may not see the record it failed on (D72): its kind is the same for any two values
 * of one type, and holds neither.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { functions } from "../../../src/core/surql/evaluate/functions.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { fromJson } from "../../../src/core/surql/values/json.ts"
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"
import { Duration, Float, type Obj, type Value } from "../../../src/core/surql/values/value.ts"

const marks = ["qzxvkw", "wkvxzq"] as const
const numbers = [7130417, 9370319] as const

/** Values of one shape, one for each of the two databases. */
const shapes: ReadonlyArray<(mark: string, number: number) => Value> = [
  (mark) => mark,
  (_, number) => number,
  (_, number) => -number,
  (_, number) => BigInt(number) * 900_000_000_000n,
  (_, number) => number + 0.5,
  (_, number) => new Float(number),
  (mark) => [mark],
  (_, number) => [number, number, number],
  (mark, number) => ({ [mark]: number }),
  (mark) => RecordIds.make(mark, mark),
  (mark) => ({ op: mark, path: mark, value: mark })
]
const plain: ReadonlyArray<Value> = [1, "a", [1]]

const source = (mark: string, number: number) =>
  fromRecords(
    [1, 2].map(
      (key): Obj => ({ ...(fromJson({ mark, number, list: [mark] }) as Obj), id: RecordIds.parse(`t:${key}`)! })
    )
  )

const parsed = new Map<string, ReturnType<typeof parse>>()
const parse = (text: string) =>
  Either.getOrThrowWith(parseStatements(text), ({ message }) => new Error(`${text}: ${message}`))[0]!
const statementOf = (text: string) => {
  const statement = parsed.get(text) ?? parse(text)
  parsed.set(text, statement)
  return statement
}

/** Why an expression fails over either of two values; undefined where it does not fail over both. */
const pairOf = (text: string, shape: (typeof shapes)[number], more: { readonly [name: string]: Value } = {}) => {
  const [one, other] = marks.map((mark, i) =>
    evaluate(statementOf(text), {
      source: source(mark, numbers[i]!),
      params: { ...more, v: shape(mark, numbers[i]!) },
      budget: makeBudget(5e3, "TEST_STEPS")
    })
  )
  return Either.isLeft(one!) && Either.isLeft(other!) ? ([one.left, other.left] as const) : undefined
}

/** Counts what fails; a kind that says something of the value, or nothing at all, goes to `wrong`. */
const failing = (texts: Iterable<string>, others: ReadonlyArray<Value>, wrong: Array<string>): number => {
  let count = 0
  for (const text of texts)
    for (const shape of shapes)
      for (const p of others) {
        const failures = pairOf(text, shape, { p })
        if (failures === undefined) continue
        count++
        const [{ kind }, other] = failures
        const isTold = [...marks, ...numbers].some((secret) => kind.includes(String(secret)))
        if (kind !== other.kind || isTold || !/\w/.test(kind)) wrong.push(`${text}: ${kind} | ${other.kind}`)
      }
  return count
}

const arguments_ = (count: number): ReadonlyArray<ReadonlyArray<"$v" | "$p">> =>
  count === 0
    ? []
    : Array.from({ length: count }, (_, at) => Array.from({ length: count }, (_, i) => (i === at ? "$v" : "$p")))

describe("D72 the kind of a failure holds no value", () => {
  it("of any function, with the value as any of its arguments", () => {
    const calls = [...functions.keys()].flatMap((name) => {
      const { max, min } = functions.get(name)!
      const counts = [1, 2, 3, 4].filter((count) => count >= min && count <= Math.min(max, min + 2))
      // A method and no function.
      return name === "value::chain"
        ? []
        : counts.flatMap(arguments_).map((given) => `RETURN ${name}(${given.join(", ")})`)
    })
    const wrong: Array<string> = []
    expect(failing(calls, plain, wrong)).toBeGreaterThan(5_000)
    expect(wrong).toEqual([])
  })
  it("of any operator, cast, coercion, path and statement", () => {
    const operators = ["+", "-", "*", "/", "%", "**", "<", "CONTAINS", "INSIDE", "??", "AND", "OUTSIDE", "IN"]
    const types = ["int", "float", "decimal", "number", "bool", "datetime", "duration", "uuid", "record", "record<a>"]
    const more = ["array", "array<int>", "array<int, 1>", "set<int>", "object", "bytes", "regex", "range", "point"]
    const texts = [
      ...operators.flatMap((op) => [`$v ${op} $p`, `$p ${op} $v`, `$v ${op} $v`]),
      ...[...types, ...more].flatMap((type) => [
        `<${type}> $v`,
        `{ LET $x: ${type} = $v; RETURN $x }`,
        `(|$x: ${type}| $x)($v)`,
        `(|| -> ${type} { RETURN $v })()`
      ]),
      "-$v",
      "$v()",
      "$v.nothing()",
      "$v.len()",
      "t:[$v, 1h].x + $v",
      "(SELECT * FROM t LIMIT $v)",
      "(SELECT * FROM t START $v)",
      "(SELECT VALUE mark + 1 FROM t)",
      "(SELECT VALUE number + list FROM t)",
      "(SELECT math::sum(mark) FROM t GROUP ALL)",
      "(SELECT mark FROM ONLY t)",
      "(SELECT * FROM t ORDER BY mark + 1)",
      "(SELECT * FROM t WHERE <datetime> mark)",
      "t:1.mark + 1",
      "[1, 2].map(|$x| $x + $v)",
      "{ a: $v + $p }"
    ]
    const wrong: Array<string> = []
    const statements = texts.map((text) => `RETURN ${text}`)
    expect(failing(statements, [...plain, new Duration(1, 0)], wrong)).toBeGreaterThan(1_000)
    expect(wrong).toEqual([])
  })
})
