/**
 * JSON in and out: typing values once when they enter (D1), rendering them as the database does when they leave (D2).
 *
 * Why so: plain records are most of the traffic, so both directions return the given object itself if nothing in it
 * needs typing or rendering, and a string meets a regular expression only if its form fits.
 */
import * as JsonText from "../../jsonText.ts"
import * as Datetimes from "./datetime.ts"
import * as Durations from "./duration.ts"
import { geometryOf } from "./makeObject.ts"
import { makeSet } from "./makeSet.ts"
import { parseDecimal } from "./number.ts"
import { sortedKeys } from "./order.ts"
import * as RecordIds from "./recordId.ts"
import * as Text from "./text.ts"
import { splitUnion } from "./typeText.ts"
import type { Obj, Value } from "./value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Float,
  field,
  float,
  Geometry,
  int,
  RecordId,
  SetValue,
  Special,
  setField,
  Table,
  Uuid
} from "./value.ts"

const untyped = (json: string): Value => (Datetimes.looksLikeDatetime(json) ? (Datetimes.parse(json) ?? json) : json)

/** JSON as a value (D1 rule 3): complete RFC 3339 date-times become datetimes, everything else keeps its type. */
export const fromJson = (json: unknown): Value => {
  if (typeof json === "string") return untyped(json)
  if (typeof json !== "object" || json === null) return json as Value
  return Array.isArray(json) ? mapItems(json, fromJson) : mapObject(json as Obj, fromJson)
}

const mapItems = (items: ReadonlyArray<unknown>, f: (item: unknown, i: number) => Value): ReadonlyArray<Value> => {
  let out: Array<Value> | undefined
  for (let i = 0; i < items.length; i++) {
    const item = items[i],
      typed = f(item, i)
    if (typed !== item && out === undefined) out = items.slice(0, i) as Array<Value>
    if (out !== undefined) out.push(typed)
  }
  return out ?? (items as ReadonlyArray<Value>)
}

const mapObject = (object: Obj, f: (value: unknown, key: string) => Value): Obj => {
  let out: Record<string, Value> | undefined
  for (const key of Object.keys(object)) {
    const value = object[key],
      typed = f(value, key)
    if (typed === value) continue
    if (out === undefined) {
      out = {}
      for (const k of Object.keys(object)) setField(out, k, object[k])
    }
    setField(out, key, typed)
  }
  return out ?? object
}

/**
 * Declared types below one path: the type here, and the types of children by name (`*` or position for array elements).
 */
interface TypeTree {
  type: string | undefined
  readonly children: Map<string, TypeTree>
}

