/**
 * `math::*` on single numbers: rounding, trigonometry, logarithms, constants.
 *
 * Why so: ints stay ints and decimals stay decimals where the database keeps them; everything transcendental is a
 * float.
 */
import { add, multiply, negate, raisePower, subtract } from "../evaluate/arithmetic.ts"
import { raise } from "../evaluate/failure.ts"
import type { NumberValue } from "../values/number.ts"
import { asDecimal, compareNumbers, decimal, toFloat, WideDecimal } from "../values/number.ts"
import type { Value } from "../values/value.ts"
import { Decimal, float, isInt } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { constant, define } from "./define.ts"

/** A function of floats: other numbers become one first. */
const real = (f: (n: number) => number): Fn => define<[NumberValue]>(["number"], ([n]) => float(f(toFloat(n))))

/** Half away from zero, as the database rounds. */
const roundHalf = (n: number): number => (n < 0 ? -Math.round(-n) : Math.round(n))

const rounding = (f: (n: number) => number, mode: 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8): Fn =>
  define<[NumberValue]>(["number"], ([n]) =>
    isInt(n)
      ? n
      : n instanceof Decimal
        ? new Decimal(new WideDecimal(n.value).toDecimalPlaces(0, mode))
        : float(f(toFloat(n)))
  )

const ten = 10n

/**
 * A finite fraction rounded to so many places from its exact value, ties to even; a float has no digits beyond 1,074
 * places.
 */
const toPlaces = (n: number, places: number): number => {
  let mantissa = Math.abs(n),
    bits = 0
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2
    bits++
  }
  if (places >= bits) return n
  const unit = 1n << BigInt(bits),
    scaled = BigInt(mantissa) * ten ** BigInt(places)
  const whole = scaled / unit,
    twice = (scaled % unit) * 2n
  const rounded = whole + (twice > unit || (twice === unit && whole % 2n === 1n) ? 1n : 0n)
  return (n < 0 || Object.is(n, -0) ? -1 : 1) * Number(`${rounded}e-${places}`)
}

const fixed = (n: NumberValue, places: number): Value => {
  if (places <= 0)
    return raise`Incorrect arguments for function math::fixed(). The second argument must be an integer greater than 0.`
  if (isInt(n)) return n
  if (n instanceof Decimal) return new Decimal(new WideDecimal(n.value).toDecimalPlaces(Math.min(places, 28)))
  const v = toFloat(n)
  return float(Number.isFinite(v) ? toPlaces(v, places) : v)
}

const abs = (n: NumberValue): Value => {
  if (n === -9223372036854775808n)
    return raise`Failed to compute: "math::abs(${n})", as the operation results in an arithmetic overflow.`
  return isInt(n) || n instanceof Decimal ? (compareNumbers(n, 0) < 0 ? negate(n) : n) : float(Math.abs(toFloat(n)))
}

/** Keeps the kind of the number, but gives a float for an int with bounds that are no ints. */
const clamp = (n: NumberValue, min: NumberValue, max: NumberValue): Value => {
  if (compareNumbers(min, max) > 0)
    return raise`Incorrect arguments for function math::clamp(). Lowerbound for clamp must be smaller the the upperbound`
  if (toFloat(n) !== toFloat(n)) return NaN
  const nearest = compareNumbers(n, min) < 0 ? min : compareNumbers(n, max) > 0 ? max : n
  if (n instanceof Decimal) return decimalOf(nearest)
  return isInt(n) && isInt(min) && isInt(max) ? nearest : float(toFloat(nearest))
}

/** Computed in decimals if the factor is one, else in floats. */
const lerp = (from: NumberValue, to: NumberValue, by: NumberValue): Value => {
  if (by instanceof Decimal) return add(decimalOf(from), multiply(by, subtract(decimalOf(to), decimalOf(from))))
  return float(toFloat(from) + toFloat(by) * (toFloat(to) - toFloat(from)))
}

/** As {@link lerp} over the angle between the two, which is taken without its direction, as the database does. */
const lerpAngle = (from: NumberValue, to: NumberValue, by: NumberValue): Value => {
  if (by instanceof Decimal) {
    const gap = new WideDecimal(decimalOf(to).value).sub(decimalOf(from).value),
      turned = gap.sub(gap.div(360).floor().times(360)).clamp(0, 360)
    return lerp(
      from,
      add(decimalOf(from), new Decimal(turned.gt(180) ? new WideDecimal(360).sub(turned) : turned)) as NumberValue,
      by
    )
  }
  const start = toFloat(from),
    gap = toFloat(to) - start,
    turned = Math.max(0, Math.min(360, gap - Math.floor(gap / 360) * 360))
  return float(start + toFloat(by) * (start + (turned > 180 ? 360 - turned : turned) - start))
}

