/**
 * Values from CBOR with the database's tags: from the database, and as the answer of `encoding::cbor::decode`.
 *
 * Bytes become {@link Value}s without loss (`cborWriter.ts`). Lengths are checked against the available bytes before
 * anything is allocated. A peer is trusted: of an unknown tag the content is used. Bytes of a stranger are not: nesting
 * is bounded, and a tag with unfitting content makes the whole invalid. Bytes after the first item are ignored, as in
 * the database.
 */

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
  isObj,
  Range,
  RecordRange,
  SetValue,
  Special,
  setField,
  Table,
  Uuid
} from "../value.ts"
import { halfFloat, partOfGeometry, tags, typeOfGeometry, uuidText } from "./cborTags.ts"

// A byte order mark is part of the text.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The bytes are no CBOR of a value. */
class Invalid extends RangeError {
  constructor() {
    super("bytes of the database that are no value in CBOR")
  }
}

const invalid = (): never => {
  throw new Invalid()
}

/** The value of the database's bytes. Throws a RangeError on invalid bytes. */
export const decode = (bytes: Uint8Array): Value => new Reader(bytes, true).value()

/** The value of a stranger's bytes; undefined if they are invalid. Cost: their length. */
export const decodeStranger = (bytes: Uint8Array): { readonly value: Value } | undefined => {
  try {
    return { value: new Reader(bytes, false).whole() }
  } catch (error) {
    if (error instanceof Invalid) return undefined
    throw error
  }
}

const maxDepth = 64

/** A bound of a range while the range is read. */
class Edge extends Special {
  readonly type = "range"
  constructor(readonly bound: Bound) {
    super()
  }
}

class Reader {
  private readonly view: DataView
  private at = 0
  private depth = 0
  /** Bounds read that belong to no range yet. */
  private edges = 0
  /** Within a `NONE` values are skipped, not made. */
  private skipped = 0

  constructor(
    private readonly buffer: Uint8Array,
    private readonly trusts: boolean
  ) {
    this.view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }

  whole(): Value {
    const value = this.value()
    return this.edges === 0 ? value : invalid()
  }

  value(): Value {
    if (++this.depth > maxDepth && !this.trusts) invalid()
    const first = this.view.getUint8(this.room(1))
    const info = first & 31
    const value =
      first >> 5 === 7 ? this.simple(info) : this.compound(first >> 5, info === 31 ? -1 : this.argument(info))
    this.depth--
    return value
  }

  /** `argument`: -1 if the length is indefinite. */
  private compound(major: number, argument: number | bigint): Value {
    switch (major) {
      case 0:
        return argument === -1 ? invalid() : typeof argument === "bigint" ? wrapped(argument) : argument
      case 1:
        if (argument === -1) return invalid()
        return typeof argument === "bigint" || argument === Number.MAX_SAFE_INTEGER
          ? wrapped(-1n - BigInt(argument))
          : -1 - argument
      case 2:
        return new Bytes(this.chunk(major, argument).slice())
      case 3:
        return textOf(this.chunk(major, argument))
      case 4:
        return this.items(argument)
      case 5:
        return this.object(argument)
      default:
        return argument === -1 ? invalid() : this.tagged(Number(argument))
    }
  }

  private argument(info: number): number | bigint {
    if (info < 24) return info
    if (info > 27) return invalid()
    const at = this.room(1 << (info - 24))
    if (info === 24) return this.view.getUint8(at)
    if (info === 25) return this.view.getUint16(at)
    if (info === 26) return this.view.getUint32(at)
    return int(this.view.getBigUint64(at))
  }

  private simple(info: number): Value {
    switch (info) {
      case 20:
        return false
      case 21:
        return true
      case 22:
        return null
      case 23:
        return this.trusts ? undefined : null
      case 25:
        return float(halfFloat(this.view.getUint16(this.room(2))))
      case 26:
        return float(this.view.getFloat32(this.room(4)))
      case 27:
        return float(this.view.getFloat64(this.room(8)))
      default:
        return invalid()
    }
  }

