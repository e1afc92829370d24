/**
 * Values as CBOR (RFC 8949) with the database's tags: to the database, and as the answer of `encoding::cbor::encode`.
 *
 * Why our own and not the SDK's: through the SDK's values `1` and `1.0` become one, integers beyond 2^53 wrap, `-0`
 * turns into `0`, and every row would be built twice. Answers are compared byte by byte, so they have the canonical
 * form: shortest exact numbers, objects in key order, closed rings. For the database the plain form suffices and costs
 * less.
 */

import { sortedKeys } from "../order.ts"
import type { Obj, Value } from "../value.ts"
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
  Range,
  RecordId,
  RecordRange,
  SetValue,
  Special,
  Table,
  Uuid
} from "../value.ts"
import { halfBits, partOfGeometry, tagOfGeometry, tags, uuidBytes } from "./cborTags.ts"

const toUtf8 = new TextEncoder()

/** Thrown for a value that has no binary form: a closure, a regular expression. */
export class Unsendable extends TypeError {}

/** The bytes of a value, for `decode`. Throws {@link Unsendable}. */
export const encode = (value: Value): Uint8Array => bytesOf(value, false)

/** The canonical bytes; undefined for a value without any. Cost: the size of the value. */
export const encodeCanonical = (value: Value): Uint8Array | undefined => {
  try {
    return bytesOf(value, true).slice()
  } catch (error) {
    if (error instanceof Unsendable) return undefined
    throw error
  }
}

const bytesOf = (value: Value, canonical: boolean): Uint8Array => {
  const writer = new Writer(canonical)
  writer.value(value)
  return writer.bytes()
}

/** Whether the value contains a closure. */
export const hasClosure = (v: Value): boolean =>
  v instanceof Closure ||
  (Array.isArray(v) && (v as ReadonlyArray<Value>).some(hasClosure)) ||
  (isObj(v) && Object.values(v).some(hasClosure)) ||
  (v instanceof SetValue && v.items.some(hasClosure))

class Writer {
  private buffer = new Uint8Array(512)
  private view = new DataView(this.buffer.buffer)
  private at = 0

  constructor(private readonly canonical: boolean) {}

  /** The written part of the buffer. */
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
        return isInt(v) ? this.integer(v) : this.float(v)
      case "bigint":
        if (BigInt.asIntN(64, v) !== v) throw new Unsendable(`${v} is beyond 64 bits`)
        return this.integer(v)
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
    if (v instanceof Bytes) return this.raw(2, v.value)
    if (v instanceof Table) return this.tagged(tags.table, v.name)
    if (v instanceof Geometry) return this.geometry(v.value)
    if (v instanceof RecordRange) return this.tagged(tags.record, [v.table, v.range])
    if (v instanceof Range) return this.range(v)
    throw new Unsendable(`a ${v.type} cannot be sent to the database`)
  }

  private items(items: ReadonlyArray<Value>): void {
    this.head(4, items.length)
    for (const item of items) this.value(item)
  }

  private object(object: Obj): void {
    const keys = this.canonical ? sortedKeys(object) : Object.keys(object)
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

  /** Seconds are unsigned 64-bit, a range that no int has. */
  private duration({ nanos, seconds }: Duration): void {
    const parts = nanos !== 0 || !this.canonical ? [seconds, nanos] : seconds !== 0 ? [seconds] : []
    this.head(6, tags.duration)
    this.head(4, parts.length)
    for (const part of parts) this.integer(part)
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
    const tag = tagOfGeometry[String(field(object, "type"))]
    if (tag !== undefined) return this.coordinates(tag, field(object, "coordinates") as ReadonlyArray<Value>)
    const members = field(object, "geometries") as ReadonlyArray<Value>
    this.head(6, tags.collection)
    this.head(4, members.length)
    for (const member of members) this.geometry(member instanceof Geometry ? member.value : (member as Obj))
  }

  private coordinates(tag: number, coordinates: ReadonlyArray<Value>, isRing = false): void {
    const inner = partOfGeometry[tag]
    const parts = isRing && this.canonical ? closed(coordinates) : coordinates
    this.head(6, tag)
    this.head(4, parts.length)
    for (const part of parts) {
      if (inner === undefined) this.float(numberOf(part))
      else this.coordinates(inner, part as ReadonlyArray<Value>, tag === tags.polygon)
    }
  }

  private integer(n: number | bigint): void {
    if (typeof n === "bigint") this.head(n < 0n ? 1 : 0, n < 0n ? -1n - n : n)
    else this.head(n < 0 ? 1 : 0, n < 0 ? -1 - n : n)
  }

  private float(n: number): void {
    this.room(9)
    const half = this.canonical ? halfBits(n) : undefined
    if (half !== undefined) {
      this.byte(0xf9)
      this.view.setUint16(this.at, half)
      this.at += 2
    } else if (this.canonical && Math.fround(n) === n) {
      this.byte(0xfa)
      this.view.setFloat32(this.at, n)
      this.at += 4
    } else {
      this.byte(0xfb)
      this.view.setFloat64(this.at, n)
      this.at += 8
    }
  }

  private text(text: string): void {
    this.raw(3, toUtf8.encode(text))
  }

  private raw(major: number, bytes: Uint8Array): void {
    this.head(major, bytes.length)
    this.room(bytes.length)
    this.buffer.set(bytes, this.at)
    this.at += bytes.length
  }

  /** A major type with its argument, in the fewest bytes. */
  private head(major: number, argument: number | bigint): void {
    this.room(9)
    const first = major << 5
    if (argument < 24) return this.byte(first + Number(argument))
    const size = argument < 0x100 ? 1 : argument < 0x10000 ? 2 : argument < 0x100000000 ? 4 : 8
    this.byte(first + 24 + Math.log2(size))
    if (size === 1) this.view.setUint8(this.at, Number(argument))
    else if (size === 2) this.view.setUint16(this.at, Number(argument))
    else if (size === 4) this.view.setUint32(this.at, Number(argument))
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

const numberOf = (v: Value): number => (v instanceof Float ? v.value : Number(v))

/** A ring that ends where it began. */
const closed = (points: ReadonlyArray<Value>): ReadonlyArray<Value> => {
  const at = (point: Value): string => ((point ?? []) as ReadonlyArray<Value>).map(numberOf).join()
  return at(points[0]) === at(points.at(-1)) ? points : [...points, points[0]]
}
