/**
 * Values as the database's binary form and back: CBOR with the database's tags.
 *
 * Why our own and not the SDK's: through the SDK's values `1` and `1.0` become one, integers beyond 2^53 wrap, `-0`
 * turns into `0`, and every row would be built twice. Here bytes become {@link Value}s and values bytes, and nothing is
 * lost. A value the database cannot be sent (a closure, a regular expression) is a mistake of the caller: {@link
 * Unsendable}.
 */

import * as Datetimes from "../datetime.ts"
import * as Durations from "../duration.ts"
import { parseDecimal } from "../number.ts"
import * as RecordIds from "../recordId.ts"
import type { Bound, Obj, RecordKey, Value } from "../value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  field,
  float,
  Geometry,
  int,
  Range,
  RecordId,
  RecordRange,
  SetValue,
  Special,
  setField,
  Table,
  Uuid
} from "../value.ts"
import { halfFloat, tagOfGeometry, tags, uuidBytes, uuidText } from "./cborTags.ts"

const toUtf8 = new TextEncoder()
// A mark at the start of a text is part of it.
const fromUtf8 = new TextDecoder("utf-8", { ignoreBOM: true })

/** Thrown for a value that has no binary form. */
export class Unsendable extends TypeError {}

/** Encodes a value; {@link decode} gives it back. */
export const encode = (value: Value): Uint8Array => {
  const writer = new Writer()
  writer.value(value)
  return writer.bytes()
}

/** The value behind the database's bytes. Throws a RangeError on bytes that are none. */
export const decode = (bytes: Uint8Array): Value => new Reader(bytes).value()

class Writer {
  private buffer = new Uint8Array(512)
  private view = new DataView(this.buffer.buffer)
  private at = 0

  bytes(): Uint8Array {
    return this.buffer.subarray(0, this.at)
  }

  value(v: Value): void {
    switch (typeof v) {
      case "string":
        return this.text(v)
      case "boolean":
        return this.byte(v ? 0xf5 : 0xf4)
      case "undefined":
        return this.tagged(tags.none, null)
      case "number":
        return Number.isSafeInteger(v) && !Object.is(v, -0) ? this.integer(v) : this.float(v)
      case "bigint":
        return this.bigInteger(v)
      default:
        if (v === null) return this.byte(0xf6)
        if (Array.isArray(v)) return this.items(v as ReadonlyArray<Value>)
        return v instanceof Special ? this.special(v) : this.object(v as Obj)
    }
  }

  private special(v: Special): void {
    if (v instanceof RecordId) return this.tagged(tags.record, [v.table, v.key])
    if (v instanceof Float) return this.float(v.value)
    if (v instanceof Datetime) return this.tagged(tags.datetime, [v.seconds, v.nanos])
    if (v instanceof Duration) return this.duration(v)
    if (v instanceof Decimal) return this.tagged(tags.decimal, v.value.toFixed())
    if (v instanceof Uuid) return this.tagged(tags.uuid, new Bytes(uuidBytes(v.text)))
    if (v instanceof SetValue) return this.tagged(tags.set, v.items)
    if (v instanceof Bytes) return this.raw(v.value)
    if (v instanceof Table) return this.tagged(tags.table, v.name)
    if (v instanceof Geometry) return this.geometry(v.value)
    if (v instanceof RecordRange) {
      this.head(6, tags.record)
      this.head(4, 2)
      this.text(v.table)
      return this.range(v.range)
    }
    if (v instanceof Range) return this.range(v)
    throw new Unsendable(`a ${v.type} cannot be sent to the database`)
  }

  private items(items: ReadonlyArray<Value>): void {
    this.head(4, items.length)
    for (const item of items) this.value(item)
  }

  private object(object: Obj): void {
    const keys = Object.keys(object)
    this.head(5, keys.length)
    for (const key of keys) {
      this.text(key)
      this.value(object[key])
    }
  }

  private tagged(tag: number, v: Value): void {
    this.head(6, tag)
    this.value(v)
  }

  private duration({ nanos, seconds }: Duration): void {
    this.head(6, tags.duration)
    this.head(4, 2)
    if (typeof seconds === "bigint") this.wide(0x1b, seconds)
    else this.integer(seconds)
    this.integer(nanos)
  }

  private range({ from, to }: Range): void {
    this.head(6, tags.range)
    this.head(4, 2)
    for (const bound of [from, to]) {
      if (bound === undefined) this.byte(0xf6)
      else this.tagged(bound.inclusive ? tags.included : tags.excluded, bound.value)
    }
  }