  /** Position of the next bytes, which are then consumed. */
  private room(size: number | bigint): number {
    const at = this.at
    if (size > this.buffer.length - at) invalid()
    this.at += Number(size)
    return at
  }

  private isBreak(): boolean {
    if (this.buffer[this.at] !== 0xff) return false
    this.at++
    return true
  }

  /** Bytes or text: whole, or in chunks of the same type up to a break. */
  private chunk(major: number, size: number | bigint): Uint8Array {
    if (size !== -1) {
      const at = this.room(size)
      return this.buffer.subarray(at, this.at)
    }
    const out: Array<number> = []
    while (!this.isBreak()) {
      const first = this.view.getUint8(this.room(1))
      if (first >> 5 !== major || (first & 31) === 31) invalid()
      for (const byte of this.chunk(major, this.argument(first & 31))) out.push(byte)
    }
    return Uint8Array.from(out)
  }

  /** Whether another item follows, by count or up to a break. */
  private isMore(read: number, size: number | bigint): boolean {
    return size === -1 ? !this.isBreak() : read < size
  }

  private items(size: number | bigint): ReadonlyArray<Value> {
    const items: Array<Value> = []
    if (size > this.buffer.length - this.at) invalid()
    while (this.isMore(items.length, size)) items.push(this.value())
    return items
  }

  private object(size: number | bigint): Obj {
    const object: Record<string, Value> = {}
    if (size > this.buffer.length - this.at) invalid()
    for (let read = 0; this.isMore(read, size); read++) {
      const key = this.value()
      if (typeof key !== "string" && !this.trusts && this.skipped === 0) invalid()
      setField(object, String(key), this.value())
    }
    return object
  }

  private tagged(tag: number): Value {
    if (tag === tags.none) {
      this.skipped++
      this.value()
      this.skipped--
      return undefined
    }
    const content = this.value()
    if (tag === 2 || tag === 3) return bigInteger(tag, content)
    if (this.skipped > 0) return null
    if (tag === tags.included || tag === tags.excluded) {
      this.edges++
      return new Edge({ value: content, inclusive: tag === tags.included })
    }
    const meant = this.meaning(tag, content)
    return meant ?? (this.trusts ? content : invalid())
  }

  /** The value of a tagged item; undefined if the content does not fit the tag. */
  private meaning(tag: number, v: Value): Value {
    const type = typeOfGeometry.get(tag)
    if (type !== undefined) return this.geometry(tag, type, v)
    switch (tag) {
      case tags.record:
        return recordOf(v)
      case tags.datetime:
        return datetimeOf(v)
      case tags.duration:
        return durationOf(v)
      case tags.uuid:
        return v instanceof Bytes && v.value.length === 16 ? new Uuid(uuidText(v.value)) : undefined
      case tags.textUuid:
        return typeof v === "string" && uuidPattern.test(v) ? new Uuid(v.toLowerCase()) : undefined
      case tags.set:
        return isList(v) ? (this.trusts ? new SetValue(v) : makeSet(v)) : undefined
      case tags.range:
        return this.range(v)
      // Files have no value type here: their text is used, as a query would show it.
      case tags.file:
        return this.trusts && isList(v) ? `f"${String(v[0])}:${String(v[1])}"` : undefined
      default:
        return typeof v === "string" ? meaningOfText(tag, v) : undefined
    }
  }

  private range(v: Value): Range | undefined {
    if (!isList(v) || v.length !== 2) return undefined
    const bounds = v.filter((bound) => bound instanceof Edge)
    if (!v.every((bound) => bound === null || (bound === undefined && this.trusts) || bound instanceof Edge))
      return undefined
    this.edges -= bounds.length
    const [from, to] = v.map((bound) => (bound instanceof Edge ? bound.bound : undefined))
    return new Range(from, to)
  }

