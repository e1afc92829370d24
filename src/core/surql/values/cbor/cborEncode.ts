/**
 * Values as CBOR (RFC 8949), the way the database's own protocol writes them: `encoding::cbor::encode`.
 *
 * Why so, beside cbor.ts, which sends values to the database: these bytes are an answer, compared byte by byte. Numbers
 * take the shortest form that keeps them, objects come in key order, and types JSON has not are tagged with the
 * database's numbers, so that its clients can read what a view encodes.
 */
import { utf8 } from "../../evaluate/cast.ts"
import { sortedKeys } from "../order.ts"
import type { Bound, RecordKey, Value } from "../value.ts"
import {
  Bytes,
  Closure,
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
  SetValue,
  Table,
  Uuid
} from "../value.ts"
import { halfBits, tags, uuidBytes } from "./cborTags.ts"

/** Thrown by what CBOR has no form for; {@link encode} turns it into `undefined`. */
class Unencodable extends Error {}

type Out = Array<number>

const bigEndian = (out: Out, n: bigint, bytes: number): void => {
  for (let shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push(Number((n >> BigInt(shift)) & 255n))
}

/** A major type with its argument, in the fewest bytes. */
const head = (out: Out, major: number, n: bigint | number): void => {
  const value = BigInt(n),
    first = major << 5
  if (value < 24n) out.push(first | Number(value))
  else if (value < 256n) {
    out.push(first | 24)
    bigEndian(out, value, 1)
  } else if (value < 65536n) {
    out.push(first | 25)
    bigEndian(out, value, 2)
  } else if (value < 4294967296n) {
    out.push(first | 26)
    bigEndian(out, value, 4)
  } else {
    out.push(first | 27)
    bigEndian(out, value, 8)
  }
}

const integer = (out: Out, n: number | bigint): void => (n < 0 ? head(out, 1, -1n - BigInt(n)) : head(out, 0, n))

const float = (out: Out, n: number): void => {
  const short = halfBits(n)
  if (short !== undefined) {
    out.push(0xf9, short >> 8, short & 255)
    return
  }
  const single = Math.fround(n) === n,
    view = new DataView(new ArrayBuffer(8))
  if (single) view.setFloat32(0, n)
  else view.setFloat64(0, n)
  out.push(single ? 0xfa : 0xfb)
  for (let i = 0; i < (single ? 4 : 8); i++) out.push(view.getUint8(i))
}

const text = (out: Out, s: string): void => {
  const bytes = utf8(s)
  head(out, 3, bytes.length)
  for (const b of bytes) out.push(b)
}

const bytes = (out: Out, b: Iterable<number> & { readonly length: number }): void => {
  head(out, 2, b.length)
  for (const n of b) out.push(n)
}

const list = <A>(out: Out, items: ReadonlyArray<A>, one: (out: Out, item: A) => void): void => {
  head(out, 4, items.length)
  for (const item of items) one(out, item)
}

const tag = (out: Out, n: number): Out => {
  head(out, 6, n)
  return out
}

const uuid = (out: Out, u: Uuid): void => bytes(tag(out, tags.uuid), uuidBytes(u.text))

const key = (out: Out, k: RecordKey): void => (k instanceof Uuid ? uuid(out, k) : write(out, k as Value))

const bounds = (out: Out, r: Range, one: (out: Out, v: Value) => void): void =>
  list(tag(out, tags.range), [r.from, r.to], (o, b: Bound | undefined) => {
    if (b === undefined) o.push(0xf6)
    else one(tag(o, b.inclusive ? tags.included : tags.excluded), b.value)
  })

type Shape = (out: Out, v: Value) => void

const point: Shape = (out, v) =>
  list(tag(out, tags.point), v as ReadonlyArray<number | Float>, (o, n) => float(o, n instanceof Float ? n.value : n))

const several =
  (n: number, one: Shape): Shape =>
  (out, v) =>
    list(tag(out, n), v as ReadonlyArray<Value>, one)

const line = several(tags.line, point)

/** A ring ends where it began. */
const ring: Shape = (out, v) => {
  const items = v as ReadonlyArray<ReadonlyArray<number | Float>>,
    first = items[0],
    last = items[items.length - 1]
  const at = (p: ReadonlyArray<number | Float> | undefined): string =>
    (p ?? []).map((n) => (n instanceof Float ? n.value : n)).join()
  line(out, (at(first) === at(last) ? items : [...items, first!]) as Value)
}

const polygon = several(tags.polygon, ring)

const shapes: { readonly [type: string]: Shape } = {
  Point: point,
  LineString: line,
  Polygon: polygon,
  MultiPoint: several(tags.points, point),
  MultiLineString: several(tags.lines, line),
  MultiPolygon: several(tags.polygons, polygon)
}

const geometry: Shape = (out, v) => {
  const object = v instanceof Geometry ? v.value : isObj(v) ? v : {}
  const shape = shapes[String(field(object, "type"))]
  if (shape !== undefined) shape(out, field(object, "coordinates"))
  else several(tags.collection, geometry)(out, field(object, "geometries"))
}

const parts = (seconds: number | bigint, nanos: number): ReadonlyArray<number | bigint> =>
  nanos !== 0 ? [seconds, nanos] : seconds !== 0 ? [seconds] : []

const write = (out: Out, v: Value): void => {
  if (v === undefined) tag(out, tags.none).push(0xf6)
  else if (v === null) out.push(0xf6)
  else if (typeof v === "boolean") out.push(v ? 0xf5 : 0xf4)
  else if (typeof v === "string") text(out, v)
  else if (isInt(v)) integer(out, v)
  else if (typeof v === "number") float(out, v)
  else if (Array.isArray(v)) list(out, v as ReadonlyArray<Value>, write)
  else if (isObj(v)) {
    const keys = sortedKeys(v)
    head(out, 5, keys.length)
    for (const k of keys) {
      text(out, k)
      write(out, field(v, k))
    }
  } else special(out, v)
}

const special = (out: Out, v: Value): void => {
  if (v instanceof Float) float(out, v.value)
  else if (v instanceof Decimal) text(tag(out, tags.decimal), v.value.toFixed())
  else if (v instanceof Duration) list(tag(out, tags.duration), parts(v.seconds, v.nanos), integer)
  else if (v instanceof Datetime) list(tag(out, tags.datetime), [v.seconds, v.nanos], integer)
  else if (v instanceof Uuid) uuid(out, v)
  else if (v instanceof Bytes) bytes(out, v.value)
  else if (v instanceof Table) text(tag(out, tags.table), v.name)
  else if (v instanceof SetValue) list(tag(out, tags.set), v.items, write)
  else if (v instanceof Geometry) geometry(out, v)
  else if (v instanceof Range) bounds(out, v, write)
  else if (isRecordValue(v)) {
    head(tag(out, tags.record), 4, 2)
    text(out, v.table)
    if (v instanceof RecordId) key(out, v.key)
    else bounds(out, v.range, (o, k) => key(o, k as RecordKey))
  } else throw new Unencodable()
}

/** True where a closure stands anywhere in the value. */
export const hasClosure = (v: Value): boolean =>
  v instanceof Closure ||
  (Array.isArray(v) && (v as ReadonlyArray<Value>).some(hasClosure)) ||
  (isObj(v) && Object.values(v).some(hasClosure)) ||
  (v instanceof SetValue && v.items.some(hasClosure))

/** The bytes of a value; nothing when it holds a regular expression or a closure. Cost: its size. */
export const encode = (v: Value): Uint8Array | undefined => {
  const out: Out = []
  try {
    write(out, v)
  } catch (error) {
    if (error instanceof Unencodable) return undefined
    throw error
  }
  return Uint8Array.from(out)
}
