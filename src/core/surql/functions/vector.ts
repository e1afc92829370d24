/**
 * `vector::*`: arithmetic, distances and similarities of equally long arrays of numbers.
 *
 * Why so: each is a fold over pairs; lengths are checked in one place.
 */
import {
  addWrapping as add,
  divide,
  floatPower,
  multiplyWrapping as multiply,
  subtractWrapping as subtract
} from "../evaluate/arithmetic.ts"
import { ownText, raise } from "../evaluate/failure.ts"
import { indexKey } from "../values/key.ts"
import type { NumberValue } from "../values/number.ts"
import { isNumber, toFloat, WideDecimal } from "../values/number.ts"
import { equal } from "../values/order.ts"
import { render } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import { Decimal, float } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

type Vector = ReadonlyArray<NumberValue>

const numbers = (name: string, ...vectors: ReadonlyArray<ReadonlyArray<Value>>): void =>
  vectors.forEach((v, i) => {
    for (const n of v)
      if (!isNumber(n))
        raise`Incorrect arguments for function ${ownText(name)}(). Argument ${ownText(i + 1)} was the wrong type. Expected \`number\` but found \`${render(n)}\``
  })

const checked = (name: string, a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): void => {
  numbers(name, a, b)
  if (a.length !== b.length)
    raise`Incorrect arguments for function ${ownText(name)}(). The two vectors must be of the same dimension.`
}

const pair = (body: (a: Vector, b: Vector) => Value): Fn =>
  define<[Vector, Vector]>(["array", "array"], ([a, b], _, name) => {
    checked(name, a, b)
    return body(a, b)
  })

const zip = (f: (a: Value, b: Value) => Value): Fn => pair((a, b) => a.map((x, i) => f(x, b[i])))

/** The sum of an empty list is -0, as in the database. */
const sum = (a: ReadonlyArray<number>): number => a.reduce((x, y) => x + y, -0)

const dot = (a: Vector, b: Vector): Value => a.reduce<Value>((total, x, i) => add(total, multiply(x, b[i])), 0)

const norm = (a: Vector): number => Math.sqrt(sum(a.map((x) => toFloat(x) ** 2)))

const gaps = (a: Vector, b: Vector): Array<number> => a.map((x, i) => Math.abs(toFloat(x) - toFloat(b[i]!)))

const cross = (a: Vector, b: Vector): Value => {
  if (a.length !== 3 || b.length !== 3)
    return raise`Incorrect arguments for function vector::cross(). Both vectors must have a dimension of 3.`
  const at = (i: number, j: number): Value => subtract(multiply(a[i], b[j]), multiply(a[j], b[i]))
  return [at(1, 2), at(2, 0), at(0, 1)]
}

const cosine = (a: Vector, b: Vector): Value => divide(dot(a, b), float(norm(a) * norm(b)))

/** Key of a number: a float counts by its bits, not as a decimal near it. */
const exactKey = (v: NumberValue): unknown =>
  v instanceof Decimal && !WideDecimal.mul(v.value, 2 ** 28).isInteger() ? `dec ${v.value.toFixed()}` : indexKey(v)

/** Vectors may differ in dimension; a number that the second repeats counts each time. */
const jaccard: Fn = define<[Vector, Vector]>(["array", "array"], ([a, b], _, name) => {
  numbers(name, a, b)
  const all = new Set(a.map(exactKey))
  let shared = 0
  for (const key of b.map(exactKey)) {
    if (all.has(key)) shared++
    all.add(key)
  }
  return float(shared / all.size)
})

/** NaN instead of a failure if the divisor is zero. */
const divided = (a: Value, b: Value): Value => {
  const x = toFloat(a as NumberValue),
    y = toFloat(b as NumberValue)
  return x !== x || y !== y || y === 0 ? NaN : divide(a, b)
}

const pearson = (a: Vector, b: Vector): number => {
  const x = a.map(toFloat),
    y = b.map(toFloat),
    mx = sum(x) / x.length,
    my = sum(y) / y.length
  const spread = (values: ReadonlyArray<number>, m: number): number =>
    values.length === 1 ? 0 : Math.sqrt(sum(values.map((v) => (v - m) ** 2)) / values.length)
  return sum(x.map((v, i) => (v - mx) * (y[i]! - my))) / x.length / (spread(x, mx) * spread(y, my))
}

const single = (body: (a: Vector) => Value): Fn =>
  define<[Vector]>(["array"], ([a], _, name) => {
    numbers(name, a)
    return body(a)
  })

export const vector: Table = {
  "vector::add": zip(add),
  "vector::subtract": zip(subtract),
  "vector::multiply": zip(multiply),
  "vector::divide": zip(divided),
  "vector::angle": pair((a, b) =>
    float(Math.acos(toFloat(divided(dot(a, b), float(norm(a) * norm(b))) as NumberValue)))
  ),
  "vector::cross": pair(cross),
  "vector::dot": pair(dot),
  "vector::magnitude": single((a) => float(norm(a))),
  "vector::normalize": single((a) => {
    const length = float(norm(a))
    return a.map((x) => divided(x, length))
  }),
  "vector::project": pair((a, b) => {
    const k = divided(dot(a, b), float(sum(b.map((x) => toFloat(x) ** 2))))
    return b.map((x) => multiply(k, x))
  }),
  "vector::scale": define<[Vector, NumberValue]>(["array", "number"], ([a, k], _, name) => {
    numbers(name, a)
    return a.map((x) => multiply(x, k))
  }),
  "vector::distance::chebyshev": pair((a, b) =>
    float(gaps(a, b).reduce((most, gap) => (gap > most ? gap : most), -Number.MAX_VALUE))
  ),
  "vector::distance::euclidean": pair((a, b) =>
    float(Math.sqrt(sum(a.map((x, i) => toFloat(subtract(x, b[i]) as NumberValue) ** 2))))
  ),
  "vector::distance::hamming": pair((a, b) => a.filter((x, i) => !equal(x, b[i])).length),
  "vector::distance::manhattan": pair((a, b) =>
    a.reduce<Value>((total, x, i) => {
      const d = subtract(x, b[i])
      return add(total, toFloat(d as NumberValue) < 0 ? subtract(0, d) : d)
    }, 0)
  ),
  "vector::distance::minkowski": define<[Vector, Vector, NumberValue]>(
    ["array", "array", "number"],
    ([a, b, p], _, name) => {
      checked(name, a, b)
      return float(floatPower(sum(gaps(a, b).map((g) => floatPower(g, toFloat(p)))), 1 / toFloat(p)))
    }
  ),
  "vector::similarity::jaccard": jaccard,
  "vector::similarity::pearson": pair((a, b) => float(pearson(a, b))),
  "vector::similarity::cosine": pair(cosine)
}
