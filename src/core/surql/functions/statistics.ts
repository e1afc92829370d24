/**
 * `math::*` over arrays of numbers: sums, means, quantiles, spread.
 *
 * Why so: these are what GROUP BY calls. Sums keep the kind of number; quantiles and deviations are floats, computed
 * the way the database does (linear interpolation, sample variance).
 */
import {
  add,
  addWrapping,
  divide,
  multiplyWrapping,
  raisePower,
  subtract,
  subtractWrapping
} from "../evaluate/arithmetic.ts"
import { ownText, raise } from "../evaluate/failure.ts"
import { indexKey } from "../values/key.ts"
import type { NumberValue } from "../values/number.ts"
import { compareNumbers, decimal, isNumber, toFloat, WideDecimal } from "../values/number.ts"
import { render } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import { Decimal, Float, float } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

type Numbers = ReadonlyArray<NumberValue>

/** A function of an array of numbers; any other element is an argument error. */
const over = (
  params: ReadonlyArray<string>,
  body: (numbers: Numbers, args: ReadonlyArray<Value>, name: string) => Value
): Fn =>
  define<ReadonlyArray<Value>>(["any", ...params], ([a, ...rest], _, name) => {
    if (!Array.isArray(a))
      raise`Incorrect arguments for function ${ownText(name)}(). Argument 1 was the wrong type. Expected \`array<number>\` but found \`${render(a)}\``
    for (const v of a as ReadonlyArray<Value>)
      if (!isNumber(v))
        raise`Incorrect arguments for function ${ownText(name)}(). Argument 1 was the wrong type. Expected \`number\` but found \`${render(v)}\` when coercing an element of \`array<number>\``
    return body(a as Numbers, rest, name)
  })

const sorted = (n: Numbers): Numbers => n.slice().sort(compareNumbers)

const sum = (n: Numbers): Value => n.reduce<Value>((a, b) => addWrapping(a, b), 0)

const median = (n: Numbers): Value => {
  const s = sorted(n),
    middle = Math.floor(s.length / 2)
  if (s.length === 0) return undefined
  return float(s.length % 2 === 1 ? toFloat(s[middle]!) : (toFloat(s[middle - 1]!) + toFloat(s[middle]!)) / 2)
}

/** Linear interpolation between the two nearest ranks, in the database's order of operations. */
const quantile = (s: Numbers, percent: number): number => {
  if (s.length === 0 || !(percent >= 0 && percent <= 100)) return NaN
  const at = (s.length - 1) * percent * (1 / 100),
    low = Math.floor(at)
  const a = toFloat(s[low]!)
  return at - low <= Number.EPSILON ? a : a + (toFloat(s[Math.ceil(at)]!) - a) * (at - low)
}

const midhinge = (s: Numbers): number => (quantile(s, 75) + quantile(s, 25)) * 0.5

const trimean = (n: Numbers): number => {
  const s = sorted(n),
    middle = median(n)
  return middle === undefined ? NaN : (midhinge(s) + toFloat(middle as NumberValue)) * 0.5
}

/** Adds the numbers one by one to a float, from the first decimal on to a decimal, and divides by the count. */
const mean = (n: Numbers): Value => {
  const total = n.reduce<Value>(add, new Float(0))
  return n.length === 0
    ? NaN
    : divide(total, total instanceof Decimal ? new Decimal(new WideDecimal(n.length)) : n.length)
}

const variance = (n: Numbers): Value => {
  if (n.length < 2) return n.length === 0 ? NaN : new Float(0)
  const m = mean(n)
  const squares = n.map((v) => raisePower(subtract(v, m), 2))
  return divide(squares.reduce<Value>(add, new Float(0)), n.length - 1)
}

const deviation = (n: Numbers): Value => {
  const v = variance(n)
  return v instanceof Decimal
    ? (decimal(new WideDecimal(v.value).sqrt()) ?? NaN)
    : float(Math.sqrt(toFloat(v as NumberValue)))
}

