/**
 * Values from CBOR: `encoding::cbor::decode`, the other way of cborEncode.ts.
 *
 * Why so: the bytes are a user's, so nothing is believed: lengths are checked against the bytes there before anything
 * is made, and nesting is bounded (cbor.ts, which reads what the database itself sends, trusts its peer and is built
 * for speed). What follows the first item is ignored, as the database does. A plain read makes items; a second pass
 * gives tags their meaning, because a tag's content is checked as a whole.
 */
import { fromUtf8 } from "../../evaluate/cast.ts"
import * as Datetimes from "../datetime.ts"
import * as Durations from "../duration.ts"
import { uuidPattern } from "../json.ts"
import { makeSet } from "../makeSet.ts"
import { isNumber, parseDecimal, toFloat } from "../number.ts"
import * as RecordIds from "../recordId.ts"
import type { Bound, Obj, RecordKey, Value } from "../value.ts"
import {
  Bytes,
  Datetime,
  Duration,
  field,
  float,
  Geometry,
  int,
  isInt,
  Range,
  RecordRange,
  setField,
  Table,
  Uuid
} from "../value.ts"
import { halfFloat, tags, uuidText } from "./cborTags.ts"

type Item =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "list"; readonly items: ReadonlyArray<Item> }
  | { readonly kind: "map"; readonly entries: ReadonlyArray<readonly [Item, Item]> }
  | { readonly kind: "tag"; readonly tag: number; readonly item: Item }

/** Thrown inside only: the bytes are no CBOR of a value. */
class Invalid extends Error {}

const invalid = (): never => {
  throw new Invalid()
}

const maxDepth = 64

interface Reader {
  readonly bytes: Uint8Array
  at: number
  depth: number
}

const take = (r: Reader, n: number): Uint8Array => {
  if (n > r.bytes.length - r.at) invalid()
  return r.bytes.subarray(r.at, (r.at += n))
}

const byte = (r: Reader): number => take(r, 1)[0]!

const unsigned = (bytes: Uint8Array): bigint => bytes.reduce((n, b) => (n << 8n) | BigInt(b), 0n)

/** The argument behind a head byte; nothing for an indefinite length. */
const argument = (r: Reader, low: number): bigint | undefined =>
  low < 24 ? BigInt(low) : low < 28 ? unsigned(take(r, 2 ** (low - 24))) : low === 31 ? undefined : invalid()

const isBreak = (r: Reader): boolean => {
  if (r.bytes[r.at] !== 0xff) return false
  r.at++
  return true
}

/** Bytes or text: whole, or in pieces of the same type up to a break. */
const chunk = (r: Reader, major: number, length: bigint | undefined): Uint8Array => {
  if (length !== undefined) return take(r, length > BigInt(r.bytes.length) ? invalid() : Number(length))
  const out: Array<number> = []
  while (!isBreak(r)) {
    const first = byte(r)
    for (const b of chunk(r, major, first >> 5 === major ? (argument(r, first & 31) ?? invalid()) : invalid()))
      out.push(b)
  }
  return Uint8Array.from(out)
}

const textOf = (bytes: Uint8Array): string => fromUtf8(bytes) ?? invalid()

const wrapped = (n: bigint): Value => int(BigInt.asIntN(64, n))

const simple = (r: Reader, low: number): Value => {
  const view = (n: number): DataView => {
    const b = take(r, n)
    return new DataView(b.buffer, b.byteOffset, n)
  }
  switch (low) {
    case 20:
      return false
    case 21:
      return true
    case 22:
    case 23:
      return null
    case 25:
      return float(halfFloat(view(2).getUint16(0)))
    case 26:
      return float(view(4).getFloat32(0))
    case 27:
      return float(view(8).getFloat64(0))
    default:
      return invalid()
  }
}

