/**
 * Cost of writing a value as text, charged before it is written: a shared part is written each time it occurs.
 *
 * Making a value costs less: `array::repeat` of one object makes references, but a row's digest, hash and answer are as
 * long as if each were an object of its own.
 */
import { payWalk } from "../evaluate/charge.ts"
import { type Budget, spendBytes } from "../evaluate/scope.ts"
import { encode } from "../values/encode.ts"
import type { Obj, Value } from "../values/value.ts"
import { Bytes, Decimal, Geometry, Range, RecordId, RecordRange, Regex, SetValue, Special } from "../values/value.ts"

/** Bytes of a place in a list, and of a number in it. */
const place = 16

/** Bytes of a field of an object, without name and value. */
const entry = 24

/** Bytes of a typed value (beyond JSON): its tag and digits. */
const typed = 64

const escaped = /["\\\u0000-\u001f\ud800-\udfff]/

/** Characters of a quoted text; an escaped one counts six. */
const quoted = (text: string): number => {
  if (!escaped.test(text)) return text.length + 2
  let length = text.length + 2
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 34 || unit === 92) length++
    else if (unit < 32 || (unit >= 0xd800 && unit <= 0xdfff)) length += 5
  }
  return length
}

/** `left` minus the size of a value's text; stops below zero. */
const without = (v: Value, left: number): number => {
  if (left < 0) return left
  if (typeof v === "string") return left - quoted(v)
  if (typeof v === "bigint") return left - typed
  if (typeof v !== "object" || v === null) return left
  if (Array.isArray(v)) return withoutItems(v as ReadonlyArray<Value>, left)
  return v instanceof Special ? withoutSpecial(v, left) : withoutFields(v as Obj, left)
}

const withoutItems = (items: ReadonlyArray<Value>, left: number): number => {
  let rest = left - place * (1 + items.length)
  for (let i = 0; i < items.length && rest >= 0; i++) rest = without(items[i], rest)
  return rest
}

const withoutFields = (object: Obj, left: number): number => {
  let rest = left - entry
  for (const key in object) {
    if (rest < 0) return rest
    rest = without(object[key], rest - entry - quoted(key))
  }
  return rest
}

const withoutSpecial = (v: Special, left: number): number => {
  const rest = left - typed
  if (v instanceof RecordId) return rest - 2 * v.text.length
  if (v instanceof Decimal) return rest - Math.abs(v.value.e || 0)
  if (v instanceof SetValue) return withoutItems(v.items, rest)
  if (v instanceof Geometry) return withoutFields(v.value, rest)
  if (v instanceof Bytes) return rest - place * v.value.length
  if (v instanceof Regex) return rest - quoted(v.source)
  if (v instanceof RecordRange) return without(v.range, rest - v.table.length)
  if (v instanceof Range) return without(v.to?.value, without(v.from?.value, rest))
  return rest
}

/** Approximate bytes of a value as text or JSON; `most + 1` if there are more than `most`. */
export const bytesWritten = (v: Value, most: number): number => Math.min(most - without(v, most), most + 1)

/** Pays for writing a value: a step per part, and its bytes. Fails if the budget is used up. */
export const payWriting = (b: Budget, v: Value): void => {
  if (typeof v === "object" && v !== null) payWalk(b, v)
  spendBytes(b, bytesWritten(v, Math.max(0, b.bytes)))
}

/** The text of {@link encode} for a value, paid for. */
export const writeOut = (b: Budget, v: Value): string => {
  payWriting(b, v)
  return encode(v)
}
