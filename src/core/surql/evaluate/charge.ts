/**
 * The cost of work, charged before it is done: steps for rows and values walked, bytes for values made.
 *
 * Why so: a value may hold one large part many times over, so what a call walks cannot be read off its arguments in no
 * time. A walk counts its parts and stops where the budget does; it costs a fraction of the work that it stands for.
 * Primitives are free. One step stands for some ten nanoseconds: a part looked at, four characters handled one by one,
 * sixty-four handled by the runtime.
 */

import type { Obj, Value } from "../values/value.ts"
import { Bytes, Decimal, Geometry, Range, RecordId, RecordRange, Regex, SetValue, Special } from "../values/value.ts"
import type { Budget } from "./scope.ts"
import { keepBytes, spendBytes, spendSteps } from "./scope.ts"

/** Number of parts that a typed value counts as: comparing, hashing or writing it takes that much longer. */
const typed = 4

/** Number of parts that a decimal counts as: its digits are processed one by one. */
const decimal = 16

/** `left` minus the number of parts of a value; stops below zero. */
const without = (v: Value, left: number): number => {
  if (typeof v === "string") return left - (v.length >> 6)
  if (typeof v !== "object" || v === null) return typeof v === "bigint" ? left - typed : left
  if (Array.isArray(v)) return withoutItems(v as ReadonlyArray<Value>, left)
  return v instanceof Special ? withoutSpecial(v, left) : withoutFields(v as Obj, left)
}

const withoutItems = (items: ReadonlyArray<Value>, left: number): number => {
  let rest = left - items.length
  for (let i = 0; i < items.length && rest >= 0; i++) {
    const item = items[i]
    if (typeof item === "string" || typeof item === "bigint" || (typeof item === "object" && item !== null))
      rest = without(item, rest)
  }
  return rest
}

const withoutFields = (object: Obj, left: number): number => {
  let rest = left - 1
  for (const key in object) {
    if (rest < 0) return rest
    rest = without(object[key], rest - 3 - (key.length >> 6))
  }
  return rest
}

const withoutSpecial = (v: Special, left: number): number => {
  if (v instanceof RecordId) return left - typed - ((typeof v.raw === "number" ? v.table : v.text).length >> 6)
  if (v instanceof Decimal) return left - decimal
  if (v instanceof SetValue) return withoutItems(v.items, left)
  if (v instanceof Geometry) return withoutFields(v.value, left)
  if (v instanceof Bytes) return left - (v.value.length >> 2)
  if (v instanceof Regex) return left - (v.source.length >> 2)
  if (v instanceof RecordRange) return without(v.range, left - 1)
  if (v instanceof Range) return without(v.to?.value, without(v.from?.value, left - 1))
  return left - typed
}

/** Number of parts of a value, shared ones counted each time; `most + 1` if there are more than `most`. */
export const partsOf = (v: Value, most: number): number => Math.min(most - without(v, most), most + 1)

/** Bytes of one part of a value. */
const partBytes = 64

/** Approximate bytes of a value; values above `most` are not distinguished. */
export const bytesOf = (v: Value, most: number): number => partBytes * partsOf(v, Math.floor(most / partBytes))

/** Gives back the bytes made since there were `before` left, except those of a value that is kept. */
export const keepValue = (b: Budget, before: number, kept: Value): void => {
  const made = before - b.bytes
  if (made > 0) keepBytes(b, before, bytesOf(kept, made))
}

/** Steps that the current work may still take. */
const within = (b: Budget): number => Math.max(0, b.left - b.floor)

/** Pays for a walk through a value; answers its number of parts. */
export const payWalk = (b: Budget, v: Value): number => {
  const parts = partsOf(v, within(b))
  spendSteps(b, parts)
  return parts
}

/** Number of elements, fields or characters of a value, whatever they contain. */
export const lengthOf = (v: Value): number => {
  if (typeof v === "string" || Array.isArray(v)) return v.length
  if (typeof v !== "object" || v === null) return 0
  if (!(v instanceof Special)) {
    let n = 0
    for (const _ in v) n++
    return n
  }
  return v instanceof SetValue ? v.items.length : v instanceof Bytes ? v.value.length : 0
}

/** Texts up to this length compare in constant time. */
const shortText = 256

/** Whether a value compares in constant time. */
export const isSmall = (v: Value): boolean =>
  typeof v === "string" ? v.length <= shortText : typeof v !== "object" || v === null

const allSmall = (items: ReadonlyArray<Value>): boolean => {
  for (let i = 0; i < items.length; i++) if (!isSmall(items[i])) return false
  return true
}

/** A list of a few primitives, whose length alone counts. */
const isShort = (v: Value): boolean => Array.isArray(v) && v.length <= 16 && allSmall(v as ReadonlyArray<Value>)