/** A number as a decimal; zero if no decimal can hold it, as in the database. */
const decimalOf = (n: NumberValue): Decimal => {
  const exact = n instanceof Decimal ? n.value : asDecimal(n)
  return (exact.isFinite() ? decimal(exact) : undefined) ?? new Decimal(new WideDecimal(0))
}

const sqrt = (n: NumberValue): Value => {
  if (compareNumbers(n, 0) < 0) return NaN
  return n instanceof Decimal ? (decimal(new WideDecimal(n.value).sqrt()) ?? NaN) : float(Math.sqrt(toFloat(n)))
}

/** Sign of a number; a float zero has one too. */
const sign = (n: NumberValue): Value => {
  if (isInt(n)) return compareNumbers(n, 0)
  if (n instanceof Decimal) return new Decimal(new WideDecimal(compareNumbers(n, 0)))
  const v = toFloat(n)
  return float(v !== v ? NaN : v < 0 || Object.is(v, -0) ? -1 : 1)
}

export const math: Table = {
  "math::abs": define<[NumberValue]>(["number"], ([n]) => abs(n)),
  "math::acos": real(Math.acos),
  "math::acot": real((n) => Math.PI / 2 - Math.atan(n)),
  "math::asin": real(Math.asin),
  "math::atan": real(Math.atan),
  "math::ceil": rounding(Math.ceil, 2),
  "math::clamp": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([n, a, b]) =>
    clamp(n, a, b)
  ),
  "math::cos": real(Math.cos),
  "math::cot": real((n) => 1 / Math.tan(n)),
  "math::deg2rad": real((n) => n * (Math.PI / 180)),
  "math::fixed": define<[NumberValue, number]>(["number", "int"], ([n, places]) => fixed(n, places)),
  "math::floor": rounding(Math.floor, 3),
  "math::lerp": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([a, b, f]) =>
    lerp(a, b, f)
  ),
  "math::lerpangle": define<[NumberValue, NumberValue, NumberValue]>(["number", "number", "number"], ([a, b, f]) =>
    lerpAngle(a, b, f)
  ),
  "math::ln": real(Math.log),
  "math::log": define<[NumberValue, NumberValue]>(["number", "number"], ([n, base]) =>
    float(Math.log(toFloat(n)) / Math.log(toFloat(base)))
  ),
  "math::log10": real(Math.log10),
  "math::log2": real(Math.log2),
  "math::pow": define<[NumberValue, NumberValue]>(["number", "number"], ([a, b]) => raisePower(a, b)),
  "math::rad2deg": real((n) => n * (180 / Math.PI)),
  "math::round": rounding(roundHalf, 6),
  "math::sign": define<[NumberValue]>(["number"], ([n]) => sign(n)),
  "math::sin": real(Math.sin),
  "math::sqrt": define<[NumberValue]>(["number"], ([n]) => sqrt(n)),
  "math::tan": real(Math.tan),
  "math::e": constant(Math.E),
  "math::pi": constant(Math.PI),
  "math::tau": constant(2 * Math.PI),
  "math::inf": constant(Infinity),
  "math::neg_inf": constant(-Infinity),
  "math::sqrt_2": constant(Math.SQRT2),
  "math::ln_2": constant(Math.LN2),
  "math::ln_10": constant(Math.LN10),
  "math::log2_e": constant(Math.LOG2E),
  "math::log10_e": constant(Math.LOG10E),
  "math::log2_10": constant(Math.log2(10)),
  "math::log10_2": constant(Math.log10(2)),
  "math::frac_1_pi": constant(1 / Math.PI),
  "math::frac_1_sqrt_2": constant(Math.SQRT1_2),
  "math::frac_2_pi": constant(2 / Math.PI),
  "math::frac_2_sqrt_pi": constant(2 / Math.sqrt(Math.PI)),
  "math::frac_pi_2": constant(Math.PI / 2),
  "math::frac_pi_3": constant(1.0471975511965979),
  "math::frac_pi_4": constant(Math.PI / 4),
  "math::frac_pi_6": constant(0.5235987755982989),
  "math::frac_pi_8": constant(Math.PI / 8)
}
