/**
 * Order, equality and truth of values, as the database has them.
 *
 * Why so: these three decide what every filter, sort and join does, so they are total functions over all types and
 * agree with the real engine (tests run both). Hot cases (two strings, two numbers) are decided first.
 */

import * as Regexes from "../regex/regex.ts"
import * as Datetimes from "./datetime.ts"
import { compareExactly, compareNumbers, isNumber } from "./number.ts"
import type { Bound, Obj, RecordKey, SpecialType, Value } from "./value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  field,
  Geometry,
  isInt,
  isObj,
  isRecordValue,
  Range,
  RecordId,
  RecordRange,
  type RecordValue,
  Regex,
  SetValue,
  Special,
  sameRecord,
  Table,
  Uuid
} from "./value.ts"

const specialRank: { readonly [type in SpecialType]: number } = {
  float: 3,
  decimal: 3,
  duration: 5,
  datetime: 6,
  uuid: 7,
  set: 9,
  geometry: 11,
  bytes: 12,
  table: 13,
  record: 14,
  regex: 15,
  range: 16,
  closure: 17
}

const rank = (v: Value): number => {
  switch (typeof v) {
    case "undefined":
      return 0
    case "boolean":
      return 2
    case "number":
    case "bigint":
      return 3
    case "string":
      return 4
    default:
      return v === null ? 1 : Array.isArray(v) ? 8 : v instanceof Special ? specialRank[v.type] : 10
  }
}

/** Strings by code point (UTF-16 units order surrogates below U+E000, the database does not). */
export const compareStrings = (a: string, b: string): number => {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i),
      y = b.charCodeAt(i)
    if (x !== y) {
      const high = x >= 0xd800 && x <= 0xdfff
      return high === (y >= 0xd800 && y <= 0xdfff) ? x - y : high ? (y >= 0xe000 ? 1 : x - y) : x >= 0xe000 ? -1 : x - y
    }
  }
  return a.length - b.length
}

/** The keys of an object sorted as the database sorts them. */
export const sortedKeys = (object: Obj): Array<string> => {
  const keys = Object.keys(object)
  return keys.length < 2 ? keys : keys.sort(compareStrings)
}

/** Total order over all values: negative, zero, positive. Values of different types order by type. */
export const compare = (a: Value, b: Value): number => {
  if (typeof a === "string" && typeof b === "string") return compareStrings(a, b)
  if (typeof a === "number" && typeof b === "number" && a === a && b === b) return a < b ? -1 : a > b ? 1 : 0
  const ra = rank(a),
    rb = rank(b)
  if (ra !== rb) return ra - rb
  if (ra === 3) return isNumber(a) && isNumber(b) ? compareNumbers(a, b) : 0
  if (ra === 2) return a === b ? 0 : a === true ? 1 : -1
  if (ra < 2) return 0
  return compareComplex(a, b)
}

const compareComplex = (a: Value, b: Value): number => {
  if (a instanceof RecordId && b instanceof RecordId) return compareAsValues(a, b)
  if (Array.isArray(a) && Array.isArray(b)) return compareArrays(a, b, compare)
  if (a instanceof Datetime && b instanceof Datetime) return a.seconds - b.seconds || a.nanos - b.nanos
  if (a instanceof Duration && b instanceof Duration)
    return a.seconds < b.seconds ? -1 : a.seconds > b.seconds ? 1 : a.nanos - b.nanos
  if (a instanceof Uuid && b instanceof Uuid) return compareStrings(a.text, b.text)
  if (a instanceof SetValue && b instanceof SetValue) return compareArrays(a.items, b.items, compare)
  if (a instanceof Bytes && b instanceof Bytes) return compareBytes(a.value, b.value)
  if (a instanceof Geometry && b instanceof Geometry) return compareGeometries(a.value, b.value)
  if (a instanceof Table && b instanceof Table) return compareStrings(a.name, b.name)
  if (a instanceof Regex && b instanceof Regex) return compareStrings(a.source, b.source)
  if (isObj(a) && isObj(b)) return compareObjects(a, b, compare)
  if (isRecordValue(a) && isRecordValue(b)) return compareRecordRanges(a, b)
  return compareRanges(a, b)
}

/** Sorts by a comparison. JavaScript's own sort always puts `undefined` last; here NONE sorts like any value. */
export const sortValues = (items: ReadonlyArray<Value>, by: (a: Value, b: Value) => number): Array<Value> =>
  items.includes(undefined)
    ? items
        .map((v) => [v] as const)
        .sort((a, b) => by(a[0], b[0]))
        .map(([v]) => v)
    : items.slice().sort(by)

/** Whether a key is unquoted: a quoted key ends in a back-tick, and must be parsed. */
const isBare = (text: string): boolean => text.charCodeAt(text.length - 1) !== 96

/** Whether the key is an array or an object. */
export const isComposite = ({ raw }: RecordId): boolean => typeof raw === "object" && !(raw.key instanceof Uuid)

