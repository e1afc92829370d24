/**
 * `math::*` over arrays of numbers: sums, means, quantiles, spread.
 *
 * Why so: these are what GROUP BY calls. Sums keep the kind of number; quantiles and deviations are floats, computed the
 * way the database does (linear interpolation, sample variance).
 */
import { add, multiply, subtract } from "../arithmetic.ts"
import { raise } from "../failure.ts"
import { indexKey } from "../key.ts"
import { D, compareNumbers, decimal, isNumber, asDecimal, toFloat } from "../number.ts"
import type { Dec, NumberValue } from "../number.ts"
import { render } from "../text.ts"
import { Decimal, float } from "../value.ts"
import type { Value } from "../value.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

type Numbers = ReadonlyArray<NumberValue>

/** A function of an array of numbers; any other element is an argument error. */
const over = (params: ReadonlyArray<string>, body: (numbers: Numbers, args: ReadonlyArray<Value>, name: string) => Value): Fn =>
  define<ReadonlyArray<Value>>(["any", ...params], ([a, ...rest], _, name) => {
    if (!Array.isArray(a)) raise(`Incorrect arguments for function ${name}(). Argument 1 was the wrong type. Expected \`array<number>\` but found \`${render(a)}\``)
    for (const v of a as ReadonlyArray<Value>) if (!isNumber(v)) raise(`Incorrect arguments for function ${name}(). Argument 1 was the wrong type. Expected \`number\` but found \`${render(v)}\` when coercing an element of \`array<number>\``)
    return body(a as Numbers, rest, name)
  })

const sorted = (n: Numbers): Numbers => n.slice().sort(compareNumbers)

const sum = (n: Numbers): Value => n.reduce<Value>((a, b) => add(a, b), 0)

/** Ints are added exactly before they are divided. */
const mean = (n: Numbers): number => (n.length === 0 ? NaN : toFloat(sum(n) as NumberValue) / n.length)

const median = (n: Numbers): Value => {
  const s = sorted(n), middle = Math.floor(s.length / 2)
  if (s.length === 0) return undefined
  return float(s.length % 2 === 1 ? toFloat(s[middle]!) : (toFloat(s[middle - 1]!) + toFloat(s[middle]!)) / 2)
}

/** Linear interpolation between the two nearest ranks. */
const quantile = (s: Numbers, percent: number): number => {
  if (s.length === 0 || percent < 0 || percent > 100) return NaN
  const at = (percent / 100) * (s.length - 1), low = Math.floor(at), high = Math.ceil(at)
  const a = toFloat(s[low]!), b = toFloat(s[high]!)
  return a + (b - a) * (at - low)
}

/** A result in decimals when any of the numbers is one. */
const exactly = (n: Numbers, approximate: (n: Numbers) => number, exact: (n: ReadonlyArray<Dec>) => Dec): Value => {
  if (n.length === 0 || !n.some((v) => v instanceof Decimal)) return float(approximate(n))
  const all = n.map((v) => (v instanceof Decimal ? v.value : asDecimal(v)))
  return all.every((d) => d.isFinite()) ? decimal(exact(all)) ?? NaN : NaN
}

const decimalMean = (n: ReadonlyArray<Dec>): Dec => n.reduce((a, b) => D.add(a, b), new D(0)).div(n.length)

/** The sum as adding gives it, which is a decimal from the first decimal on, by the count. */
const meanOf = (n: Numbers): Value => {
  const total = n.length === 0 ? undefined : sum(n)
  return total instanceof Decimal ? decimal(D.div(total.value, n.length)) ?? NaN : float(mean(n))
}

const decimalVariance = (n: ReadonlyArray<Dec>): Dec => {
  if (n.length < 2) return new D(0)
  const m = decimalMean(n)
  return n.reduce((a, b) => D.add(a, D.sub(b, m).pow(2)), new D(0)).div(n.length - 1)
}

const variance = (n: Numbers): number => {
  if (n.length === 0) return NaN
  if (n.length === 1) return 0
  const m = mean(n)
  return n.reduce<number>((a, b) => a + (toFloat(b) - m) ** 2, 0) / (n.length - 1)
}



const mode = (n: Numbers): Value => {
  const counts = new Map<unknown, { readonly value: NumberValue; count: number }>()
  for (const value of n) {
    const found = counts.get(indexKey(value))
    if (found === undefined) counts.set(indexKey(value), { value, count: 1 })
    else found.count++
  }
  let best: { readonly value: NumberValue; count: number } | undefined
  for (const c of counts.values()) if (best === undefined || c.count > best.count || (c.count === best.count && compareNumbers(c.value, best.value) > 0)) best = c
  return best === undefined ? NaN : best.value
}

const nearestRank = (n: Numbers, percent: Value): Value => {
  const s = sorted(n), p = isNumber(percent) ? toFloat(percent) : NaN
  if (s.length === 0 || !(p >= 0 && p <= 100)) return NaN
  return s[Math.max(0, Math.ceil((p / 100) * s.length) - 1)]
}

const take = (n: Numbers, count: Value, name: string, descending: boolean): Value => {
  if (!isNumber(count) || toFloat(count) <= 0) return raise(`Incorrect arguments for function ${name}(). The second argument must be an integer greater than 0.`)
  const s = sorted(n)
  return descending ? s.slice(-toFloat(count)) : s.slice(0, toFloat(count)).reverse()
}

const extreme = (n: Numbers, sign: number, empty: number): Value => n.reduce<Value>((best, v) => (best === undefined || compareNumbers(v, best as NumberValue) * sign > 0 ? v : best), undefined) ?? empty

const range = (n: Numbers): Value => (n.length === 0 ? NaN : subtract(extreme(n, 1, NaN), extreme(n, -1, NaN)))

export const statistics: Table = {
  "math::bottom": over(["int"], (n, [c], name) => take(n, c, name, false)),
  "math::interquartile": over([], (n) => { const s = sorted(n); return float(quantile(s, 75) - quantile(s, 25)) }),
  "math::max": over([], (n) => extreme(n, 1, -Infinity)),
  "math::mean": over([], meanOf),
  "math::median": over([], median),
  "math::midhinge": over([], (n) => { const s = sorted(n); return float((quantile(s, 75) + quantile(s, 25)) / 2) }),
  "math::min": over([], (n) => extreme(n, -1, Infinity)),
  "math::mode": over([], mode),
  "math::nearestrank": over(["number"], (n, [p]) => nearestRank(n, p)),
  "math::percentile": over(["number"], (n, [p]) => float(quantile(sorted(n), toFloat(p as NumberValue)))),
  "math::product": over([], (n) => n.reduce<Value>((a, b) => multiply(a, b), 1)),
  "math::spread": over([], range),
  "math::stddev": over([], (n) => exactly(n, (a) => Math.sqrt(variance(a)), (a) => decimalVariance(a).sqrt())),
  "math::sum": over([], sum),
  "math::top": over(["int"], (n, [c], name) => take(n, c, name, true)),
  "math::trimean": over([], (n) => { const s = sorted(n); return float((quantile(s, 25) + 2 * quantile(s, 50) + quantile(s, 75)) / 4) }),
  "math::variance": over([], (n) => exactly(n, variance, decimalVariance))
}
