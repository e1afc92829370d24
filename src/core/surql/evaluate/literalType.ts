/**
 * Types that are written as values: `123 | 456`, `'abc'`, `true`, `[number, 'abc']`, `{ status: 'ok', at: datetime }`.
 *
 * Why so: like all types they are stored as canonical text, which is the text of the value; a value has such a type or
 * not, nothing is converted.
 */

import { memoize } from "../memoize.ts"
import { open } from "../syntax/parser.ts"
import * as Lex from "../values/lex.ts"
import { isNumber } from "../values/number.ts"
import { equal, identical } from "../values/order.ts"
import { splitOutside, splitUnion } from "../values/typeText.ts"
import type { Value } from "../values/value.ts"
import { field, isObj } from "../values/value.ts"
import { fits } from "./coerce.ts"

/** Whether a type's text is a value or made of values. */
export const isLiteralType = (type: string): boolean =>
  /^(?:['"[{\d]|-\d|[dub]['"]|(?:true|false|NaN|Infinity)$)/.test(type)

/** Most constants cached; each is parsed once. */
const mostConstants = 1000

const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["false", false],
  ["NaN", NaN],
  ["Infinity", Infinity]
])

const read = (text: string): Value => {
  if (text.startsWith("-")) return Lex.number(text, 0, 0).value
  const { kind, text: content, value } = open(text).token
  return kind === "string" ? content : value
}

const constantOf = memoize(
  (text: string): { readonly value: Value } => ({ value: constants.has(text) ? constants.get(text) : read(text) }),
  mostConstants
)

const isConstant = (constant: Value, v: Value): boolean =>
  isNumber(constant) ? isNumber(v) && equal(constant, v) : identical(constant, v)

/** Whether a value has a type without conversion. */
const isOf = (type: string, v: Value): boolean =>
  splitUnion(type).some((option) => (isLiteralType(option) ? isLiteral(option, v) : fits(option, v)))

const isTuple = (parts: ReadonlyArray<string>, v: Value): boolean =>
  Array.isArray(v) && v.length === parts.length && parts.every((part, i) => isOf(part, (v as ReadonlyArray<Value>)[i]))

/** Objects must have exactly the named fields; a field that may be NONE may be missing. */
const isShape = (parts: ReadonlyArray<string>, v: Value): boolean => {
  if (!isObj(v)) return false
  const types = new Map(
    parts.map((part) => {
      const [key = "", ...type] = splitOutside(part, ":")
      return [key.startsWith('"') ? open(key).token.text : key, type.join(":")]
    })
  )
  return (
    Object.keys(v).every((name) => types.has(name)) && [...types].every(([name, type]) => isOf(type, field(v, name)))
  )
}

/** Whether a value has a literal type ({@link isLiteralType}). */
export const isLiteral = (type: string, v: Value): boolean => {
  if (type.startsWith("[")) return isTuple(splitOutside(type.slice(1, -1), ","), v)
  return type.startsWith("{") ? isShape(splitOutside(type.slice(1, -1), ","), v) : isConstant(constantOf(type).value, v)
}