  private geometry(object: Obj): void {
    const type = String(field(object, "type"))
    if (type === "GeometryCollection") return this.tagged(tags.collection, field(object, "geometries"))
    this.coordinates(tagOfGeometry[type]!, field(object, "coordinates") as ReadonlyArray<Value>)
  }

  private coordinates(tag: number, coordinates: ReadonlyArray<Value>): void {
    this.head(6, tag)
    this.head(4, coordinates.length)
    const inner = partOfGeometry[tag]
    for (const part of coordinates) {
      if (inner === undefined) this.float(part instanceof Float ? part.value : Number(part))
      else this.coordinates(inner, part as ReadonlyArray<Value>)
    }
  }

  private integer(n: number): void {
    if (n >= 0) this.head(0, n)
    else this.head(1, -1 - n)
  }

  private bigInteger(n: bigint): void {
    if (n < -9223372036854775808n || n > 9223372036854775807n) throw new Unsendable(`${n} is beyond 64 bits`)
    this.wide(n >= 0n ? 0x1b : 0x3b, n >= 0n ? n : -1n - n)
  }

  /** A head byte and 64 bits without a sign. */
  private wide(head: number, n: bigint): void {
    this.room(9)
    this.byte(head)
    this.view.setBigUint64(this.at, n)
    this.at += 8
  }

  private float(n: number): void {
    this.room(9)
    this.byte(0xfb)
    this.view.setFloat64(this.at, n)
    this.at += 8
  }

  private text(text: string): void {
    const bytes = toUtf8.encode(text)
    this.head(3, bytes.length)
    this.append(bytes)
  }

  private raw(bytes: Uint8Array): void {
    this.head(2, bytes.length)
    this.append(bytes)
  }

  private append(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.buffer.set(bytes, this.at)
    this.at += bytes.length
  }

  private head(major: number, argument: number): void {
    this.room(9)
    const first = major << 5
    if (argument < 24) return this.byte(first + argument)
    const size = argument < 0x100 ? 1 : argument < 0x10000 ? 2 : argument < 0x100000000 ? 4 : 8
    this.byte(first + 24 + Math.log2(size))
    if (size === 1) this.view.setUint8(this.at, argument)
    else if (size === 2) this.view.setUint16(this.at, argument)
    else if (size === 4) this.view.setUint32(this.at, argument)
    else this.view.setBigUint64(this.at, BigInt(argument))
    this.at += size
  }

  private byte(byte: number): void {
    this.room(1)
    this.buffer[this.at++] = byte
  }

  private room(size: number): void {
    if (this.at + size <= this.buffer.length) return
    const wider = new Uint8Array(Math.max(this.buffer.length * 2, this.at + size))
    wider.set(this.buffer)
    this.buffer = wider
    this.view = new DataView(wider.buffer)
  }
}

class Reader {
  private readonly view: DataView
  private at = 0

  constructor(private readonly buffer: Uint8Array) {
    this.view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }

  value(): Value {
    const first = this.view.getUint8(this.at++)
    const major = first >> 5,
      info = first & 31
    if (major === 7) return this.simple(info)
    if (info === 31) return this.indefinite(major)
    const argument = this.argument(info)
    if (major === 0) return typeof argument === "bigint" ? int(argument) : argument
    if (major === 1)
      return typeof argument === "bigint" || argument === Number.MAX_SAFE_INTEGER
        ? int(-1n - BigInt(argument))
        : -1 - argument
    const size = Number(argument)
    switch (major) {
      case 2:
        return new Bytes(this.take(size).slice())
      case 3:
        return this.text(size)
      case 4:
        return this.items(size)
      case 5:
        return this.object(size)
      default:
        return revive(size, this.value())
    }
  }

  private argument(info: number): number | bigint {
    if (info < 24) return info
    const at = this.at
    this.at += 1 << (info - 24)
    switch (info) {
      case 24:
        return this.view.getUint8(at)
      case 25:
        return this.view.getUint16(at)
      case 26:
        return this.view.getUint32(at)
      case 27: {
        const wide = this.view.getBigUint64(at)
        return wide <= 9007199254740991n ? Number(wide) : wide
      }
      default:
        throw new RangeError(`length code ${info} in the database's bytes`)
    }
  }

  private simple(info: number): Value {
    const at = this.at
    switch (info) {
      case 20:
        return false
      case 21:
        return true
      case 22:
        return null
      case 23:
        return undefined
      case 25:
        this.at += 2
        return float(halfFloat(this.view.getUint16(at)))
      case 26:
        this.at += 4
        return float(this.view.getFloat32(at))
      case 27:
        this.at += 8
        return float(this.view.getFloat64(at))
      default:
        throw new RangeError(`simple value ${info} in the database's bytes`)
    }
  }

