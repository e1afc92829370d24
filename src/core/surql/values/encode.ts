/**
 * Values as compact reversible text, for storing them and for hashing them.
 *
 * Why so: plain JSON where JSON has the type, so that stored records stay readable and decode at the speed of
 * `JSON.parse`. A typed value is `{"$":[tag, ...]}`; a user's object that has a key `$` is wrapped in a tag itself, so
 * neither can be mistaken for the other. Keys are sorted, so equal content gives equal text.
 */
import * as Datetimes from "./datetime.ts"
import { WideDecimal } from "./number.ts"
import * as RecordIds from "./recordId.ts"
import type { Bound, Obj, RecordKey, Value } from "./value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  Range,
  RecordId,
  RecordRange,
  Regex,
  SetValue,
  Special,
  setField,
  Table,
  Uuid
} from "./value.ts"

const tag = (...parts: ReadonlyArray<string>): string => `{"$":[${parts.join(",")}]}`

/** Encodes a value; {@link decode} gives it back. Closures cannot be stored and become NONE. */
export const encode = (v: Value): string => {
  switch (typeof v) {
    case "string":
      return JSON.stringify(v)
    case "boolean":
      return v ? "true" : "false"
    case "undefined":
      return '{"$":["none"]}'
    case "bigint":
      return tag('"i"', `"${v}"`)
    case "number":
      return Number.isFinite(v) && !Object.is(v, -0) ? String(v) : tag('"f"', `"${Object.is(v, -0) ? "-0" : v}"`)
    default:
      if (v === null) return "null"
      if (Array.isArray(v)) return "[" + v.map(encode).join(",") + "]"
      return v instanceof Special ? encodeSpecial(v) : encodeObject(v as Obj)
  }
}

const encodeObject = (object: Obj): string => {
  const keys = Object.keys(object)
  if (keys.length > 1) keys.sort()
  let out = ""
  let tagged = false
  for (const key of keys) {
    if (key === "$") tagged = true
    out += (out === "" ? "" : ",") + JSON.stringify(key) + ":" + encode(object[key])
  }
  return tagged ? tag('"o"', `{${out}}`) : `{${out}}`
}

const bound = (b: Bound | undefined): string => (b === undefined ? "null" : `[${b.inclusive},${encode(b.value)}]`)

const encodeSpecial = (v: Special): string => {
  if (v instanceof RecordId) return encodeRecord(v)
  if (v instanceof Datetime) return tag('"d"', `"${Datetimes.render(v)}"`)
  if (v instanceof Float) return tag('"f"', `"${v.value}"`)
  if (v instanceof Decimal) return tag('"n"', `"${v.value.toFixed()}"`)
  if (v instanceof Duration)
    return tag('"u"', typeof v.seconds === "bigint" ? `"${v.seconds}"` : String(v.seconds), String(v.nanos))
  if (v instanceof Uuid) return tag('"id"', `"${v.text}"`)
  if (v instanceof SetValue) return tag('"s"', ...v.items.map(encode))
  if (v instanceof Bytes) return tag('"b"', ...Array.from(v.value, String))
  if (v instanceof Regex) return tag('"x"', JSON.stringify(v.source))
  if (v instanceof Geometry) return tag('"g"', encodeObject(v.value))
  if (v instanceof Table) return tag('"t"', JSON.stringify(v.name))
  if (v instanceof RecordRange) return tag('"rr"', JSON.stringify(v.table), bound(v.range.from), bound(v.range.to))
  if (v instanceof Range) return tag('"ra"', bound(v.from), bound(v.to))
  return '{"$":["none"]}'
}

const encodeRecord = (v: RecordId): string => tag('"r"', JSON.stringify(v.table), encode(v.key))

/** The value of a text made by {@link encode}. */
export const decode = (text: string): Value => {
  const json: unknown = JSON.parse(text)
  return text.includes('{"$":[') ? revive(json) : (json as Value)
}

const revive = (json: unknown): Value => {
  if (typeof json !== "object" || json === null) return json as Value
  if (Array.isArray(json)) return json.map(revive)
  const object = json as { readonly [key: string]: unknown }
  const tagged = Object.hasOwn(object, "$") ? object["$"] : undefined
  return Array.isArray(tagged) ? reviveTag(tagged) : reviveObject(object)
}

const reviveObject = (object: { readonly [key: string]: unknown }): Obj => {
  const out: Record<string, Value> = {}
  for (const key of Object.keys(object)) setField(out, key, revive(object[key]))
  return out
}

const reviveBound = (json: unknown): Bound | undefined =>
  Array.isArray(json) ? { inclusive: json[0] === true, value: revive(json[1]) } : undefined

const reviveFloat = (text: string): Value => {
  const n = Number(text)
  return Number.isSafeInteger(n) && !Object.is(n, -0) ? new Float(n) : n
}

const reviveTag = (t: ReadonlyArray<unknown>): Value => {
  const [name, a, b] = t as ReadonlyArray<never>
  switch (name as string) {
    case "i":
      return BigInt(a)
    case "f":
      return reviveFloat(a)
    case "o":
      return reviveObject(a)
    case "d":
      return Datetimes.parse(a)
    case "n":
      return new Decimal(new WideDecimal(a))
    case "u":
      return new Duration(typeof a === "string" ? BigInt(a) : a, b)
    case "id":
      return new Uuid(a)
    case "s":
      return new SetValue(t.slice(1).map(revive))
    case "b":
      return new Bytes(Uint8Array.from(t.slice(1) as Array<number>))
    case "x":
      return new Regex(a)
    case "g":
      return new Geometry(reviveObject(a))
    case "t":
      return new Table(a)
    case "r":
      return RecordIds.make(a, revive(b) as RecordKey)
    case "rr":
      return new RecordRange(a, new Range(reviveBound(b), reviveBound(t[3])))
    case "ra":
      return new Range(reviveBound(a), reviveBound(b))
    default:
      return undefined
  }
}
