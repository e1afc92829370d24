/**
 * `+ - * / % **` and negation over all types, with the database's rules for ints, floats, decimals and dates.
 *
 * Why so: two small ints are by far the usual case and are decided first; the rest is by type. An operation that cannot
 * be computed fails with the database's message; a failing division gives NaN, as in the database.
 */
import * as Datetimes from "../values/datetime.ts"
import * as Durations from "../values/duration.ts"
import type { Dec, NumberValue } from "../values/number.ts"
import { asDecimal, compareNumbers, decimal, isNumber, roundToDecimal, toFloat, WideDecimal } from "../values/number.ts"
import * as Text from "../values/text.ts"
import { rawText, toText } from "../values/text.ts"
import type { Obj, Value } from "../values/value.ts"
import { Datetime, Decimal, Duration, Float, float, int, isInt, isObj, setField } from "../values/value.ts"
import { ownText, raise } from "./failure.ts"

const shown = (v: Value): string => Text.shown(v, rawText)

type Verb = "addition" | "subtraction" | "multiplication" | "division" | "remainder"

const cannot = (verb: Verb, a: Value, b: Value): never =>
  raise`Cannot perform ${ownText(verb)} with '${shown(a)}' and '${shown(b)}'`

const leastInt = -9223372036854775808n

const inRange = (v: bigint): boolean => v >= -9223372036854775808n && v <= 9223372036854775807n

interface NumberOp {
  readonly verb: Verb
  readonly small: (a: number, b: number) => number
  readonly big: (a: bigint, b: bigint) => bigint | undefined
  readonly float: (a: number, b: number) => number
  readonly decimal: (a: Dec, b: Dec) => Dec
}

const addition: NumberOp = {
  verb: "addition",
  small: (a, b) => a + b,
  big: (a, b) => a + b,
  float: (a, b) => a + b,
  decimal: (a, b) => WideDecimal.add(a, b)
}
const subtraction: NumberOp = {
  verb: "subtraction",
  small: (a, b) => a - b,
  big: (a, b) => a - b,
  float: (a, b) => a - b,
  decimal: (a, b) => WideDecimal.sub(a, b)
}
const multiplication: NumberOp = {
  verb: "multiplication",
  small: (a, b) => a * b,
  big: (a, b) => a * b,
  float: (a, b) => a * b,
  decimal: (a, b) => WideDecimal.mul(a, b)
}
const remainder: NumberOp = {
  verb: "remainder",
  small: (a, b) => a % b,
  big: (a, b) => (b === 0n || (b === -1n && a === leastInt) ? undefined : a % b),
  float: (a, b) => a % b,
  decimal: (a, b) => WideDecimal.mod(a, b)
}

/** A number as a decimal; zero if no decimal can hold it (NaN, infinity, more than 96 bits), as in the database. */
const finite = (n: NumberValue): Dec => {
  const d = n instanceof Decimal ? n.value : asDecimal(n)
  return d.isFinite() ? (decimal(d)?.value ?? new WideDecimal(0)) : new WideDecimal(0)
}

const numeric = (op: NumberOp, a: NumberValue, b: NumberValue, wraps = false): Value => {
  if (isInt(a) && isInt(b)) {
    if (typeof a === "number" && typeof b === "number") {
      const small = op.small(a, b)
      if (Number.isSafeInteger(small)) return small + 0
    }
    const big = op.big(BigInt(a), BigInt(b))
    if (big !== undefined && wraps) return int(BigInt.asIntN(64, big))
    return big === undefined || !inRange(big) ? cannot(op.verb, a, b) : int(big)
  }
  if (!(a instanceof Decimal) && !(b instanceof Decimal)) return float(op.float(toFloat(a), toFloat(b)))
  return decimal(op.decimal(finite(a), finite(b))) ?? cannot(op.verb, a, b)
}

const merge = (a: Obj, b: Obj): Obj => {
  const out: Record<string, Value> = {}
  for (const key of Object.keys(a)) setField(out, key, a[key])
  for (const key of Object.keys(b)) setField(out, key, b[key])
  return out
}

const negativeResult = (a: Value, op: string, b: Value): never =>
  raise`Failed to compute: "${toText(a)} ${ownText(op)} ${toText(b)}", as the operation results in a negative value.`

const overflow = (a: Value, op: string, b: Value): never =>
  raise`Failed to compute: "${toText(a)} ${ownText(op)} ${toText(b).replace(/f$/, "")}", as the operation results in an arithmetic overflow.`

const later = (by: Duration, d: Datetime): Value =>
  Datetimes.fromNanosInRange(Datetimes.toNanos(d) + Durations.toNanos(by)) ?? overflow(by, "+", d)