/** Orders record ids as values: `k:[1]` and `k:[1f]` are equal. */
const compareAsValues = (a: RecordId, b: RecordId): number =>
  isComposite(a) && isComposite(b)
    ? compareStrings(a.table, b.table) || keyRank(a.key) - keyRank(b.key) || compare(a.key as Value, b.key as Value)
    : compareRecords(a, b)

/** Orders record ids as tables do: by table name, then by key. Different records are never equal. */
export const compareRecords = (a: RecordId, b: RecordId): number =>
  sameRecord(a, b) ? 0 : compareStrings(a.table, b.table) || compareKeysOf(a, b)

/** Orders two ids of one table. */
const compareKeysOf = (a: RecordId, b: RecordId): number =>
  typeof a.raw === "number" && typeof b.raw === "number"
    ? a.raw - b.raw
    : typeof a.raw === "string" && typeof b.raw === "string" && isBare(a.raw) && isBare(b.raw)
      ? compareStrings(a.raw, b.raw)
      : compareKeys(a.key, b.key) || compareStrings(a.text, b.text)

const keyRank = (k: RecordKey): number =>
  typeof k === "number" || typeof k === "bigint"
    ? 0
    : typeof k === "string"
      ? 1
      : k instanceof Uuid
        ? 2
        : Array.isArray(k)
          ? 3
          : 4

/**
 * Record keys in the order of tables: ints < strings < uuids < arrays < objects. Inside arrays and objects the database
 * keeps numbers apart by kind and datetimes as text, and so orders them ({@link compareStored}).
 */
export const compareKeys = (a: RecordKey, b: RecordKey): number => {
  if (typeof a === "string" && typeof b === "string") return compareStrings(a, b)
  return keyRank(a) - keyRank(b) || compareStored(a as Value, b as Value)
}

/** Ints before floats before decimals. */
export const numberKind = (v: Value): number => (v instanceof Decimal ? 2 : v instanceof Float || !isInt(v) ? 1 : 0)

/**
 * Orders values inside keys as tables do. As {@link compare}, but numbers are compared exactly, then by kind (`1`,
 * `1f`, `1dec`), and datetimes as text (`00.5Z` before `00Z`).
 */
export const compareStored = (a: Value, b: Value): number => {
  if (isNumber(a) && isNumber(b)) return compareExactly(a, b) || numberKind(a) - numberKind(b)
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return compare(a, b)
  if (a instanceof Datetime && b instanceof Datetime) return compareStrings(Datetimes.render(a), Datetimes.render(b))
  if (Array.isArray(a) && Array.isArray(b)) return compareArrays(a, b, compareStored)
  if (a instanceof SetValue && b instanceof SetValue) return compareArrays(a.items, b.items, compareStored)
  if (a instanceof RecordId && b instanceof RecordId) return compareRecords(a, b)
  return isObj(a) && isObj(b) ? compareObjects(a, b, compareStored) : compare(a, b)
}

type Comparison = (a: Value, b: Value) => number

const compareArrays = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>, items: Comparison): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const c = items(a[i], b[i])
    if (c !== 0) return c
  }
  return a.length - b.length
}

const compareObjects = (a: Obj, b: Obj, values: Comparison): number => {
  const ka = sortedKeys(a),
    kb = sortedKeys(b)
  const length = Math.min(ka.length, kb.length)
  for (let i = 0; i < length; i++) {
    const c = compareStrings(ka[i]!, kb[i]!) || values(field(a, ka[i]!), field(b, kb[i]!))
    if (c !== 0) return c
  }
  return ka.length - kb.length
}

const compareBytes = (a: Uint8Array, b: Uint8Array): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

/** Kinds of geometries in the order of the database. */
export const geometryKinds = [
  "Point",
  "LineString",
  "Polygon",
  "MultiPoint",
  "MultiLineString",
  "MultiPolygon",
  "GeometryCollection"
]

const compareGeometries = (a: Obj, b: Obj): number =>
  geometryKinds.indexOf(String(field(a, "type"))) - geometryKinds.indexOf(String(field(b, "type"))) ||
  compare(field(a, "coordinates"), field(b, "coordinates")) ||
  compare(field(a, "geometries"), field(b, "geometries"))

/** Bounds as the database's derive orders them: by kind (none, included, excluded), then by value. */
const compareBounds = (a: Bound | undefined, b: Bound | undefined): number => {
  const ka = a === undefined ? 0 : a.inclusive ? 1 : 2,
    kb = b === undefined ? 0 : b.inclusive ? 1 : 2
  return ka - kb || (a === undefined || b === undefined ? 0 : compare(a.value, b.value))
}

const compareRanges = (a: Value, b: Value): number =>
  a instanceof Range && b instanceof Range ? compareBounds(a.from, b.from) || compareBounds(a.to, b.to) : 0

