/**
 * Record keys as text whose order by code point is the order of the keys, one text per key.
 *
 * Why so: with it a range of keys is a range of an index of any store that compares bytes, so a table is read in key
 * order without sorting. Text and not bytes, so that a person can read it. Ints are written as decimal exponent and
 * digits, because keys inside arrays may be numbers of any kind and size, each followed by its kind.
 */
import * as Datetimes from "./datetime.ts"
import * as Encode from "./encode.ts"
import type { NumberValue } from "./number.ts"
import { binaryValue, isNumber, toDecimal } from "./number.ts"
import { geometryKinds, numberKind, sortedKeys } from "./order.ts"
import type { Obj, RecordKey, Value } from "./value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  field,
  Geometry,
  RecordId,
  Regex,
  SetValue,
  Special,
  Table,
  Uuid
} from "./value.ts"

/** Ends a variable-length text; sorts below every character of content. */
const end = "\u0001"
const more = "\u0002"

const awkward = /[\u0000\u0001\ud800-\udfff\uffff]/

/**
 * A text in a form that any store keeps and orders right: in UTF-8 and without U+0000, at which some stores cut. Half a
 * surrogate pair, which UTF-8 lacks, must sort before the characters that a first half begins, and a second half after
 * all: each is written as the character before with a mark, and that character with a lower mark.
 */
export const wellFormed = (text: string): string => {
  if (!awkward.test(text)) return text
  let out = ""
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i),
      next = text.charCodeAt(i + 1)
    if (unit < 2) out += end + String.fromCharCode(unit + 1)
    else if (unit < 0xd800 || unit > 0xdfff) out += unit === 0xffff ? text[i]! + end : text[i]!
    else if (unit >= 0xdc00) out += `\u{10ffff}\u0003${String.fromCharCode(unit + 0x800)}`
    else if (next >= 0xdc00 && next <= 0xdfff) out += text[i]! + text[++i]! + (next === 0xdfff ? end : "")
    else out += String.fromCodePoint(0xffff + (unit - 0xd800) * 0x400) + more
  }
  return out
}

const low = /[\u0000-\u0002]/g

const nested = (text: string): string =>
  wellFormed(text).replace(low, (c) => more + String.fromCharCode(c.charCodeAt(0) + 1)) + end

const mirrored = (text: string): string => {
  let out = ""
  for (let i = 0; i < text.length; i++) out += String.fromCharCode(0x9f - text.charCodeAt(i))
  return out
}

/** A decimal exponent as characters in the same order; most numbers need one letter. */
const exponent = (e: number): string =>
  e >= 0 && e <= 20
    ? String.fromCharCode(0x46 + e)
    : e > 0
      ? `a${String(e).padStart(6, "0")}`
      : `A${String(999_999 + e).padStart(6, "0")}`

/** Suffix of a number inside a key: sorts above everything that may follow an int there. */
const kindText = (v: NumberValue): string => ["", "f", "g"][numberKind(v)]!

const zeros = /0+$/

/** `0.digits × 10^e`, for a number above zero. */
const positive = (digits: string, e: number): string => exponent(e) + digits.replace(zeros, "") + "!"

const numberText = (v: NumberValue): string => {
  const n = v instanceof Float || v instanceof Decimal ? v.value : v
  if (typeof n === "number") {
    if (n === 0) return "1"
    if (!Number.isFinite(n)) return n === -Infinity ? "/" : n === Infinity ? "3" : "4"
    if (Number.isSafeInteger(n)) {
      const digits = String(Math.abs(n))
      return n > 0 ? "2" + positive(digits, digits.length) : "0" + mirrored(positive(digits, digits.length))
    }
  }
  const exact = toDecimal(binaryValue(n))
  if (exact.isZero()) return "1"
  const text = positive(
    exact.d.map((part, i) => (i === 0 ? String(part) : String(part).padStart(7, "0"))).join(""),
    exact.e + 1
  )
  return exact.isNegative() ? "0" + mirrored(text) : "2" + text
}

const time = ({ nanos, seconds }: Duration): string => numberText(seconds) + String(nanos).padStart(9, "0")

const items = (list: ReadonlyArray<Value>): string => list.map(valueText).join("") + end

const objectText = (object: Obj): string =>
  sortedKeys(object)
    .map((key) => more + nested(key) + valueText(field(object, key)))
    .join("") + end

/** A value inside a key: rank of its type, then its content; no text is the beginning of another. */
const valueText = (v: Value): string => {
  if (v === undefined) return "A"
  if (v === null) return "B"
  if (typeof v === "boolean") return v ? "Ct" : "Cf"
  if (isNumber(v)) return "D" + numberText(v) + kindText(v)
  if (typeof v === "string") return "E" + nested(v)
  if (Array.isArray(v)) return "I" + items(v)
  return v instanceof Special ? specialText(v) : "K" + objectText(v as Obj)
}

const specialText = (v: Special): string => {
  if (v instanceof Duration) return "F" + time(v)
  if (v instanceof Datetime) return "G" + Datetimes.render(v)
  if (v instanceof Uuid) return "H" + v.text
  if (v instanceof SetValue) return "J" + items(v.items)
  if (v instanceof Geometry)
    return (
      "L" +
      geometryKinds.indexOf(String(field(v.value, "type"))) +
      valueText(field(v.value, "coordinates")) +
      valueText(field(v.value, "geometries"))
    )
  if (v instanceof Bytes) return "M" + Array.from(v.value, (byte) => byte.toString(16).padStart(2, "0")).join("") + end
  if (v instanceof Table) return "N" + nested(v.name)
  if (v instanceof RecordId) return "O" + nested(v.table) + innerKey(v.key)
  if (v instanceof Regex) return "P" + nested(v.source)
  // Two ranges inside keys are told apart by their text alone.
  return "Q" + nested(Encode.encode(v))
}

const innerKey = (key: RecordKey): string => (typeof key === "string" ? "1" + nested(key) : ordered(key))

const ordered = (key: RecordKey): string => {
  if (typeof key === "string") return "1" + wellFormed(key)
  if (typeof key === "number" || typeof key === "bigint") return "0" + numberText(key)
  if (key instanceof Uuid) return "2" + key.text
  return Array.isArray(key) ? "3" + items(key) : "4" + objectText(key as Obj)
}

const isComposite = (key: RecordKey): boolean => typeof key === "object" && !(key instanceof Uuid)

/** The text of a key; different for different keys. */
export const keyText = (key: RecordKey): string =>
  isComposite(key) ? ordered(key) + wellFormed(Encode.encode(key as Value)) : ordered(key)

/** All keys equal to a key have texts between these two, ends included, and no other keys do. */
export const textRangeOf = (key: RecordKey): { readonly first: string; readonly last: string } => {
  const first = ordered(key)
  return { first, last: isComposite(key) ? first + "\u{10ffff}" : first }
}

/** Whether a value could be a key; a bound of a range may be other values too. */
export const isKey = (v: Value): v is RecordKey =>
  typeof v === "string" ||
  typeof v === "number" ||
  typeof v === "bigint" ||
  (typeof v === "object" && v !== null && (!(v instanceof Special) || v instanceof Uuid))