const earlier = (by: Duration, d: Datetime): Value =>
  Datetimes.fromNanosInRange(Datetimes.toNanos(d) - Durations.toNanos(by)) ?? negativeResult(by, "-", d)

/** `a + b` */
export const add = (a: Value, b: Value): Value => {
  if (isNumber(a) && isNumber(b)) return numeric(addition, a, b)
  if (typeof a === "string" && typeof b === "string") return a + b
  if (a instanceof Duration && b instanceof Duration)
    return Durations.fromNanos(Durations.toNanos(a) + Durations.toNanos(b)) ?? overflow(a, "+", b)
  if (a instanceof Datetime && b instanceof Duration) return later(b, a)
  if (a instanceof Duration && b instanceof Datetime) return later(a, b)
  if (Array.isArray(a) && Array.isArray(b)) return [...(a as ReadonlyArray<Value>), ...(b as ReadonlyArray<Value>)]
  if (isObj(a) && isObj(b)) return merge(a, b)
  return cannot("addition", a, b)
}

/** `a - b` */
export const subtract = (a: Value, b: Value): Value => {
  if (isNumber(a) && isNumber(b)) return numeric(subtraction, a, b)
  if (a instanceof Duration && b instanceof Duration)
    return Durations.fromNanos(Durations.toNanos(a) - Durations.toNanos(b)) ?? negativeResult(a, "-", b)
  if (a instanceof Datetime && b instanceof Duration) return earlier(b, a)
  if (a instanceof Duration && b instanceof Datetime) return earlier(a, b)
  if (a instanceof Datetime && b instanceof Datetime)
    return Durations.fromNanos(Datetimes.toNanos(a) - Datetimes.toNanos(b)) ?? negativeResult(a, "-", b)
  return cannot("subtraction", a, b)
}

/** Like the operators, but ints beyond 64 bits wrap around, as in the database's functions over lists of numbers. */
const wrapping =
  (op: NumberOp, plain: (a: Value, b: Value) => Value) =>
  (a: Value, b: Value): Value =>
    isNumber(a) && isNumber(b) ? numeric(op, a, b, true) : plain(a, b)

/** Largest int factor of a duration. */
const mostTimes = 4294967295

/** A duration of decimal nanoseconds; the fraction is dropped. */
const wholeNanos = (nanos: Dec): Duration | undefined => {
  const fitted = roundToDecimal(nanos)
  return fitted === undefined ? undefined : Durations.fromNanos(BigInt(fitted.trunc().toFixed()))
}

const times = (d: Duration, by: NumberValue): Value => {
  const name = isInt(by) || by instanceof Decimal ? "a negative number" : "a non-finite or negative number"
  if (!(compareNumbers(by, 0) >= 0) || (!(by instanceof Decimal) && !Number.isFinite(toFloat(by))))
    return raise`Cannot multiply a duration with ${ownText(name)}`
  if (isInt(by)) {
    if (by > mostTimes) return raise`out of range integral type conversion attempted`
    return Durations.fromNanos(Durations.toNanos(d) * BigInt(by)) ?? overflow(d, "*", by)
  }
  if (by instanceof Decimal)
    return wholeNanos(WideDecimal.mul(Durations.toNanos(d).toString(), by.value)) ?? overflow(d, "*", by)
  return Durations.fromSeconds(Durations.toSeconds(d) * toFloat(by)) ?? overflow(d, "*", by)
}

const parted = (d: Duration, by: NumberValue): Value => {
  if (!(compareNumbers(by, 0) > 0)) return NaN
  if (isInt(by)) return by > mostTimes ? NaN : (Durations.fromNanos(Durations.toNanos(d) / BigInt(by)) ?? NaN)
  if (by instanceof Decimal) return wholeNanos(WideDecimal.div(Durations.toNanos(d).toString(), by.value)) ?? NaN
  return (Number.isFinite(toFloat(by)) ? Durations.fromSeconds(Durations.toSeconds(d) / toFloat(by)) : undefined) ?? NaN
}

/** `a * b` */
export const multiply = (a: Value, b: Value): Value => {
  if (isNumber(a) && isNumber(b)) return numeric(multiplication, a, b)
  if (a instanceof Duration && isNumber(b)) return times(a, b)
  return cannot("multiplication", a, b)
}

export const addWrapping = wrapping(addition, add)
export const subtractWrapping = wrapping(subtraction, subtract)
export const multiplyWrapping = wrapping(multiplication, multiply)