  private geometry(tag: number, type: string, v: Value): Geometry | undefined {
    if (!isList(v)) return undefined
    if (tag === tags.collection)
      return v.every((member) => member instanceof Geometry) ? new Geometry({ type, geometries: v }) : undefined
    const inner = partOfGeometry[tag]
    const isWhole = tag === tags.point ? v.length === 2 && v.every(isNumber) : tag !== tags.polygon || v.length > 0
    if (!isWhole && !this.trusts) return undefined
    const part = inner === undefined ? undefined : typeOfGeometry.get(inner)
    const coordinates: Array<Value> = []
    for (const each of v) {
      if (part === undefined) coordinates.push(isNumber(each) ? float(toFloat(each)) : each)
      else if (each instanceof Geometry && field(each.value, "type") === part)
        coordinates.push(field(each.value, "coordinates"))
      else return undefined
    }
    return new Geometry({ type, coordinates })
  }
}

const textOf = (bytes: Uint8Array): string => {
  if (bytes.length <= 24) {
    // Most texts are keys and short words; for them a text decoder costs more than this loop.
    let text = ""
    for (const byte of bytes) {
      if (byte > 127) break
      text += String.fromCharCode(byte)
    }
    if (text.length === bytes.length) return text
  }
  try {
    return utf8.decode(bytes)
  } catch {
    return invalid()
  }
}

const isList = (v: Value): v is ReadonlyArray<Value> => Array.isArray(v)

const wrapped = (n: bigint): number | bigint => int(BigInt.asIntN(64, n))

/** Tags 2 and 3 are integers of any size; the database keeps 64 bits of those up to 8 bytes. */
const bigInteger = (tag: number, v: Value): Value => {
  if (!(v instanceof Bytes)) return invalid()
  const n = v.value.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  return n >= 1n << 64n ? invalid() : wrapped(tag === 2 ? n : -1n - n)
}

const isSafe = (v: Value): v is number => typeof v === "number" && Number.isSafeInteger(v)

const isNanos = (v: Value): v is number => isSafe(v) && v >= 0 && v < 1e9

const datetimeOf = (v: Value): Datetime | undefined => {
  const [seconds, nanos, ...more] = isList(v) ? v : []
  return isSafe(seconds) && isNanos(nanos) && more.length === 0 ? new Datetime(seconds, nanos) : undefined
}

/** Seconds are unsigned 64-bit, and were read as signed. */
const durationOf = (v: Value): Duration | undefined => {
  if (!isList(v) || v.length > 2) return undefined
  const seconds = v.length > 0 ? v[0] : 0,
    nanos = v.length > 1 ? v[1] : 0
  if (!isInt(seconds) || !isNanos(nanos)) return undefined
  return new Duration(
    seconds < 0 || typeof seconds === "bigint" ? int(BigInt.asUintN(64, BigInt(seconds))) : seconds,
    nanos
  )
}

const isKey = (v: Value): v is RecordKey =>
  typeof v === "string" || isInt(v) || v instanceof Uuid || isList(v) || isObj(v)

const isKeyBound = (bound: Bound | undefined): boolean => bound === undefined || isKey(bound.value)

const recordOf = (v: Value): Value => {
  if (typeof v === "string") return RecordIds.parse(v)
  if (!isList(v) || v.length !== 2 || typeof v[0] !== "string") return undefined
  const [table, key] = v as readonly [string, Value]
  if (key instanceof Range) return isKeyBound(key.from) && isKeyBound(key.to) ? new RecordRange(table, key) : undefined
  return isKey(key) ? RecordIds.make(table, key) : undefined
}

const meaningOfText = (tag: number, text: string): Value => {
  switch (tag) {
    case tags.decimal:
      return parseDecimal(text)
    case tags.table:
      return new Table(text)
    case tags.textDatetime:
      return Datetimes.parse(text)
    case tags.textDuration:
      return Durations.parse(text)
    default:
      return undefined
  }
}
