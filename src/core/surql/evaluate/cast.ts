/**
 * Casts: `<int> '5'`, `<array<string>> x`, `<set> [1, 1]`.
 *
 * Why so: a cast either gives the type or fails with the database's words; which conversions exist is the database's
 * list.
 */

import { memoize } from "../memoize.ts"
import * as Regexes from "../regex/regex.ts"
import * as Datetimes from "../values/datetime.ts"
import * as Durations from "../values/duration.ts"
import { uuidPattern } from "../values/json.ts"
import { skipBlanks } from "../values/lex.ts"
import { makeSet } from "../values/makeSet.ts"
import { asDecimal, decimal, intsFrom, isNumber, parseDecimal, toFloat } from "../values/number.ts"
import * as RecordIds from "../values/recordId.ts"
import { shown, toText } from "../values/text.ts"
import { splitUnion } from "../values/typeText.ts"
import type { Value } from "../values/value.ts"
import {
  Bytes,
  Closure,
  Datetime,
  Decimal,
  Duration,
  Float,
  field,
  float,
  Geometry,
  int,
  isInt,
  isObj,
  isRecordValue,
  Range,
  Regex,
  SetValue,
  Table,
  Uuid
} from "../values/value.ts"
import { ownText, raise } from "./failure.ts"
import { isLiteral, isLiteralType } from "./literalType.ts"

const none = Symbol("none")
type Result = Value | typeof none

/** A whole float beyond 64 bits becomes the nearest int, as in the database. */
export const saturated = (n: bigint): Value =>
  int(n > 9223372036854775807n ? 9223372036854775807n : n < -9223372036854775808n ? -9223372036854775808n : n)

const fitting = (n: bigint): Result => (BigInt.asIntN(64, n) === n ? int(n) : none)

const toInt = (v: Value): Result => {
  if (isInt(v)) return v
  if (typeof v === "number" || v instanceof Float) {
    const n = toFloat(v)
    return Number.isInteger(n) ? saturated(BigInt(n)) : none
  }
  if (v instanceof Decimal) return v.value.isInteger() ? fitting(BigInt(v.value.toFixed())) : none
  if (typeof v === "string" && /^[+-]?\d+$/.test(v)) {
    return fitting(BigInt(v.startsWith("+") ? v.slice(1) : v))
  }
  return none
}

const floatText = /^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)$/i

const toFloatValue = (v: Value): Result => {
  if (isNumber(v)) return float(toFloat(v))
  if (typeof v !== "string" || !floatText.test(v)) return none
  const lower = v.toLowerCase().replace(/^\+/, "")
  if (/nan$/.test(lower)) return NaN
  return float(/inf/.test(lower) ? (lower.startsWith("-") ? -Infinity : Infinity) : Number(v))
}

/** A decimal from text without exponent, with at least one digit on either side of the point. */
const decimalIn = (text: string): Value =>
  /e|^[+-]?\.$/i.test(text)
    ? undefined
    : parseDecimal(text.replace(/^([+-]?)\./, (_, sign: string) => `${sign}0.`).replace(/\.$/, ""))

const toDecimalValue = (v: Value): Result => {
  if (isNumber(v)) {
    const exact = v instanceof Decimal ? v.value : asDecimal(v)
    return exact.isFinite() ? (decimal(exact) ?? none) : none
  }
  return typeof v === "string" ? (decimalIn(v) ?? none) : none
}

const toNumber = (v: Value): Result => {
  if (isNumber(v)) return v
  if (typeof v !== "string") return none
  // `<decimal>` takes underscores between digits, `<number>` does not.
  if (v.includes("_")) return none
  const whole = toInt(v)
  return whole !== none ? whole : toFloatValue(v) !== none ? toFloatValue(v) : toDecimalValue(v)
}

type Items = ReadonlyArray<Value>

const items = (v: Value): Items | undefined => {
  if (Array.isArray(v)) return v as Items
  if (v instanceof SetValue) return v.items
  if (v instanceof Bytes) return Array.from(v.value)
  if (v instanceof Range) return rangeItems(v)
  return undefined
}

/** The ints of a range; `undefined` if its ends are not ints, or there are more than a million. */
const rangeItems = (r: Range): ReadonlyArray<Value> | undefined => {
  const from = r.from,
    to = r.to
  if (from === undefined || to === undefined || !isInt(from.value) || !isInt(to.value)) return undefined
  const start = BigInt(from.value) + (from.inclusive ? 0n : 1n),
    end = BigInt(to.value) + (to.inclusive ? 1n : 0n)
  if (end - start > 1_000_000n) return raise`The range is too long to be made an array`
  return intsFrom(start, Number(end - start))
}