/** Orders by table; ranges of keys come after all keys. */
const compareRecordRanges = (a: RecordValue, b: RecordValue): number =>
  compareStrings(a.table, b.table) ||
  (a instanceof RecordRange ? (b instanceof RecordRange ? compareRanges(a.range, b.range) : 1) : -1)

/**
 * The language's `=`: numbers exactly across kinds, a regex with a string it matches, and (D1) a string with a record
 * id of the same text. Deep, but what lies inside arrays, sets and objects is {@link equalWithoutPatterns}.
 */
export const equal = (a: Value, b: Value): boolean => {
  if (a === b) return true
  const ta = typeof a,
    tb = typeof b
  if (ta === "string") {
    if (tb === "string" || tb !== "object") return false
    return b instanceof RecordId ? b.text === a : b instanceof Regex && Regexes.matches(b.source, a as string)
  }
  if (tb === "string") return equal(b, a)
  if (isNumber(a)) return isNumber(b) && compareNumbers(a, b) === 0
  if (ta !== "object" || tb !== "object" || a === null || b === null) return false
  if (a instanceof RecordId) return b instanceof RecordId && sameRecord(a, b)
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b)
  if (a instanceof SetValue) return b instanceof SetValue && equalItems(a.items, b.items)
  if (isObj(a)) return isObj(b) && equalObjects(a, b, equalWithoutPatterns)
  return compare(a, b) === 0
}

const equalItems = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): boolean => {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!equalWithoutPatterns(a[i], b[i])) return false
  return true
}

const equalObjects = (a: Obj, b: Obj, same: (a: Value, b: Value) => boolean): boolean => {
  // Counts own fields (records inherit none); unlike `Object.keys` this allocates nothing, and runs for every change.
  let left = 0
  for (const key in a) {
    const x = a[key],
      y = b[key]
    if (x === y ? y === undefined && !Object.hasOwn(b, key) : !Object.hasOwn(b, key) || !same(x, y)) return false
    left++
  }
  for (const _ in b) left--
  return left === 0
}

/** Same content and same types (`1` is not `1.0`, text is not a record id). Deep. */
export const identical = (a: Value, b: Value): boolean => {
  if (Object.is(a, b)) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (a instanceof Special) return b instanceof Special && a.type === b.type && identicalSpecial(a, b)
  if (b instanceof Special) return false
  if (Array.isArray(a)) return Array.isArray(b) && identicalItems(a, b)
  return !Array.isArray(b) && equalObjects(a as Obj, b as Obj, identical)
}

const identicalItems = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): boolean => {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!identical(a[i], b[i])) return false
  return true
}

const identicalBounds = (a: Bound | undefined, b: Bound | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.inclusive === b.inclusive && identical(a.value, b.value)

const identicalSpecial = (a: Special, b: Special): boolean => {
  if (a instanceof RecordId && b instanceof RecordId) return sameRecord(a, b)
  if (a instanceof Float && b instanceof Float) return Object.is(a.value, b.value)
  if (a instanceof Decimal && b instanceof Decimal) return a.value.eq(b.value)
  if (a instanceof SetValue && b instanceof SetValue) return identicalItems(a.items, b.items)
  if (a instanceof Geometry && b instanceof Geometry) return identical(a.value, b.value)
  if (a instanceof RecordRange && b instanceof RecordRange)
    return a.table === b.table && identicalSpecial(a.range, b.range)
  if (a instanceof Range && b instanceof Range) return identicalBounds(a.from, b.from) && identicalBounds(a.to, b.to)
  return a.type !== "closure" && compare(a, b) === 0
}

/** `==`: as {@link equal}, but text is not matched with a pattern. */
export const equalWithoutPatterns = (a: Value, b: Value): boolean => {
  if (a === b) return true
  if (typeof a === "string") return typeof b === "object" && b instanceof RecordId && b.text === a
  return typeof b === "string" ? equalWithoutPatterns(b, a) : equal(a, b)
}

/** Truth as in WHERE, AND, OR and `?:`. */
export const isTruthy = (v: Value): boolean => {
  switch (typeof v) {
    case "boolean":
      return v
    case "undefined":
      return false
    case "number":
      return v !== 0
    case "bigint":
      return v !== 0n
    case "string":
      return v !== ""
    default:
      if (v === null) return false
      if (Array.isArray(v)) return v.length > 0
      return v instanceof Special ? isTruthySpecial(v) : Object.keys(v).length > 0
  }
}

/** Compares the type tag instead of classes: a chain of `instanceof` took ten times as long. */
const isTruthySpecial = (v: Special): boolean => {
  switch (v.type) {
    case "float":
      return (v as Float).value !== 0
    case "decimal":
      return !(v as Decimal).value.isZero()
    case "duration":
      return (v as Duration).seconds !== 0 || (v as Duration).nanos !== 0
    case "set":
      return (v as SetValue).items.length > 0
    case "bytes":
      return (v as Bytes).value.length > 0
    case "uuid":
    case "datetime":
    case "geometry":
    case "record":
      return true
    default:
      return false
  }
}
