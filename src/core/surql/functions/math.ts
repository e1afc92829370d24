/**
 * `math::*` on single numbers: rounding, trigonometry, logarithms, constants.
 *
 * Why so: ints stay ints and decimals stay decimals where the database keeps them; everything transcendental is a float.
 */
import { add, multiply, negate, raisePower, subtract } from "../arithmetic.ts"
import { raise } from "../failure.ts"
import { D, compareNumbers, decimal, toFloat } from "../number.ts"
import type { NumberValue } from "../number.ts"
import { Decimal, float, isInt } from "../value.ts"
import type { Value } from "../value.ts"
import { constant, define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

/** A float function; decimals become floats first and the result a decimal again where it can. */
const real = (f: (n: number) => number): Fn => define<[NumberValue]>(["number"], ([n]) => again(n, f(toFloat(n))))

const again = (like: NumberValue, n: number): Value => (like instanceof Decimal && Number.isFinite(n) ? decimal(new D(n)) ?? float(n) : float(n))

/** Half away from zero, as the database rounds. */
const roundHalf = (n: number): number => (n < 0 ? -Math.round(-n) : Math.round(n))

const rounding = (f: (n: number) => number, mode: 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8): Fn => define<[NumberValue]>(["number"], ([n]) =>
  isInt(n) ? n : n instanceof Decimal ? new Decimal(new D(n.value).toDecimalPlaces(0, mode)) : float(f(toFloat(n))))

const fixed = (n: NumberValue, places: number): Value => {
  if (places <= 0) return raise("Incorrect arguments for function math::fixed(). The second argument must be an integer greater than 0.")
  if (isInt(n)) return n
  if (n instanceof Decimal) return new Decimal(new D(n.value).toDecimalPlaces(places))
  const v = toFloat(n)
  return float(Number.isFinite(v) ? Number(v.toFixed(Math.min(places, 100))) : v)
}

const abs = (n: NumberValue): Value => (compareNumbers(n, 0) < 0 ? negate(n) : n)

const clamp = (n: NumberValue, min: NumberValue, max: NumberValue): Value => {
  if (compareNumbers(min, max) > 0) return raise("Incorrect arguments for function math::clamp(). Lowerbound for clamp must be smaller the the upperbound")
  return compareNumbers(n, min) < 0 ? min : compareNumbers(n, max) > 0 ? max : n
}

const lerp = (from: NumberValue, to: NumberValue, by: NumberValue): Value => add(from, multiply(by, subtract(to, from)))

const lerpAngle = (from: NumberValue, to: NumberValue, by: NumberValue): Value => {
  const turn = (n: number): number => ((n % 360) + 360) % 360
  const gap = turn(toFloat(to) - toFloat(from))
  return float(toFloat(from) + (gap > 180 ? gap - 360 : gap) * toFloat(by))
}

const sqrt = (n: NumberValue): Value => {
  if (compareNumbers(n, 0) < 0) return NaN
  return n instanceof Decimal ? decimal(new D(n.value).sqrt()) ?? NaN : float(Math.sqrt(toFloat(n)))
}

const sign = (n: NumberValue): Value => {
  const c = compareNumbers(n, 0)
  return isInt(n) ? c : n instanceof Decimal ? new Decimal(new D(c)) : float(c)
}

export const math: Table = {
  "math::abs": define<[NumberValue]>(["number"], ([n]) => abs(n)),
  "math::acos": real(Math.acos),
  "math::acot": real((n) => Math.atan(1 / n)),
  "math::asin": real(Math.asin),
  "math::atan": real(Math.atan),
  "math::ceil": rounding(Math.ceil, 2),
  "math::clamp": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([n, a, b]) => clamp(n, a, b)),
  "math::cos": real(Math.cos),
  "math::cot": real((n) => 1 / Math.tan(n)),
  "math::deg2rad": real((n) => n * (Math.PI / 180)),
  "math::fixed": define<[NumberValue, number]>(["number", "int"], ([n, places]) => fixed(n, places)),
  "math::floor": rounding(Math.floor, 3),
  "math::lerp": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([a, b, f]) => lerp(a, b, f)),
  "math::lerpangle": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([a, b, f]) => lerpAngle(a, b, f)),
  "math::ln": real(Math.log),
  "math::log": define<[NumberValue, NumberValue]>(["number", "number"], ([n, base]) => float(Math.log(toFloat(n)) / Math.log(toFloat(base)))),
  "math::log10": real(Math.log10),
  "math::log2": real(Math.log2),
  "math::pow": define<[NumberValue, NumberValue]>(["number", "number"], ([a, b]) => raisePower(a, b)),
  "math::rad2deg": real((n) => n * (180 / Math.PI)),
  "math::round": rounding(roundHalf, 4),
  "math::sign": define<[NumberValue]>(["number"], ([n]) => sign(n)),
  "math::sin": real(Math.sin),
  "math::sqrt": define<[NumberValue]>(["number"], ([n]) => sqrt(n)),
  "math::tan": real(Math.tan),
  "math::e": constant(Math.E), "math::pi": constant(Math.PI), "math::tau": constant(2 * Math.PI),
  "math::inf": constant(Infinity), "math::neg_inf": constant(-Infinity),
  "math::sqrt_2": constant(Math.SQRT2), "math::ln_2": constant(Math.LN2), "math::ln_10": constant(Math.LN10),
  "math::log2_e": constant(Math.LOG2E), "math::log10_e": constant(Math.LOG10E), "math::log2_10": constant(Math.log2(10)), "math::log10_2": constant(Math.log10(2)),
  "math::frac_1_pi": constant(1 / Math.PI), "math::frac_1_sqrt_2": constant(Math.SQRT1_2), "math::frac_2_pi": constant(2 / Math.PI),
  "math::frac_2_sqrt_pi": constant(2 / Math.sqrt(Math.PI)), "math::frac_pi_2": constant(Math.PI / 2), "math::frac_pi_3": constant(1.0471975511965979),
  "math::frac_pi_4": constant(Math.PI / 4), "math::frac_pi_6": constant(0.5235987755982989), "math::frac_pi_8": constant(Math.PI / 8)
}