  private take(size: number): Uint8Array {
    if (this.at + size > this.buffer.length) throw new RangeError("the database's bytes end early")
    return this.buffer.subarray(this.at, (this.at += size))
  }

  private text(size: number): string {
    const bytes = this.take(size)
    if (size > 24) return fromUtf8.decode(bytes)
    // Keys and short words are most of what comes; for them the decoder costs more than the work.
    let text = ""
    for (const byte of bytes) {
      if (byte > 127) return fromUtf8.decode(bytes)
      text += String.fromCharCode(byte)
    }
    return text
  }

  private items(size: number): ReadonlyArray<Value> {
    const items: Array<Value> = []
    for (let i = 0; i < size; i++) items.push(this.value())
    return items
  }

  private object(size: number): Obj {
    const object: Record<string, Value> = {}
    for (let i = 0; i < size; i++) {
      const key = this.value()
      setField(object, String(key), this.value())
    }
    return object
  }

  /** Strings, lists and objects whose length comes last. */
  private indefinite(major: number): Value {
    const parts: Array<Value> = []
    while (this.view.getUint8(this.at) !== 0xff) parts.push(this.value())
    this.at++
    if (major === 3) return parts.join("")
    if (major === 4) return parts
    if (major === 2)
      return new Bytes(Uint8Array.from(parts.flatMap((part) => (part instanceof Bytes ? Array.from(part.value) : []))))
    const object: Record<string, Value> = {}
    for (let i = 0; i + 1 < parts.length; i += 2) setField(object, String(parts[i]), parts[i + 1])
    return object
  }
}

const typeOfGeometry = new Map(Object.entries(tagOfGeometry).map(([type, tag]) => [tag, type]))
/** What the parts of a geometry are themselves; a point's are numbers. */
const partOfGeometry: { readonly [tag: number]: number } = {
  [tags.line]: tags.point,
  [tags.polygon]: tags.line,
  [tags.points]: tags.point,
  [tags.lines]: tags.line,
  [tags.polygons]: tags.polygon
}

/** The bounds of a range while it is read. */
class Edge extends Special {
  readonly type = "range"
  constructor(readonly bound: Bound) {
    super()
  }
}

const boundOf = (v: Value): Bound | undefined => (v instanceof Edge ? v.bound : undefined)
const pair = (v: Value): ReadonlyArray<Value> => (Array.isArray(v) ? (v as ReadonlyArray<Value>) : [])
const coordinatesOf = (v: Value): Value => (v instanceof Geometry ? field(v.value, "coordinates") : v)
const count = (v: Value): number => Number(v ?? 0)

const revive = (tag: number, v: Value): Value => {
  const type = typeOfGeometry.get(tag)
  if (type !== undefined) return new Geometry({ type, coordinates: pair(v).map(coordinatesOf) })
  const [a, b] = pair(v)
  switch (tag) {
    case tags.none:
      return undefined
    case tags.record:
      return b instanceof Range
        ? new RecordRange(String(a), b)
        : typeof v === "string"
          ? (RecordIds.parse(v) ?? v)
          : RecordIds.make(String(a), b as RecordKey)
    case tags.datetime:
      return new Datetime(count(a), count(b))
    case tags.duration:
      return new Duration(typeof a === "bigint" ? a : count(a), count(b))
    case tags.uuid:
      return v instanceof Bytes ? new Uuid(uuidText(v.value)) : v
    case tags.decimal:
      return parseDecimal(String(v)) ?? v
    case tags.set:
      return new SetValue(pair(v))
    case tags.table:
      return new Table(String(v))
    case tags.range:
      return new Range(boundOf(a), boundOf(b))
    case tags.included:
      return new Edge({ value: v, inclusive: true })
    case tags.excluded:
      return new Edge({ value: v, inclusive: false })
    case tags.collection:
      return new Geometry({ type: "GeometryCollection", geometries: v })
    case tags.textDatetime:
      return Datetimes.parse(String(v)) ?? v
    case tags.textDuration:
      return Durations.parse(String(v)) ?? v
    case tags.textUuid:
      return new Uuid(String(v).toLowerCase())
    // Files have no value of their own here: their text is what a query would show.
    case tags.file:
      return `f"${String(a)}:${String(b)}"`
    default:
      return v
  }
}
