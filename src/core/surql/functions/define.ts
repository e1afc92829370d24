/**
 * How a function is declared: its parameters by type, and what it does with checked arguments.
 *
 * Why so: argument checks and their wording are the same for all functions, so a function states types and its body may
 * rely on them. A body that cannot compute raises the database's words.
 */
import { saturated } from "../evaluate/cast.ts"
import { ownText, raise } from "../evaluate/failure.ts"
import type { Scope } from "../evaluate/scope.ts"
import { isNumber, toFloat } from "../values/number.ts"
import { shown } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import {
  Bytes,
  Closure,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  int,
  isInt,
  isObj,
  isRecordValue,
  Range,
  Regex,
  SetValue,
  Uuid
} from "../values/value.ts"

/** A function of the language: its parameters, and its compiled call. */
export interface Fn {
  readonly min: number
  readonly max: number
  /** The tail of the message for a wrong number of arguments. */
  readonly arity: string
  /** Equal arguments give equal results. */
  readonly pure: boolean
  /** Pure only with arguments (`time::day()` is about now). */
  readonly pureWithArguments?: true
  /** Reads the document or other records. */
  readonly reads: boolean
  /** A named constant (`math::pi`) rather than a function. */
  readonly constant?: Value
  readonly call: (args: ReadonlyArray<Value>, scope: Scope, name: string) => Value
}

export type Table = { readonly [name: string]: Fn }

/** Parameter types; a leading `?` makes one optional, `...` allows any number of the last. */
type Param = string

const types: { readonly [name: string]: (v: Value) => boolean } = {
  any: () => true,
  array: Array.isArray,
  string: (v) => typeof v === "string",
  number: isNumber,
  bool: (v) => typeof v === "boolean",
  int: (v) =>
    isInt(v) ||
    v instanceof Float ||
    (v instanceof Decimal && v.value.isInteger() && fitsInt(v)) ||
    (typeof v === "number" && Number.isInteger(v)),
  object: isObj,
  datetime: (v) => v instanceof Datetime,
  duration: (v) => v instanceof Duration,
  record: (v) => isRecordValue(v),
  function: (v) => v instanceof Closure,
  set: (v) => v instanceof SetValue,
  regex: (v) => v instanceof Regex,
  uuid: (v) => v instanceof Uuid,
  bytes: (v) => v instanceof Bytes,
  geometry: (v) => v instanceof Geometry,
  range: (v) => v instanceof Range,
  float: isNumber
}

const fitsInt = (v: Decimal): boolean => v.value.lte("9223372036854775807") && v.value.gte("-9223372036854775808")

const fits = (type: string, v: Value): boolean => type.split("|").some((t) => types[t.trim()]!(v))

/** A whole number as an int; any other stays as it is. */
export const asInt = (v: Value): Value => {
  if (isInt(v) || !isNumber(v)) return v
  if (v instanceof Decimal) return v.value.isInteger() && fitsInt(v) ? int(BigInt(v.value.toFixed())) : v
  return Number.isInteger(toFloat(v)) ? saturated(BigInt(toFloat(v))) : v
}

const shownType = (type: string): string => (type === "regex|string" ? "string | regex" : type.replaceAll("|", " | "))

const wrong = (name: string, index: number, type: string, v: Value): never =>
  raise`Incorrect arguments for function ${ownText(name)}(). Argument ${ownText(index + 1)} was the wrong type. Expected \`${ownText(shownType(type))}\` but found \`${shown(v)}\``

const arityText = (min: number, max: number): string =>
  max === Infinity
    ? `Expected ${min} or more arguments`
    : min === max
      ? `Expected ${min} argument${min === 1 ? "" : "s"}`
      : `Expected ${min} to ${max} arguments`

type Body<A extends ReadonlyArray<unknown>> = (args: A, scope: Scope, name: string) => Value

interface Options extends Partial<Pick<Fn, "pure" | "reads">> {
  /** Ints are passed unchanged, because they may be larger than a count or a position. */
  readonly wideInts?: true
}

/** A pure function of checked arguments. The body names the types it declared in its own parameter list. */
export const define = <A extends ReadonlyArray<unknown>>(
  params: ReadonlyArray<Param>,
  body: Body<A>,
  { wideInts, ...more }: Options = {}
): Fn => {
  const rest = params.some((p) => p.startsWith("..."))
  const specs = params.map((p) => p.replace(/^(\?|\.\.\.)/, ""))
  const min = params.filter((p) => !p.startsWith("?") && !p.startsWith("...")).length
  const max = rest ? Infinity : params.length
  return {
    min,
    max,
    arity: arityText(min, max),
    pure: true,
    reads: false,
    ...more,
    call: (given, scope, name) => {
      const args: Array<Value> = given.slice()
      for (let i = 0; i < args.length; i++) {
        const type = specs[Math.min(i, specs.length - 1)]!
        if (!fits(type, args[i])) wrong(name, i, type, args[i])
        if (type === "int") {
          const whole = asInt(args[i])
          args[i] = typeof whole === "bigint" && wideInts === undefined ? Number(whole) : whole
        }
      }
      return body(args as unknown as A, scope, name)
    }
  }
}

/** A named constant. */
export const constant = (value: Value): Fn => ({
  min: 0,
  max: 0,
  arity: arityText(0, 0),
  pure: true,
  reads: false,
  constant: value,
  call: () => value
})

/** A function that the database has and this evaluator deliberately lacks. */
export const volatile = (body: Fn["call"]): Fn => ({
  min: 0,
  max: Infinity,
  arity: "",
  pure: false,
  reads: false,
  call: body
})