const many = <A>(r: Reader, count: bigint | undefined, one: () => A): Array<A> => {
  const out: Array<A> = []
  if (count !== undefined && count > BigInt(r.bytes.length - r.at)) invalid()
  while (count === undefined ? !isBreak(r) : out.length < Number(count)) out.push(one())
  return out
}

/** Tags 2 and 3 are integers of any size; the database keeps 64 bits of those up to 8 bytes. */
const bigInteger = (tag: number, item: Item): Item => {
  const v = item.kind === "value" ? item.value : undefined
  if (!(v instanceof Bytes)) return invalid()
  const n = unsigned(v.value)
  return n >= 1n << 64n ? invalid() : { kind: "value", value: wrapped(tag === 2 ? n : -1n - n) }
}

const read = (r: Reader): Item => {
  if (++r.depth > maxDepth) invalid()
  const first = byte(r),
    major = first >> 5,
    low = first & 31
  const item = major === 7 ? ({ kind: "value", value: simple(r, low) } as const) : compound(r, major, argument(r, low))
  r.depth--
  return item
}

const compound = (r: Reader, major: number, n: bigint | undefined): Item => {
  if (n === undefined && (major < 2 || major === 6)) return invalid()
  switch (major) {
    case 0:
      return { kind: "value", value: wrapped(n!) }
    case 1:
      return { kind: "value", value: wrapped(-1n - n!) }
    case 2:
      return { kind: "value", value: new Bytes(chunk(r, 2, n).slice()) }
    case 3:
      return { kind: "value", value: textOf(chunk(r, 3, n)) }
    case 4:
      return { kind: "list", items: many(r, n, () => read(r)) }
    case 5:
      return { kind: "map", entries: many(r, n, () => [read(r), read(r)] as const) }
    default:
      return n === 2n || n === 3n
        ? bigInteger(Number(n), read(r))
        : { kind: "tag", tag: n! > 1000n ? -1 : Number(n), item: read(r) }
  }
}

const text = (item: Item): string => (item.kind === "value" && typeof item.value === "string" ? item.value : invalid())

const items = (item: Item): ReadonlyArray<Item> => (item.kind === "list" ? item.items : invalid())

const whole = (item: Item | undefined): number =>
  item?.kind === "value" && typeof item.value === "number" && Number.isSafeInteger(item.value) ? item.value : invalid()

/** A count of 64 bits without a sign, out of the signed one that was read. */
const unsignedOf = (item: Item): number | bigint =>
  item.kind === "value" && isInt(item.value) ? int(BigInt.asUintN(64, BigInt(item.value))) : invalid()

const nanosOf = (item: Item | undefined): number => {
  const n = whole(item)
  return n >= 0 && n < 1e9 ? n : invalid()
}

const uuid = (item: Item): Uuid => {
  const v = item.kind === "value" ? item.value : undefined
  if (!(v instanceof Bytes) || v.value.length !== 16) return invalid()
  return new Uuid(uuidText(v.value))
}

const textUuid = (item: Item): Uuid => (uuidPattern.test(text(item)) ? new Uuid(text(item).toLowerCase()) : invalid())

const object = (entries: ReadonlyArray<readonly [Item, Item]>): Obj => {
  const out: Record<string, Value> = {}
  for (const [k, v] of entries) setField(out, text(k), value(v))
  return out
}

const key = (item: Item): RecordKey => {
  if (item.kind === "tag")
    return item.tag === tags.uuid ? uuid(item.item) : item.tag === tags.textUuid ? textUuid(item.item) : invalid()
  const v = value(item)
  return typeof v === "string" ||
    typeof v === "bigint" ||
    (typeof v === "number" && Number.isSafeInteger(v)) ||
    item.kind !== "value"
    ? (v as RecordKey)
    : invalid()
}

const bound = (item: Item, one: (item: Item) => Value): Bound | undefined => {
  if (item.kind === "value" && item.value === null) return undefined
  if (item.kind !== "tag" || (item.tag !== tags.included && item.tag !== tags.excluded)) return invalid()
  return { value: one(item.item), inclusive: item.tag === tags.included }
}

