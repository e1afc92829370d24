/**
 * Values as query text, the way the database prints them: for `<string>`, string concatenation, messages and record
 * ids.
 *
 * Why so: record ids are compared by their text and clients see it, so escaping must be the database's to the
 * character.
 */
import * as Datetimes from "./datetime.ts"
import * as Durations from "./duration.ts"
import { escapeWith, nameText } from "./names.ts"
import { sortedKeys } from "./order.ts"
import type { Bound, Obj, RecordKey, Value } from "./value.ts"
import {
  Bytes,
  Closure,
  Datetime,
  Decimal,
  Duration,
  Float,
  field,
  Geometry,
  Range,
  RecordId,
  RecordRange,
  Regex,
  SetValue,
  Special,
  Table,
  Uuid
} from "./value.ts"

/**
 * The shortest digits of a number. If two texts are equally near, JavaScript takes the even one and the database the
 * greater one: then the number is exactly the printed text followed by a five.
 */
const shortest = (n: number): string => {
  const text = String(n)
  if (Number.isInteger(n) || text.length < 16 || text.includes("e")) return text
  const between = (places: number): boolean => n.toFixed(places).replace(/0+$/, "") === `${text}5`
  // `toFixed(20)` may be rounded; sixty places are exact.
  return between(20) && between(60) ? text.slice(0, -1) + String(Number(text.at(-1)) + 1) : text
}

/** A JavaScript number in positional notation (the database never prints exponents). */
export const positionalText = (n: number): string => {
  const text = shortest(n)
  const at = text.indexOf("e")
  if (at < 0) return Object.is(n, -0) ? "-0" : text
  const sign = n < 0 ? "-" : ""
  const mantissa = text.slice(sign.length, at)
  const exponent = Number(text.slice(at + 1))
  const [whole, part = ""] = mantissa.split(".") as [string, string?]
  const digits = whole + part
  const point = whole.length + exponent
  if (point <= 0) return sign + "0." + "0".repeat(-point) + digits
  return point >= digits.length
    ? sign + digits.padEnd(point, "0")
    : sign + digits.slice(0, point) + "." + digits.slice(point)
}

const floatText = (n: number): string =>
  Number.isFinite(n) ? positionalText(n) + "f" : n !== n ? "NaN" : n > 0 ? "Infinity" : "-Infinity"

/** A string literal: single quotes unless it holds one. */
export const quote = (text: string): string =>
  text.includes("'") ? '"' + escapeWith(text, '"') + '"' : "'" + escapeWith(text, "'") + "'"

const plain = /^[A-Za-z_][A-Za-z0-9_]*$/

/** An object key: bare, or in double quotes. */
export const objectKey = (key: string): string =>
  plain.test(key) && key !== "NaN" && key !== "Infinity" ? key : '"' + escapeWith(key, '"') + '"'

/** Words that begin a statement or a constant: as the name of a table alone they need back-ticks. */
const beginnings: ReadonlySet<string> = new Set(
  (
    "after all alter before begin break by cancel commit continue create define delete diff false for function if info insert kill let live none null " +
    "option rand rebuild relate remove return select sequence show sleep table throw true update upsert use value where"
  ).split(" ")
)

const tableText = (name: string): string =>
  plain.test(name) && !beginnings.has(name.toLowerCase()) && name !== "NaN" && name !== "Infinity"
    ? name
    : "`" + escapeWith(name, "`") + "`"

/**
 * A name in a statement: always in back-ticks, because a bare one may be a keyword (`INFO FOR TABLE delete STRUCTURE`
 * deletes).
 */
export const identifier = (name: string): string => "`" + escapeWith(name, "`") + "`"

/** The key part of a record id, after the colon. */
const recordKey = (key: RecordKey): string =>
  typeof key === "string"
    ? nameText(key)
    : typeof key === "number" || typeof key === "bigint"
      ? String(key)
      : render(key)

/** The canonical text of a record id. */
export const recordText = (table: string, key: RecordKey): string => nameText(table) + ":" + recordKey(key)

const bound = (b: Bound | undefined, text: (v: Value) => string, side: "from" | "to"): string =>
  b === undefined
    ? ""
    : side === "from"
      ? text(b.value) + (b.inclusive ? "" : ">")
      : (b.inclusive ? "=" : "") + text(b.value)

const rangeText = (r: Range, text: (v: Value) => string): string =>
  bound(r.from, text, "from") + ".." + bound(r.to, text, "to")

/** Writes a number of a geometry's coordinates. */
type Coordinate = (v: Value) => string

const objectText = (o: Obj, coordinate: Coordinate): string =>
  Object.keys(o).length === 0
    ? "{  }"
    : "{ " +
      sortedKeys(o)
        .map((k) => objectKey(k) + ": " + write(field(o, k), coordinate))
        .join(", ") +
      " }"