/** `a / b`; NaN if the division is not possible, as in the database. */
export const divide = (a: Value, b: Value): Value => {
  if (a instanceof Duration && isNumber(b)) return parted(a, b)
  if (!isNumber(a) || !isNumber(b)) return NaN
  if (isInt(a) && isInt(b)) {
    if (BigInt(b) === 0n) return NaN
    const quotient = BigInt(a) / BigInt(b)
    return inRange(quotient) ? int(quotient) : NaN
  }
  if (!(a instanceof Decimal) && !(b instanceof Decimal)) return float(toFloat(a) / toFloat(b))
  const x = finite(a),
    y = finite(b)
  return y.isZero() ? NaN : (decimal(WideDecimal.div(x, y)) ?? NaN)
}

/** `a % b` */
export const modulo = (a: Value, b: Value): Value => {
  if (!isNumber(a) || !isNumber(b)) return cannot("remainder", a, b)
  if ((isInt(b) || b instanceof Decimal) && toFloat(b) === 0 && (isInt(a) || a instanceof Decimal))
    return cannot("remainder", a, b)
  return numeric(remainder, a, b)
}

/** A power of floats: 1 for base 1, and for -1 raised to infinity, where JavaScript gives NaN. */
export const floatPower = (x: number, y: number): number =>
  x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y

/**
 * Fails because a value cannot be raised to a power. The message shows two numbers without the suffix of their type.
 */
const noPower = (a: Value, b: Value): never => {
  const bare = (v: Value): string => (isNumber(a) && isNumber(b) ? toText(v).replace(/f$/, "") : shown(v))
  return raise`Cannot raise the value '${bare(a)}' with '${bare(b)}'`
}

const one = new Decimal(new WideDecimal(1))

/** Largest exponent, other than an int, of a decimal. */
const mostPower = 4294967295

/** A decimal raised to an int by repeated squaring; each step is rounded to a decimal, as in the database. */
const product = (x: Decimal, times: bigint): Decimal | undefined => {
  let out: Decimal | undefined = one,
    square: Decimal | undefined = x
  for (let left = times; left > 0n && out !== undefined; left >>= 1n) {
    if (square === undefined) return undefined
    if ((left & 1n) === 1n) out = decimal(WideDecimal.mul(out.value, square.value))
    if (left > 1n) square = decimal(WideDecimal.mul(square.value, square.value))
  }
  return out
}

/**
 * A power of a decimal; `undefined` if it is no decimal. For a negative base the fractional power of its absolute
 * value, as in the database.
 */
const decimalPower = (x: Decimal, y: Dec): Decimal | undefined => {
  if (y.isZero() || x.value.eq(1)) return one
  if (!y.isInteger()) {
    if (x.value.isZero()) return x
    const size = decimal(WideDecimal.pow(x.value.abs(), y))
    // A base below 1 is computed by its inverse, which must be a decimal too.
    if (size?.value.lt(1) === true && decimal(WideDecimal.pow(x.value.abs(), y.neg())) === undefined) return undefined
    return size !== undefined && x.value.isNegative() ? new Decimal(size.value.neg()) : size
  }
  const times = BigInt(y.abs().toFixed())
  const power = product(x, times)
  if (power === undefined || !y.isNegative()) return power
  return power.value.isZero() ? undefined : decimal(WideDecimal.div(1, power.value))
}

/** `a ** b` */
export const raisePower = (a: Value, b: Value): Value => {
  const fail = (): never => noPower(a, b)
  if (!isNumber(a) || !isNumber(b)) return fail()
  if (isInt(a) && isInt(b)) {
    const base = BigInt(a),
      exponent = BigInt(b)
    if (base === 1n || base === -1n) return exponent % 2n === 0n ? 1 : int(base)
    if (exponent < 0n) return fail()
    if (base === 0n) return exponent === 0n ? 1 : 0
    if (exponent > 63n) return fail()
    const big = base ** exponent
    return inRange(big) ? int(big) : fail()
  }
  if (a instanceof Decimal) {
    const exact = b instanceof Decimal ? b.value : asDecimal(b),
      y = exact.isFinite() ? decimal(exact)?.value : undefined
    return (
      (y !== undefined && (a.value.eq(1) || isInt(b) || y.abs().lte(mostPower)) ? decimalPower(a, y) : undefined) ??
      fail()
    )
  }
  return float(floatPower(toFloat(a), toFloat(b)))
}

/** `-a` */
export const negate = (a: Value): Value => {
  if (typeof a === "number") return Number.isSafeInteger(a) && !Object.is(a, -0) ? 0 - a : float(-a)
  if (typeof a === "bigint" && a !== -9223372036854775808n) return int(-a)
  if (a instanceof Float) return float(-a.value)
  if (a instanceof Decimal) return new Decimal(new WideDecimal(a.value).neg())
  return raise`Cannot negate the value '${Text.shown(a)}'`
}