const range = (item: Item, one: (item: Item) => Value): Range => {
  const [from, to, ...more] = items(item)
  return from === undefined || to === undefined || more.length > 0
    ? invalid()
    : new Range(bound(from, one), bound(to, one))
}

const record = (item: Item): Value => {
  if (item.kind === "value") return RecordIds.parse(text(item)) ?? invalid()
  const [table, k, ...more] = items(item)
  if (table === undefined || k === undefined || more.length > 0) return invalid()
  return k.kind === "tag" && k.tag === tags.range
    ? new RecordRange(
        text(table),
        range(k.item, (i) => key(i) as Value)
      )
    : RecordIds.make(text(table), key(k))
}

const coordinate = (item: Item): Value => {
  const v = value(item)
  return isNumber(v) ? float(toFloat(v)) : invalid()
}

/** The coordinates of a geometry that must be of one type. */
const inside =
  (type: string) =>
  (item: Item): Value => {
    const v = item.kind === "tag" ? value(item) : undefined
    return v instanceof Geometry && field(v.value, "type") === type ? field(v.value, "coordinates") : invalid()
  }

const geometry = (type: string, coordinates: ReadonlyArray<Value>): Geometry => new Geometry({ type, coordinates })

const member = (item: Item): Value => {
  const v = value(item)
  return v instanceof Geometry ? v : invalid()
}

const tagged = (tag: number, item: Item): Value => {
  switch (tag) {
    case tags.none:
      return undefined
    case tags.textDatetime:
      return Datetimes.parse(text(item)) ?? invalid()
    case tags.datetime: {
      const [s, n, ...more] = items(item)
      return more.length > 0 ? invalid() : new Datetime(whole(s), nanosOf(n))
    }
    case tags.textUuid:
      return textUuid(item)
    case tags.uuid:
      return uuid(item)
    case tags.decimal:
      return parseDecimal(text(item)) ?? invalid()
    case tags.textDuration:
      return Durations.parse(text(item)) ?? invalid()
    case tags.duration: {
      const [s, n, ...more] = items(item)
      return more.length > 0
        ? invalid()
        : new Duration(s === undefined ? 0 : unsignedOf(s), n === undefined ? 0 : nanosOf(n))
    }
    case tags.record:
      return record(item)
    case tags.table:
      return new Table(text(item))
    case tags.range:
      return range(item, value)
    case tags.set:
      return makeSet(items(item).map(value))
    case tags.point: {
      const at = items(item).map(coordinate)
      return at.length === 2 ? geometry("Point", at) : invalid()
    }
    case tags.line:
      return geometry("LineString", items(item).map(inside("Point")))
    case tags.polygon:
      return items(item).length === 0 ? invalid() : geometry("Polygon", items(item).map(inside("LineString")))
    case tags.points:
      return geometry("MultiPoint", items(item).map(inside("Point")))
    case tags.lines:
      return geometry("MultiLineString", items(item).map(inside("LineString")))
    case tags.polygons:
      return geometry("MultiPolygon", items(item).map(inside("Polygon")))
    case tags.collection:
      return new Geometry({ type: "GeometryCollection", geometries: items(item).map(member) })
    default:
      return invalid()
  }
}

const value = (item: Item): Value => {
  switch (item.kind) {
    case "value":
      return item.value
    case "list":
      return item.items.map(value)
    case "map":
      return object(item.entries)
    case "tag":
      return tagged(item.tag, item.item)
  }
}

/** The first value in the bytes, or nothing when they are no CBOR of one. Cost: their length. */
export const decode = (bytes: Uint8Array): { readonly value: Value } | undefined => {
  try {
    return { value: value(read({ bytes, at: 0, depth: 0 })) }
  } catch (error) {
    if (error instanceof Invalid) return undefined
    throw error
  }
}
