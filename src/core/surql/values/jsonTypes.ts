/**
 * What JSON cannot say of a record: the types of its values by path, as a change carries them (D1 rule 4), and the
 * record as it comes out of both.
 *
 * Why so: a record that is read from the database with all its types has to become the same event that the database's
 * own feed would have sent of it, and a compare of the two must not count as a difference what was lost on that way
 * (bytes become an array, an int beyond 2^53 the nearest number).
 */
import { fromJsonTyped, toJson } from "./json.ts"
import {
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
  if (v instanceof SetValue) return "set"
  return v instanceof Geometry ? "geometry" : undefined
}

const collect = (v: Value, path: string, into: Map<string, Set<string>>): void => {
  if (typeof v !== "object" || v === null) return
  if (Array.isArray(v)) {
    for (const item of v) collect(item, `${path}.*`, into)
  } else if (v instanceof Special) {
    const type = typeOf(v)
    if (type !== undefined) into.set(path, (into.get(path) ?? new Set()).add(type))
    if (v instanceof SetValue) for (const item of v.items) collect(item, `${path}.*`, into)
  } else for (const key of Object.keys(v as Obj)) collect((v as Obj)[key], path === "" ? key : `${path}.${key}`, into)
}

/** Types by path of what JSON has no type for; elements of an array share theirs. */
export const typesOf = (doc: Obj): { readonly [path: string]: string } => {
  const found = new Map<string, Set<string>>()
  collect(doc, "", found)
  return Object.fromEntries(Array.from(found, ([path, types]) => [path, [...types].join(" | ")]))
}

/** A record without its id as JSON, and the types that go with it. */
export const split = ({
  id: _,
  ...content
}: Obj): {
  readonly json: { readonly [key: string]: unknown }
  readonly types: { readonly [path: string]: string }
} => ({ json: toJson(content) as { readonly [key: string]: unknown }, types: typesOf(content) })

/** The record as a receiver of JSON with types decodes it. */
export const asSent = (doc: Obj): Obj => {
  const { json, types } = split(doc)
  return { ...(fromJsonTyped(json, types, "plain") as Obj), id: doc["id"] }
}