const bare: Coordinate = (v) => render(v).replace(/f$/, "").replace("Infinity", "inf")

const suffixed: Coordinate = (v) => (typeof v === "number" ? floatText(v) : render(v))

const geometryText = (g: Obj, coordinate: Coordinate): string => {
  const nested = (v: Value): string => (Array.isArray(v) ? `[${v.map(nested).join(", ")}]` : coordinate(v))
  const type = String(field(g, "type"))
  if (type === "Point") return `(${nested(field(g, "coordinates")).slice(1, -1)})`
  const inside =
    type === "GeometryCollection"
      ? `geometries: ${write(field(g, "geometries"), coordinate)}`
      : `coordinates: ${nested(field(g, "coordinates"))}`
  return `{ type: '${type}', ${inside} }`
}

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (b) => b.toString(16).padStart(2, "0").toUpperCase()).join("")

const specialText = (v: Special, coordinate: Coordinate): string => {
  const text = (item: Value): string => write(item, coordinate)
  if (v instanceof RecordId) return v.text
  if (v instanceof Float) return floatText(v.value)
  if (v instanceof Decimal) return v.value.toFixed() + "dec"
  if (v instanceof Datetime) return `d'${Datetimes.render(v)}'`
  if (v instanceof Duration) return Durations.render(v)
  if (v instanceof Uuid) return `u'${v.text}'`
  if (v instanceof SetValue)
    return v.items.length === 0
      ? "{,}"
      : v.items.length === 1
        ? `{${text(v.items[0])},}`
        : `{${v.items.map(text).join(", ")}}`
  if (v instanceof Bytes) return `b"${hex(v.value)}"`
  if (v instanceof Regex) return `/${v.source.replaceAll("/", "\\/")}/`
  if (v instanceof RecordRange) return `${nameText(v.table)}:${rangeText(v.range, (k) => recordKey(k as RecordKey))}`
  if (v instanceof Range) return rangeText(v, text)
  if (v instanceof Geometry) return geometryText(v.value, coordinate)
  if (v instanceof Table) return tableText(v.name)
  return v instanceof Closure ? v.text : ""
}

const write = (v: Value, coordinate: Coordinate): string => {
  switch (typeof v) {
    case "undefined":
      return "NONE"
    case "string":
      return quote(v)
    case "boolean":
    case "bigint":
      return String(v)
    case "number":
      return Number.isSafeInteger(v) && !Object.is(v, -0) ? String(v) : floatText(v)
    default:
      if (v === null) return "NULL"
      if (Array.isArray(v)) return "[" + v.map((item) => write(item, coordinate)).join(", ") + "]"
      return v instanceof Special ? specialText(v, coordinate) : objectText(v as Obj, coordinate)
  }
}

/** A value as a literal of the query language: `'a'`, `1.5f`, `d'2020-01-01T00:00:00Z'`, `{ a: 1 }`. */
export const render = (v: Value): string => write(v, bare)

/** A value in the name of a result: as {@link render}, but coordinates have the suffix of floats. */
export const renderName = (v: Value): string => write(v, suffixed)

/** A value inside a longer text: as {@link toText}, but decimals keep their suffix. */
export const rawText = (v: Value): string => (v instanceof Decimal ? v.value.toFixed() + "dec" : toText(v))

/** A value as `<string>` casts it: like {@link render}, but strings, datetimes, uuids and decimals bare. */
export const toText = (v: Value): string => {
  if (typeof v === "string") return v
  if (v instanceof Datetime) return Datetimes.render(v)
  if (v instanceof Uuid) return v.text
  if (v instanceof Decimal) return v.value.toFixed()
  return render(v)
}

/** Most parts and characters of a value in a message. */
const shownAtMost = 4096

/** `left` minus the size of a value's text; stops below zero. */
const room = (v: Value, left: number): number => {
  if (typeof v === "string") return left - v.length
  if (typeof v !== "object" || v === null) return left - 1
  if (v instanceof RecordId) return left - v.text.length
  const items: Iterable<Value> = Array.isArray(v)
    ? (v as ReadonlyArray<Value>)
    : v instanceof SetValue
      ? v.items
      : v instanceof Geometry
        ? [v.value]
        : v instanceof Bytes
          ? []
          : v instanceof Special
            ? []
            : Object.values(v)
  let rest = left - (v instanceof Bytes ? v.value.length : 1)
  for (const item of items) if ((rest = room(item, rest)) < 0) break
  return rest
}

/** A value for a message: as {@link render}, but a too long value is only named by its type. */
export const shown = (v: Value, text: (v: Value) => string = render): string =>
  room(v, shownAtMost) >= 0
    ? text(v)
    : Array.isArray(v)
      ? "[..]"
      : typeof v === "string"
        ? quote(v.slice(0, 100) + "..")
        : "{ .. }"
