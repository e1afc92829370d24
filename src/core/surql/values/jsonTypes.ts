/**
 * Types that JSON cannot express: the types of a record's values by path, as a change carries them (D1 rule 4), and the
 * record decoded from both.
 *
 * Why so: a record read from the database with all its types must become the same event that the database's own feed
 * would have sent, and a compare must not count as a difference what that way loses (a range becomes text).
 */
import { fromJsonTyped, toJson } from "./json.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  type Obj,
  RecordId,
  SetValue,
  Special,
  Uuid,
  type Value
} from "./value.ts"

const typeOf = (v: Special): string | undefined => {
  if (v instanceof RecordId) return "record"
  if (v instanceof Datetime) return "datetime"
  if (v instanceof Duration) return "duration"
  if (v instanceof Decimal) return "decimal"
  if (v instanceof Uuid) return "uuid"
  if (v instanceof Float) return "float"
  if (v instanceof Bytes) return "bytes"
  return v instanceof Geometry ? "geometry" : undefined
}

/** A type and its path, `.a.b`, empty for the value itself. */
type Typed = readonly [path: string, type: string]

const none: ReadonlyArray<Typed> = []

const step = (name: string): string =>
  /^[A-Za-z0-9_]+$/.test(name) ? `.${name}` : `.\`${name.replace(/[\\`]/g, "\\$&")}\``

const below = (path: string, found: ReadonlyArray<Typed>): ReadonlyArray<Typed> =>
  found.map(([rest, type]) => [path + rest, type])

const itemTypes = (items: ReadonlyArray<Value>): ReadonlyArray<Typed> => {
  const each = items.map((item) => (item === undefined ? ([["", "none"]] as const) : collect(item)))
  if (each.every((found) => found.length === 0)) return none
  const first = JSON.stringify(each[0])
  return each.every((found) => JSON.stringify(found) === first)
    ? below(".*", each[0]!)
    : each.flatMap((found, i) => below(`.${i}`, found))
}

/** JSON has no NaN and no -0, and writes a whole float beyond 2^53 like an int. */
const numberType = (v: number): ReadonlyArray<Typed> => {
  if (!Number.isFinite(v) || Object.is(v, -0)) return [["", Object.is(v, -0) ? "float -0" : `float ${v}`]]
  return Number.isInteger(v) && !Number.isSafeInteger(v) ? [["", "float"]] : none
}

const collect = (v: Value): ReadonlyArray<Typed> => {
  if (typeof v === "bigint") return [["", `int ${v}`]]
  if (typeof v === "number") return numberType(v)
  if (typeof v !== "object" || v === null) return none
  if (Array.isArray(v)) return itemTypes(v)
  if (v instanceof SetValue) return [["", "set"], ...itemTypes(v.items)]
  if (v instanceof Special) {
    const type = typeOf(v)
    return type === undefined ? none : [["", type]]
  }
  return Object.entries(v as Obj).flatMap(([name, value]) => below(step(name), collect(value)))
}

/**
 * Types by path of values that JSON has no type for: elements of an array of one type are named once, others by
 * position; numbers beyond JSON come with their digits.
 */
const typesOf = (doc: Obj): { readonly [path: string]: string } =>
  Object.fromEntries(collect(doc).map(([path, type]) => [path.slice(1), type]))

/** A record without its id as JSON, with its types. */
export const jsonWithTypes = ({
  id: _,
  ...content
}: Obj): {
  readonly json: { readonly [key: string]: unknown }
  readonly types: { readonly [path: string]: string }
} => ({ json: toJson(content) as { readonly [key: string]: unknown }, types: typesOf(content) })

/** The record as a receiver of JSON with types decodes it. */
export const asSent = (doc: Obj): Obj => {
  const { json, types } = jsonWithTypes(doc)
  return { ...(fromJsonTyped(json, types, "plain") as Obj), id: doc["id"] }
}
