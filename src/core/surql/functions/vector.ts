/**
 * `vector::*`: arithmetic, distances and similarities of equally long arrays of numbers.
 *
 * Why so: each is a fold over pairs; lengths are checked in one place.
 */
import { add, divide, multiply, subtract } from "../arithmetic.ts"
import { raise } from "../failure.ts"
import { indexKey } from "../key.ts"
import { isNumber, toFloat } from "../number.ts"
import type { NumberValue } from "../number.ts"
import { render } from "../text.ts"
import { float } from "../value.ts"
import type { Value } from "../value.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

type Vector = ReadonlyArray<NumberValue>

const checked = (name: string, ...vectors: ReadonlyArray<ReadonlyArray<Value>>): void => {
  vectors.forEach((v, i) => { for (const n of v) if (!isNumber(n)) raise(`Incorrect arguments for function ${name}(). Argument ${i + 1} was the wrong type. Expected \`number\` but found \`${render(n)}\``) })
  if (vectors.some((v) => v.length !== vectors[0]!.length)) raise(`Incorrect arguments for function ${name}(). The two vectors must be of the same dimension.`)
}

const pair = (body: (a: Vector, b: Vector) => Value): Fn => define<[Vector, Vector]>(["array", "array"], ([a, b], _, name) => {
  checked(name, a, b)
  return body(a, b)
})

const zip = (f: (a: Value, b: Value) => Value): Fn => pair((a, b) => a.map((x, i) => f(x, b[i])))

const sum = (a: ReadonlyArray<number>): number => a.reduce((x, y) => x + y, 0)

const dot = (a: Vector, b: Vector): Value => a.reduce<Value>((total, x, i) => add(total, multiply(x, b[i])), 0)

const norm = (a: Vector): number => Math.sqrt(sum(a.map((x) => toFloat(x) ** 2)))

const gaps = (a: Vector, b: Vector): Array<number> => a.map((x, i) => Math.abs(toFloat(x) - toFloat(b[i]!)))

const cross = (a: Vector, b: Vector): Value => {
  if (a.length !== 3 || b.length !== 3) return raise("Incorrect arguments for function vector::cross(). Both vectors must have a dimension of 3.")
  const at = (i: number, j: number): Value => subtract(multiply(a[i], b[j]), multiply(a[j], b[i]))
  return [at(1, 2), at(2, 0), at(0, 1)]
}

const cosine = (a: Vector, b: Vector): number => toFloat(dot(a, b) as NumberValue) / (norm(a) * norm(b))

const jaccard = (a: Vector, b: Vector): number => {
  const x = new Set(a.map(indexKey)), y = new Set(b.map(indexKey))
  const shared = [...x].filter((k) => y.has(k)).length
  return shared / (x.size + y.size - shared)
}

const pearson = (a: Vector, b: Vector): number => {
  const x = a.map(toFloat), y = b.map(toFloat), mx = sum(x) / x.length, my = sum(y) / y.length
  const cov = sum(x.map((v, i) => (v - mx) * (y[i]! - my)))
  return cov / (Math.sqrt(sum(x.map((v) => (v - mx) ** 2))) * Math.sqrt(sum(y.map((v) => (v - my) ** 2))))
}

const single = (body: (a: Vector) => Value): Fn => define<[Vector]>(["array"], ([a], _, name) => {
  checked(name, a)
  return body(a)
})

export const vector: Table = {
  "vector::add": zip(add), "vector::subtract": zip(subtract), "vector::multiply": zip(multiply), "vector::divide": zip(divide),
  "vector::angle": pair((a, b) => float(Math.acos(cosine(a, b)))),
  "vector::cross": pair(cross),
  "vector::dot": pair(dot),
  "vector::magnitude": single((a) => float(norm(a))),
  "vector::normalize": single((a) => a.map((x) => float(toFloat(x) / norm(a)))),
  "vector::project": pair((a, b) => { const k = toFloat(dot(a, b) as NumberValue) / toFloat(dot(b, b) as NumberValue); return b.map((x) => float(toFloat(x) * k)) }),
  "vector::scale": define<[Vector, NumberValue]>(["array", "number"], ([a, k], _, name) => { checked(name, a); return a.map((x) => multiply(x, k)) }),
  "vector::distance::chebyshev": pair((a, b) => float(Math.max(0, ...gaps(a, b)))),
  "vector::distance::euclidean": pair((a, b) => float(Math.sqrt(sum(gaps(a, b).map((g) => g * g))))),
  "vector::distance::hamming": pair((a, b) => gaps(a, b).filter((g) => g !== 0).length),
  "vector::distance::manhattan": pair((a, b) => a.reduce<Value>((total, x, i) => { const d = subtract(x, b[i]); return add(total, toFloat(d as NumberValue) < 0 ? subtract(0, d) : d) }, 0)),
  "vector::distance::minkowski": define<[Vector, Vector, NumberValue]>(["array", "array", "number"], ([a, b, p], _, name) => {
    checked(name, a, b)
    return float(Math.pow(sum(gaps(a, b).map((g) => Math.pow(g, toFloat(p)))), 1 / toFloat(p)))
  }),
  "vector::similarity::jaccard": pair((a, b) => float(jaccard(a, b))),
  "vector::similarity::pearson": pair((a, b) => float(pearson(a, b))),
  "vector::similarity::cosine": pair((a, b) => float(cosine(a, b)))
}