const toBytes = (v: Value): Result => {
  if (v instanceof Bytes) return v
  if (typeof v === "string") return new Bytes(new Uint8Array(utf8(v)))
  const ints = Array.isArray(v) ? (v as ReadonlyArray<Value>).map(toInt) : undefined
  return ints?.every((n) => n !== none)
    ? new Bytes(Uint8Array.from(ints as ReadonlyArray<number | bigint>, (n) => Number(BigInt.asUintN(8, BigInt(n)))))
    : none
}

/** The UTF-8 bytes of a string. */
export const utf8 = (text: string): Array<number> => {
  const out: Array<number> = []
  for (const char of text) {
    const c = char.codePointAt(0)!
    if (c < 0x80) out.push(c)
    else if (c < 0x800) out.push(0xc0 | (c >> 6), 0x80 | (c & 63))
    else if (c < 0x10000) out.push(0xe0 | (c >> 12), 0x80 | ((c >> 6) & 63), 0x80 | (c & 63))
    else out.push(0xf0 | (c >> 18), 0x80 | ((c >> 12) & 63), 0x80 | ((c >> 6) & 63), 0x80 | (c & 63))
  }
  return out
}

/** UTF-8 bytes as a string; `undefined` when they are not valid. */
const fromUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return decodeURIComponent(Array.from(bytes, (b) => "%" + b.toString(16).padStart(2, "0")).join(""))
  } catch {
    return undefined
  }
}