/** The names of a path; a name in back-ticks may contain anything. */
const stepsOf = (path: string): ReadonlyArray<string> =>
  path.includes("`")
    ? Array.from(
        path.matchAll(/`((?:[^`\\]|\\[^])*)`|[^.]+/g),
        ([plain, quoted]) => quoted?.replace(/\\([^])/g, "$1") ?? plain
      )
    : path.replaceAll("[*]", ".*").split(".")

const elementOf = (tree: TypeTree, i: number): TypeTree | undefined =>
  tree.children.get(String(i)) ?? tree.children.get("*")

const treeOf = (types: { readonly [path: string]: string }): TypeTree => {
  const root: TypeTree = { type: undefined, children: new Map() }
  for (const path of Object.keys(types)) {
    let node = root
    for (const name of stepsOf(path)) {
      let next = node.children.get(name)
      if (next === undefined) node.children.set(name, (next = { type: undefined, children: new Map() }))
      node = next
    }
    node.type = types[path]
  }
  return root
}

const trees = new WeakMap<object, TypeTree>()

/**
 * JSON as a value with declared types by path (D1 rules 2 and 4): `{ "a.b": "datetime", "tags.*": "uuid" }`, types as
 * the database writes them. A string that does not parse as its type stays a string; paths not named follow `rest`:
 * plain JSON, or (the default) rule 3.
 */
export const fromJsonTyped = (
  json: unknown,
  types: { readonly [path: string]: string },
  rest: "plain" | "untyped" = "untyped"
): Value => {
  let tree = trees.get(types)
  if (tree === undefined) trees.set(types, (tree = treeOf(types)))
  return typed(json, tree, rest)
}

/** The only types that change objects. */
const isGeometric = /\b(?:geometry|point)\b/

const typed = (json: unknown, tree: TypeTree | undefined, rest: "plain" | "untyped"): Value => {
  if (tree === undefined) return rest === "plain" ? (json as Value) : fromJson(json)
  if (
    tree.type !== undefined &&
    (typeof json !== "object" || json === null || Array.isArray(json) || isGeometric.test(tree.type))
  )
    return typedAs(json, tree.type, tree, rest)
  if (typeof json !== "object" || json === null) return typed(json, undefined, rest)
  if (Array.isArray(json)) return mapItems(json, (item, i) => typed(item, elementOf(tree, i), rest))
  return mapObject(json as Obj, (value, key) => typed(value, tree.children.get(key), rest))
}

/** Numbers that JSON cannot express come with their type (`int 9223372036854775807`, `float -0`). */
const exactNumber = (type: string): Value => {
  const [, name, text] = /^(int|float) (-?\w+)$/.exec(type) ?? []
  if (name === "int" && /^-?\d+$/.test(text!)) return int(BigInt(text!))
  return name === "float" ? Number(text) : undefined
}

const typedAs = (json: unknown, type: string, tree: TypeTree, rest: "plain" | "untyped"): Value => {
  if (typeof json === "number" || typeof json === "bigint" || json === null) {
    const exact = exactNumber(type)
    if (exact !== undefined) return exact
    if (json === null) return type === "none" ? undefined : null
  }
  const options = splitUnion(type)
  if (options.length > 1) {
    for (const option of options) {
      const value = typedAs(json, option, tree, rest)
      if (value !== json) return value
    }
    return json as Value
  }
  const [, name, inner] = /^(\w+)(?:<(.*)>)?$/.exec(type) ?? [undefined, type, undefined]
  if (name === "option" && inner !== undefined) return typedAs(json, inner, tree, rest)
  if (Array.isArray(json) && name === "bytes") return new Bytes(Uint8Array.from(json as Array<number>))
  if (Array.isArray(json)) {
    const element = inner === undefined ? undefined : /^(.*?)(?:,\s*\d+)?$/.exec(inner)![1]!
    const items = mapItems(json, (item, i) => {
      const children = elementOf(tree, i)
      return children !== undefined || element === undefined
        ? typed(item, children, rest)
        : typedAs(item, element, tree, rest)
    })
    return name === "set" ? makeSet(items) : items
  }
  if (typeof json === "object" && json !== null && (name === "geometry" || name === "point"))
    return geometryOf(json as Obj) ?? (json as Value)
  if (typeof json === "object" && json !== null) return typed(json, { type: undefined, children: tree.children }, rest)
  return scalar(json, name!)
}

const asDecimal = (json: number | bigint, digits: string, type: string): Value =>
  type === "decimal" ? (parseDecimal(digits) ?? json) : json

const scalar = (json: unknown, name: string): Value => {
  if (typeof json === "bigint") return name === "float" ? Number(json) : asDecimal(json, String(json), name)
  if (typeof json === "number") return name === "float" ? float(json) : asDecimal(json, Text.positionalText(json), name)
  if (typeof json !== "string") return json as Value
  switch (name) {
    case "datetime":
      return Datetimes.parse(json) ?? json
    case "duration":
      return Durations.parse(json) ?? json
    case "uuid":
      return uuidPattern.test(json) ? new Uuid(json.toLowerCase()) : json
    case "decimal":
      return parseDecimal(json) ?? json
    case "record":
      return RecordIds.parse(json) ?? json
    default:
      return json
  }
}

export const uuidPattern = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/

/**
 * A value as JSON (D2), ready for `JsonText.write`. NONE fields are left out, NONE elements and a NONE value are null,
 * keys are sorted by code point, decimals are text, NaN and infinities null. An int beyond 2^53 stays a bigint.
 */
export const toJson = (v: Value): unknown => {
  switch (typeof v) {
    case "undefined":
      return null
    case "number":
      return Number.isFinite(v) ? v : null
    case "object":
      if (v === null) return null
      if (Array.isArray(v)) return v.map(toJson)
      return v instanceof Special ? specialJson(v) : objectJson(v as Obj)
    default:
      return v
  }
}

const objectJson = (object: Obj): unknown => {
  const out: Record<string, Value> = {}
  for (const key of sortedKeys(object)) {
    const value = field(object, key)
    if (value !== undefined) setField(out, key, toJson(value) as Value)
  }
  return out
}

const specialJson = (v: Special): unknown => {
  if (v instanceof RecordId) return v.text
  if (v instanceof Datetime) return Datetimes.render(v)
  if (v instanceof Uuid) return v.text
  if (v instanceof Float) return v.value
  if (v instanceof Decimal) return v.value.toFixed()
  if (v instanceof SetValue) return v.items.map(toJson)
  if (v instanceof Bytes) return Array.from(v.value)
  if (v instanceof Geometry) return objectJson(v.value)
  if (v instanceof Table) return v.name
  return Text.toText(v)
}

/** A value as JSON text: as {@link toJson}, but with integer-like keys in their sorted place, every int exact,
 * and whole floats told apart (`2.0`). */
export const stringify = (v: Value): string => {
  if (Array.isArray(v)) return "[" + v.map(stringify).join(",") + "]"
  if (typeof v !== "object" || v === null || v instanceof Special) {
    return v instanceof SetValue
      ? stringify(v.items)
      : v instanceof Float
        ? `${v.value}.0`
        : v instanceof Geometry
          ? stringify(v.value)
          : JsonText.write(toJson(v))
  }
  let out = ""
  for (const key of sortedKeys(v as Obj)) {
    const value = field(v as Obj, key)
    if (value !== undefined) out += (out === "" ? "" : ",") + JSON.stringify(key) + ":" + stringify(value)
  }
  return "{" + out + "}"
}