/** Pays for comparing two values that are not small: at most for the smaller one. */
export const payComparison = (b: Budget, left: Value, right: Value): void => {
  if (typeof left === "string" && typeof right === "string")
    return spendSteps(b, Math.min(left.length, right.length) >> 6)
  if (isShort(left) && isShort(right))
    return spendSteps(b, 3 * Math.min((left as ReadonlyArray<Value>).length, (right as ReadonlyArray<Value>).length))
  const x = partsOf(left, within(b)),
    y = partsOf(right, within(b))
  if (left instanceof Regex || right instanceof Regex) return spendSteps(b, matching(x, y))
  spendSteps(b, 3 * Math.min(x, y))
}

/** Steps of a regular expression of `x` parts over a text of `y`. */
const matching = (x: number, y: number): number => 64 * (1 + x) * (1 + y)

/** The text of an id whose key is a list or an object. */
const composite = /:\s*[[{]/

/** As {@link payComparison}; a text compared with a record id is parsed as an id. */
export const payOrdering = (b: Budget, left: Value, right: Value): void => {
  if (typeof left === "string") {
    if (right instanceof RecordId) spendSteps(b, idSteps(left))
  } else if (typeof right === "string" && left instanceof RecordId) spendSteps(b, idSteps(right))
  payComparison(b, left, right)
}

/** Steps of parsing the text of a record id: a key that is a list or an object is parsed too. */
export const idSteps = (text: string): number => (composite.test(text) ? 128 * text.length : text.length >> 1)

/** Most comparisons or moves of sorting `n` items. */
export const sortSteps = (n: number): number => (n < 2 ? n : n * Math.ceil(Math.log2(n)))

/** Pays for searching a container of any type for values. */
export const payContainment = (b: Budget, container: Value, wanted: Value): void => {
  if (Array.isArray(container) && isSmall(wanted) && allSmall(container as ReadonlyArray<Value>))
    return spendSteps(b, container.length >> 2)
  const most = within(b)
  const x = partsOf(container, most),
    y = partsOf(wanted, most)
  const many =
    container instanceof Geometry ||
    wanted instanceof Geometry ||
    wanted instanceof Regex ||
    Array.isArray(wanted) ||
    wanted instanceof SetValue
  if (typeof container === "string" && typeof wanted === "string") return paySearch(b, container, wanted)
  spendSteps(b, many && x > 0 && y > 0 ? x * y : x + y)
}

/** Pays for searching a text for another. */
export const paySearch = (b: Budget, text: string, wanted: string): void =>
  spendSteps(
    b,
    (text.length >> 6) +
      Math.ceil((text.length * Math.min(wanted.length, Math.max(0, text.length - wanted.length))) / 4096)
  )

/** Steps of converting an element to a type, by the most expensive type that it names. */
const conversion = (type: string): number =>
  type.includes("decimal") ? 64 : /string|bytes|datetime|uuid|record|regex|duration/.test(type) ? 24 : 4

/**
 * Pays for a cast: each alternative of the type is tried on each element, and text may be as long as all parts of the
 * value.
 */
export const payCast = (b: Budget, type: string, v: Value): void => {
  if (type.includes("record"))
    for (const item of Array.isArray(v) ? (v as ReadonlyArray<Value>) : [v])
      if (typeof item === "string") spendSteps(b, idSteps(item))
  if (typeof v === "string" ? v.length < 64 : typeof v !== "object" || v === null)
    return spendSteps(b, 1 + (type.length >> 3))
  const span = v instanceof Range ? Number(v.to?.value ?? 0) - Number(v.from?.value ?? 0) : 0
  const n = 1 + (span > 0 && span <= 1_000_001 ? span : 0) + payWalk(b, v)
  // Text as bytes is handled character by character.
  const characters = typeof v === "string" && type.includes("bytes") ? 4 * v.length : 0
  spendSteps(
    b,
    n * (conversion(type) + (type.length >> 3)) + characters + (type.includes("set") ? 4 * sortSteps(n) : 0)
  )
  spendBytes(b, (type.includes("decimal") ? 160 : 64) * (n - 1) + characters)
}

/** Pays for combining two values with `+`. */
export const payAddition = (b: Budget, left: Value, right: Value): void => {
  const n = lengthOf(left) + lengthOf(right)
  if (typeof left === "string") {
    if (n < 256) return
    spendSteps(b, n >> 6)
    return spendBytes(b, 2 * n)
  }
  const isSet = left instanceof SetValue
  spendSteps(b, isSet ? 2 * sortSteps(payWalk(b, left) + payWalk(b, right)) : n)
  spendBytes(b, (Array.isArray(left) || isSet ? 16 : 64) * n)
}