/** Text without surrounding white space and comments, which the database's parser of durations skips. */
const bare = (text: string): string => {
  const from = skipBlanks(text, 0),
    inner = from < 0 ? "" : text.slice(from),
    end = /[\s#/-]/.exec(inner)?.index ?? inner.length
  return skipBlanks(inner, end) === inner.length ? inner.slice(0, end) : text
}

const scalar = (name: string, v: Value): Result => {
  switch (name) {
    case "any":
      return v
    case "none":
      return v === undefined ? v : none
    case "null":
      return v === null ? v : none
    case "bool":
      return typeof v === "boolean" ? v : v === "true" ? true : v === "false" ? false : none
    case "int":
      return toInt(v)
    case "float":
      return toFloatValue(v)
    case "decimal":
      return toDecimalValue(v)
    case "number":
      return toNumber(v)
    case "string":
      return v instanceof Bytes ? (fromUtf8(v.value) ?? none) : toText(v)
    case "datetime":
      return v instanceof Datetime ? v : typeof v === "string" ? (Datetimes.parseWritten(v) ?? none) : none
    case "duration":
      return v instanceof Duration ? v : typeof v === "string" ? (Durations.parse(bare(v)) ?? none) : none
    case "uuid":
      return v instanceof Uuid ? v : typeof v === "string" ? (uuidOf(v) ?? none) : none
    case "bytes":
      return toBytes(v)
    case "object":
      return isObj(v) ? v : none
    case "function":
      return v instanceof Closure ? v : none
    case "regex":
      return v instanceof Regex ? v : typeof v === "string" && Regexes.compile(v) !== undefined ? new Regex(v) : none
    case "range":
      return v instanceof Range
        ? v
        : Array.isArray(v) && v.length === 2
          ? new Range({ value: v[0], inclusive: true }, { value: v[1], inclusive: false })
          : none
    case "geometry":
      return v instanceof Geometry ? v : none
    case "point":
      return v instanceof Geometry && field(v.value, "type") === "Point"
        ? v
        : Array.isArray(v) && v.length === 2 && v.every(isNumber)
          ? new Geometry({ type: "Point", coordinates: v.map((n) => float(toFloat(n))) })
          : none
    case "table":
      return v instanceof Table ? v : tableNamed(scalar("string", v))
    default:
      return none
  }
}

/** A uuid in any of its spellings: with hyphens, without, in braces, as a URN. */
export const uuidOf = (text: string): Uuid | undefined => {
  const bare = /^\{(.{36})\}$|^urn:uuid:(.{36})$/.exec(text),
    given = bare?.[1] ?? bare?.[2] ?? text
  if (uuidPattern.test(given)) return new Uuid(given.toLowerCase())
  return /^[0-9a-fA-F]{32}$/.test(text)
    ? new Uuid(text.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"))
    : undefined
}

const tableNamed = (name: Result): Result => (typeof name === "string" ? new Table(name) : none)

/** True for a name in a list separated by `|`. */
export const isOneOf = (name: string, list: string): boolean => list.split("|").some((t) => t.trim() === name)

const geometryNames: { readonly [type: string]: string } = {
  Point: "point",
  LineString: "line",
  Polygon: "polygon",
  MultiPoint: "multipoint",
  MultiLineString: "multiline",
  MultiPolygon: "multipolygon",
  GeometryCollection: "collection"
}

/** True for a geometry of one of the named kinds (`point | line`). */
export const geometryIs = (v: Geometry, kinds: string): boolean =>
  isOneOf(geometryNames[String(field(v.value, "type"))] ?? "", kinds)

const record = (v: Value, tables: string | undefined): Result => {
  const id = isRecordValue(v) ? v : typeof v === "string" ? RecordIds.parseWritten(v) : undefined
  return id === undefined || (tables !== undefined && !isOneOf(id.table, tables)) ? none : id
}

/** Most types parsed and cached: a type in a hostile query may be as long as the query. */
const mostTypes = 200

/** The name of a type and the text between its `<` and `>`; the whole text for a type written as a value. */
export const partsOf = memoize((type: string): { readonly name: string; readonly inner: string | undefined } => {
  const [, name = type, inner] = (isLiteralType(type) ? undefined : /^(\w+)<(.*)>$/s.exec(type)) ?? []
  return { name, inner }
}, mostTypes)

/** Type of the elements of an array or a set, and their number if it is declared. */
export const elementsOf = (inner = "any"): { readonly element: string; readonly size: number | undefined } => {
  const [, element = "any", size] = /^(.*?)(?:,\s*(\d+))?$/s.exec(inner)!
  return { element, size: size === undefined ? undefined : Number(size) }
}

const convert = (type: string, v: Value): Result => {
  if (isLiteralType(type)) return isLiteral(type, v) ? v : none
  const { inner, name } = partsOf(type)
  if (name === "record") return record(v, inner)
  if (name === "table" && inner !== undefined) {
    const table = scalar("table", v)
    return table instanceof Table && isOneOf(table.name, inner) ? table : none
  }
  if (name === "geometry" && inner !== undefined) {
    const given = v instanceof Geometry || !isOneOf("point", inner) ? v : scalar("point", v)
    return given instanceof Geometry && geometryIs(given, inner) ? given : none
  }
  if (name === "array" || name === "set") {
    const list = items(v)
    if (list === undefined) return none
    const { element, size } = elementsOf(inner)
    const out = list.map((item) => cast(element, item))
    const made = name === "set" ? makeSet(out, "last") : out
    const length = made instanceof SetValue ? made.items.length : out.length
    if (size !== undefined && length !== size)
      return raise`Expected \`${ownText(type.replaceAll(", ", ","))}\` but found a collection of length \`${length}\``
    return made
  }
  return scalar(name, v)
}

/** A value as a type that is no union, or `undefined` when there is no such conversion. */
export const converted = (type: string, v: Value): Value => {
  const out = convert(type, v)
  return out === none ? undefined : out
}

/**
 * Whether a value may become the list type `name<inner>` as one option of a union: it must be a list of this kind
 * already, and each element must fit `inner`.
 */
const fitsList = (name: "array" | "set", inner: string | undefined, v: Value): boolean => {
  const list =
    name === "set" ? (v instanceof SetValue ? v.items : undefined) : Array.isArray(v) ? (v as Items) : undefined
  const { element, size } = elementsOf(inner)
  const options = optionsOf(element)
  return (
    list !== undefined &&
    (size === undefined || list.length === size) &&
    list.every((item) => options.some((option) => mayBecome(option, item)))
  )
}

/**
 * Whether a value may become `type` as one option of a union. A union converts less than a single type: lists,
 * geometries and ids of a named table stay as they are, and NONE and NULL become no text.
 */
const mayBecome = (type: string, v: Value): boolean => {
  const { inner, name } = partsOf(type)
  switch (name) {
    case "array":
    case "set":
      return fitsList(name, inner, v)
    case "geometry":
    case "point":
      return v instanceof Geometry && convert(type, v) !== none
    case "record":
      return !(inner !== undefined && typeof v === "string") && convert(type, v) !== none
    case "string":
    case "table":
      return v !== undefined && v !== null && convert(type, v) !== none
    default:
      return convert(type, v) !== none
  }
}

/** The alternatives of a union type. */
const optionsOf = memoize(
  (type: string): ReadonlyArray<string> => [
    ...new Set(splitUnion(type).map((option) => option.replace(/^(set|array)<any>$/, "$1")))
  ],
  mostTypes
)

/** A type as the database's messages write it. */
const typeInMessages = (type: string, options: ReadonlyArray<string>): string =>
  options.length > 1
    ? options.map((option) => (option === "point" ? "geometry<point>" : option)).join(" | ")
    : type.replace(/^set(?=<|$)/, "array").replace(/^geometry<.*/s, "geometry")

/** Casts a value to a type in the parser's canonical text; fails if there is no such conversion. */
export const cast = (type: string, v: Value): Value => {
  const options = optionsOf(type)
  const fitting = options.length === 1 ? options[0] : options.find((option) => mayBecome(option, v))
  const out = fitting === undefined ? none : convert(fitting, v)
  if (out !== none) return out
  return raise`Could not cast into \`${ownText(typeInMessages(type, options))}\` using input \`${shown(v)}\``
}
