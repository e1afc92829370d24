/**
 * Numbers of three kinds (64-bit int, float, decimal): exact comparison between them, and decimals as the database
 * keeps them.
 *
 * Why so: the database compares numbers exactly whatever their kind (`9007199254740993 > 9007199254740992.0`), so
 * nothing here goes through a lossy conversion. Decimals follow the database's own type: a 96-bit integer with at most
 * 28 places.
 */
import { Decimal as DecimalNumber } from "decimal.js"
import type { Value } from "./value.ts"
import { Decimal, Float, int } from "./value.ts"

/** Decimal arithmetic wide enough that only {@link roundToDecimal} rounds to the database's size. */
export const WideDecimal = DecimalNumber.clone({
  precision: 64,
  rounding: DecimalNumber.ROUND_HALF_EVEN,
  toExpNeg: -9e15,
  toExpPos: 9e15,
  modulo: DecimalNumber.ROUND_DOWN
})
export type Dec = InstanceType<typeof WideDecimal>

export type NumberValue = number | bigint | Float | Decimal

const limit = new WideDecimal("79228162514264337593543950335")
const mostPlaces = 28

type Rounding = DecimalNumber.Rounding

/**
 * A decimal rounded to the database's decimal; `undefined` if it overflows. Sums and products are rounded half to even,
 * parsed text half up.
 */
export const roundToDecimal = (value: Dec, rounding: Rounding = DecimalNumber.ROUND_HALF_EVEN): Dec | undefined => {
  if (!value.isFinite() || value.e > limit.e) return undefined
  const whole = Math.max(0, value.e + 1)
  let places = Math.min(mostPlaces, Math.max(0, 29 - whole))
  let rounded = value.toDecimalPlaces(places, rounding)
  while (
    places > 0 &&
    rounded
      .abs()
      .times(new WideDecimal(10).pow(Math.max(rounded.decimalPlaces(), 0)))
      .gt(limit)
  ) {
    places--
    rounded = value.toDecimalPlaces(places, rounding)
  }
  return rounded.abs().gt(limit) ? undefined : rounded
}

/** A decimal value, or `undefined` when it does not fit. */
export const decimal = (value: Dec, rounding?: Rounding): Decimal | undefined => {
  const fitted = roundToDecimal(value, rounding)
  return fitted === undefined ? undefined : new Decimal(fitted)
}

const decimalText = /^[+-]?\d[\d_]*(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/**
 * Reads `12.50` or `1e3` as a decimal; `undefined` when the text is none. Digits beyond what fits are rounded, but not
 * behind an exponent.
 */
export const parseDecimal = (text: string): Decimal | undefined => {
  const match = decimalText.exec(text)
  if (match === null) return undefined
  const [, fraction = "", exponent] = match
  if (exponent !== undefined && fraction.length - Number(exponent) > mostPlaces) return undefined
  return decimal(new WideDecimal(text.replaceAll("_", "")), DecimalNumber.ROUND_HALF_UP)
}

export const isNumber = (v: Value): v is NumberValue =>
  typeof v === "number" || typeof v === "bigint" || v instanceof Float || v instanceof Decimal

/** A float as a decimal for comparisons: exact for whole numbers, else by its shortest text. */
export const toDecimal = (v: number | bigint | Float | Dec): Dec => {
  if (typeof v === "bigint") return new WideDecimal(v.toString())
  const n = v instanceof Float ? v.value : v
  if (typeof n !== "number") return n
  return Number.isInteger(n) && Math.abs(n) > 9007199254740991
    ? new WideDecimal(BigInt(n).toString())
    : new WideDecimal(n)
}

const mostBits = 1n << 96n
const mostDigits = 1n << 52n

/** Divides by ten, half up. */
const tenth = (n: bigint): bigint => n / 10n + (n % 10n >= 5n ? 1n : 0n)

/**
 * A fraction with more than 15 digits, step by step as the database converts it: the mantissa takes in the powers of
 * five while it fits 96 bits, then loses digits, each rounded by itself, until it is below 2^52.
 */
const roundedFraction = (n: number): Dec => {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, Math.abs(n))
  const bits = view.getBigUint64(0)
  const biased = Number(bits >> 52n)
  let mantissa = bits & (mostDigits - 1n)
  if (biased > 0) mantissa |= mostDigits
  let fives = 1075 - Math.max(biased, 1)
  let scale = fives
  while (fives > 0) {
    fives--
    if ((mantissa & 1n) === 0n || mantissa * 5n >= mostBits) {
      mantissa >>= 1n
      scale--
    } else mantissa *= 5n
  }
  for (; scale > 28; scale--) mantissa = tenth(mantissa)
  for (; scale > 0 && mantissa >= mostDigits; scale--) mantissa = tenth(mantissa)
  return new WideDecimal(`${n < 0 ? "-" : ""}${mantissa}e-${scale}`)
}

