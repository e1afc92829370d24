/**
 * Numbers of three kinds (64-bit int, float, decimal): exact comparison between them, and decimals as the database keeps them.
 *
 * Why so: the database compares numbers exactly whatever their kind (`9007199254740993 > 9007199254740992.0`), so nothing
 * here goes through a lossy conversion. Decimals follow the database's own type: a 96-bit integer with at most 28 places.
 */
import { Decimal as DecimalNumber } from "decimal.js"
import { Decimal, Float } from "./value.ts"
import type { Value } from "./value.ts"

/** Decimal arithmetic wide enough that rounding to the database's size happens once, in {@link fit}. */
export const D = DecimalNumber.clone({ precision: 64, rounding: DecimalNumber.ROUND_HALF_EVEN, toExpNeg: -9e15, toExpPos: 9e15, modulo: DecimalNumber.ROUND_DOWN })
export type Dec = InstanceType<typeof D>

export type NumberValue = number | bigint | Float | Decimal

const limit = new D("79228162514264337593543950335")

/** A decimal rounded to what the database's decimal can hold; `undefined` when it overflows. */
export const fit = (value: Dec): Dec | undefined => {
  if (!value.isFinite()) return undefined
  if (value.abs().gt(limit)) return undefined
  const whole = Math.max(0, value.e + 1)
  let places = Math.min(28, Math.max(0, 29 - whole))
  let rounded = value.toDecimalPlaces(places, DecimalNumber.ROUND_HALF_EVEN)
  while (places > 0 && rounded.abs().times(new D(10).pow(Math.max(rounded.decimalPlaces(), 0))).gt(limit)) {
    places--
    rounded = value.toDecimalPlaces(places, DecimalNumber.ROUND_HALF_EVEN)
  }
  return rounded.abs().gt(limit) ? undefined : rounded
}

/** A decimal value, or `undefined` when it does not fit. */
export const decimal = (value: Dec): Decimal | undefined => {
  const fitted = fit(value)
  return fitted === undefined ? undefined : new Decimal(fitted)
}

/** Reads `12.50` or `1e3` as a decimal; `undefined` when the text is none. */
export const parseDecimal = (text: string): Decimal | undefined => {
  if (!/^[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined
  return decimal(new D(text.replaceAll("_", "")))
}

export const isNumber = (v: Value): v is NumberValue =>
  typeof v === "number" || typeof v === "bigint" || v instanceof Float || v instanceof Decimal

/** A float as a decimal: exact for whole numbers, else by its shortest text (as the database converts). */
export const toDecimal = (v: number | bigint | Float | Dec): Dec => {
  if (typeof v === "bigint") return new D(v.toString())
  const n = v instanceof Float ? v.value : v
  if (typeof n !== "number") return n
  return Number.isInteger(n) && Math.abs(n) > 9007199254740991 ? new D(BigInt(n).toString()) : new D(n)
}

/** The nearest float. */
export const toFloat = (v: NumberValue): number =>
  typeof v === "number" ? v : v instanceof Float ? v.value : v instanceof Decimal ? v.value.toNumber() : Number(v)

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
