/**
 * Coercion: the values that a declared type accepts, for closure parameters, their results and typed LET.
 *
 * Why so: unlike a cast it converts very little: whole numbers between the number types, a text to the table of that
 * name, elements of arrays and sets.
 */

import { makeSet } from "../values/makeSet.ts"
import { isNumber, toFloat } from "../values/number.ts"
import { shown } from "../values/text.ts"
import { splitUnion } from "../values/typeText.ts"
import type { Value } from "../values/value.ts"
import {
  Bytes,
  Closure,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  isInt,
  isObj,
  isRecordValue,
  Range,
  Regex,
  SetValue,
  Table,
  Uuid
} from "../values/value.ts"
import { converted, elementsOf, geometryIs, isOneOf, partsOf } from "./cast.ts"
import { isLiteral, isLiteralType } from "./literalType.ts"

/** A value that a type does not accept, and why in the database's words. */
class Mismatch {
  constructor(readonly why: string) {}
}

type Result = Value | Mismatch

const mismatch = (type: string, v: Value): Mismatch =>
  new Mismatch(`Expected \`${type.replace(/^geometry<.*/s, "geometry")}\` but found \`${shown(v)}\``)

const tests: { readonly [type: string]: (v: Value) => boolean } = {
  any: () => true,
  none: (v) => v === undefined,
  null: (v) => v === null,
  bool: (v) => typeof v === "boolean",
  number: isNumber,
  string: (v) => typeof v === "string",
  datetime: (v) => v instanceof Datetime,
  duration: (v) => v instanceof Duration,
  uuid: (v) => v instanceof Uuid,
  bytes: (v) => v instanceof Bytes,
  object: isObj,
  regex: (v) => v instanceof Regex,
  range: (v) => v instanceof Range,
  function: (v) => v instanceof Closure,
  table: (v) => v instanceof Table,
  record: (v) => isRecordValue(v),
  geometry: (v) => v instanceof Geometry,
  point: (v) => v instanceof Geometry && geometryIs(v, "point")
}

const numeric = (type: string, v: Value): Result => {
  if (!isNumber(v)) return mismatch(type, v)
  const same =
    type === "int"
      ? isInt(v)
      : type === "decimal"
        ? v instanceof Decimal
        : v instanceof Float || (typeof v === "number" && !isInt(v))
  if (same) return v
  const out = type === "int" && !Number.isInteger(toFloat(v)) ? undefined : converted(type, v)
  return out === undefined ? mismatch(type, v) : out
}

const elements = (
  type: string,
  inner: string | undefined,
  list: ReadonlyArray<Value>
): ReadonlyArray<Value> | Mismatch => {
  const { element, size } = elementsOf(inner)
  const out: Array<Value> = []
  for (const item of list) {
    const v = attempt(element, item)
    if (v instanceof Mismatch)
      return new Mismatch(`${v.why} when coercing an element of \`${type.replaceAll(", ", ",")}\``)
    out.push(v)
  }
  return size !== undefined && out.length !== size
    ? new Mismatch(`Expected \`${type.replaceAll(", ", ",")}\` but found a collection of length \`${out.length}\``)
    : out
}

const one = (type: string, v: Value): Result => {
  if (isLiteralType(type)) return isLiteral(type, v) ? v : mismatch(type, v)
  const { inner, name } = partsOf(type)
  if (name === "int" || name === "float" || name === "decimal") return numeric(name, v)
  if (name === "array") return Array.isArray(v) ? elements(type, inner, v as ReadonlyArray<Value>) : mismatch(type, v)
  if (name === "set") {
    const out = v instanceof SetValue ? elements(type, inner, v.items) : mismatch(type, v)
    return out instanceof Mismatch ? out : makeSet(out)
  }
  // A text becomes the table of that name; a table value must be among the tables that the type names, if any.
  if (name === "table" && inner === undefined) return typeof v === "string" ? new Table(v) : mismatch("string", v)
  if (name === "table" && typeof v === "string") return one(type, new Table(v))
  if (!tests[name]!(v)) return mismatch(type, v)
  if (inner === undefined) return v
  const named = isRecordValue(v)
    ? isOneOf(v.table, inner)
    : v instanceof Table
      ? isOneOf(v.name, inner)
      : v instanceof Geometry && geometryIs(v, inner)
  return named ? v : mismatch(type, v)
}

const attempt = (type: string, v: Value): Result => {
  const options = splitUnion(type)
  if (options.length === 1) return one(options[0]!, v)
  for (const option of options) {
    const out = one(option, v)
    if (!(out instanceof Mismatch)) return out
  }
  return mismatch(type, v)
}

/** Whether a type that is part of a literal type accepts a value, which then stays unchanged. */
export const fits = (type: string, v: Value): boolean => !(attempt(type, v) instanceof Mismatch)

/** The value converted to the type; `otherwise` receives the reason if the type does not accept it. */
export const coerce = (type: string, v: Value, otherwise: (why: string) => Value): Value => {
  const out = attempt(type, v)
  return out instanceof Mismatch ? otherwise(out.why) : out
}