const mode = (n: Numbers): Value => {
  const counts = new Map<unknown, { readonly value: NumberValue; count: number }>()
  for (const value of n) {
    const found = counts.get(indexKey(value))
    if (found === undefined) counts.set(indexKey(value), { value, count: 1 })
    else found.count++
  }
  let best: { readonly value: NumberValue; count: number } | undefined
  for (const c of counts.values())
    if (
      best === undefined ||
      c.count > best.count ||
      (c.count === best.count && compareNumbers(c.value, best.value) > 0)
    )
      best = c
  return best === undefined ? NaN : best.value
}

const nearestRank = (n: Numbers, percent: Value): Value => {
  const s = sorted(n),
    p = isNumber(percent) ? toFloat(percent) : NaN
  if (s.length === 0 || !(p >= 0 && p <= 100)) return NaN
  return s[Math.min(Math.floor(s.length * (p * (1 / 100))), s.length - 1)]
}

/** Sifts a binary heap after an insert or after its top was removed; `order` says which is greater. */
const sink = (heap: Array<NumberValue>, order: (a: NumberValue, b: NumberValue) => number): void => {
  let at = 0
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && order(heap[child]!, heap[child + 1]!) <= 0) child++
    ;[heap[at], heap[child]] = [heap[child]!, heap[at]!]
    at = child
  }
  rise(heap, at, order)
}

const rise = (heap: Array<NumberValue>, from: number, order: (a: NumberValue, b: NumberValue) => number): void => {
  for (let at = from; at > 0; ) {
    const parent = (at - 1) >> 1
    if (order(heap[at]!, heap[parent]!) <= 0) return
    ;[heap[at], heap[parent]] = [heap[parent]!, heap[at]!]
    at = parent
  }
}

/**
 * The least numbers in the order a heap leaves them in, as the database answers; with a reversed `order`, the greatest.
 */
const take = (n: Numbers, count: Value, name: string, order: (a: NumberValue, b: NumberValue) => number): Value => {
  if (!isNumber(count) || toFloat(count) <= 0)
    return raise`Incorrect arguments for function ${ownText(name)}(). The second argument must be an integer greater than 0.`
  const heap: Array<NumberValue> = [],
    most = toFloat(count)
  for (const v of n) {
    heap.push(v)
    rise(heap, heap.length - 1, order)
    if (heap.length <= most) continue
    const last = heap.pop()!
    if (heap.length === 0) continue
    heap[0] = last
    sink(heap, order)
  }
  return heap
}

const least = (n: Numbers, empty: number): Value =>
  n.reduce<Value>(
    (best, v) => (best === undefined || compareNumbers(v, best as NumberValue) < 0 ? v : best),
    undefined
  ) ?? empty

/** The greatest number; of equal ones the last. */
const greatest = (n: Numbers, empty: number): Value =>
  n.reduce<Value>(
    (best, v) => (best === undefined || compareNumbers(v, best as NumberValue) >= 0 ? v : best),
    undefined
  ) ?? empty

const range = (n: Numbers): Value => (n.length === 0 ? NaN : subtractWrapping(greatest(n, NaN), least(n, NaN)))

export const statistics: Table = {
  "math::bottom": over(["int"], (n, [c], name) => take(n, c, name, compareNumbers)),
  "math::interquartile": over([], (n) => {
    const s = sorted(n)
    return float(quantile(s, 75) - quantile(s, 25))
  }),
  "math::max": over([], (n) => greatest(n, -Infinity)),
  "math::mean": over([], mean),
  "math::median": over([], median),
  "math::midhinge": over([], (n) => float(midhinge(sorted(n)))),
  "math::min": over([], (n) => least(n, Infinity)),
  "math::mode": over([], mode),
  "math::nearestrank": over(["number"], (n, [p]) => nearestRank(n, p)),
  "math::percentile": over(["number"], (n, [p]) => float(quantile(sorted(n), toFloat(p as NumberValue)))),
  "math::product": over([], (n) => n.reduce<Value>((a, b) => multiplyWrapping(a, b), 1)),
  "math::spread": over([], range),
  "math::stddev": over([], deviation),
  "math::sum": over([], sum),
  "math::top": over(["int"], (n, [c], name) => take(n, c, name, (a, b) => compareNumbers(b, a))),
  "math::trimean": over([], (n) => float(trimean(n))),
  "math::variance": over([], variance)
}