/**
 * A number as a decimal for arithmetic: a float of more than 15 digits loses what the database's own conversion loses.
 */
export const asDecimal = (v: number | bigint | Float | Dec): Dec => {
  const n = v instanceof Float ? v.value : v
  if (typeof n !== "number" || !Number.isFinite(n) || Number.isInteger(n)) return toDecimal(v)
  return String(n)
    .replace(/e.*|[^0-9]/g, "")
    .replace(/^0+/, "").length <= 15
    ? new WideDecimal(n)
    : roundedFraction(n)
}

/** `count` ints from `start` on, up to the greatest int. */
export const intsFrom = (start: number | bigint, count: number): ReadonlyArray<number | bigint> => {
  const first = Number(start)
  if (Number.isSafeInteger(first) && Number.isSafeInteger(first + count))
    return Array.from({ length: Math.max(0, count) }, (_, i) => first + i)
  const from = BigInt(start),
    left = Number(9223372036854775808n - from)
  return Array.from({ length: Math.max(0, Math.min(count, left)) }, (_, i) => int(from + BigInt(i)))
}

/** A power of ten, multiplied as in the database's library; the largest are not the nearest floats. */
const powerOfTen = (exponent: number): number => {
  let power = 1,
    base = 10
  for (let rest = exponent; rest > 0; rest >>= 1) {
    if (rest & 1) power *= base
    base *= base
  }
  return power
}

/** A decimal as a float, step by step as the database converts it: mostly the nearest. */
const decimalToFloat = (value: DecimalNumber): number => {
  const places = value.decimalPlaces()
  if (places === 0) return value.toNumber()
  const size = value.abs(),
    whole = size.trunc()
  const sum =
    whole.toNumber() + new WideDecimal(size.sub(whole)).times(new WideDecimal(10).pow(places)).toNumber() / 10 ** places
  const scale = powerOfTen(places),
    scaled = sum * scale
  const rounded = (Number.isInteger(scaled) ? scaled : Math.round(scaled)) / scale
  return value.isNegative() ? -rounded : rounded
}

/** The nearest float. */
export const toFloat = (v: NumberValue): number =>
  typeof v === "number" ? v : v instanceof Float ? v.value : v instanceof Decimal ? decimalToFloat(v.value) : Number(v)

const compareFloats = (a: number, b: number): number => {
  if (a < b) return -1
  if (a > b) return 1
  if (a === b) return 0
  const aNaN = a !== a
  return aNaN === (b !== b) ? 0 : aNaN ? 1 : -1
}

const compareDecimal = (a: Dec, b: number | bigint | Dec): number => {
  if (typeof b === "number" && !Number.isFinite(b)) return b === -Infinity ? 1 : -1
  return a.cmp(toDecimal(b))
}

/** Total order of numbers; NaN is equal to itself and greater than any other number. */
export const compareNumbers = (left: NumberValue, right: NumberValue): number => {
  const a = left instanceof Float || left instanceof Decimal ? left.value : left
  const b = right instanceof Float || right instanceof Decimal ? right.value : right
  if (typeof a === "number" && typeof b === "number") return compareFloats(a, b)
  if (typeof a === "object") return compareDecimal(a, b)
  if (typeof b === "object") return -compareDecimal(b, a)
  if (a !== a) return 1
  if (b !== b) return -1
  return a < b ? -1 : a > b ? 1 : 0
}

/** A float as its binary value, as far as needed to compare it with any decimal; others unchanged. */
export const binaryValue = (n: number | bigint | Dec): number | bigint | Dec =>
  typeof n === "number" && !Number.isInteger(n) && Number.isFinite(n) ? new WideDecimal(n.toPrecision(100)) : n

/** As {@link compareNumbers}, but beside a decimal a float counts by its binary value: `0.1f` is above `0.1dec`. */
export const compareExactly = (a: NumberValue, b: NumberValue): number =>
  a instanceof Decimal && !(b instanceof Decimal)
    ? compareDecimal(a.value, binaryValue(b instanceof Float ? b.value : b))
    : b instanceof Decimal && !(a instanceof Decimal)
      ? -compareExactly(b, a)
      : compareNumbers(a, b)
