/**
 * Method calls: `value.len()` is the function of that name in the family of the value's type.
 *
 * Why so: the family depends on the value, so it is looked up when the row is evaluated.
 */

import { isNumber } from "../values/number.ts"
import type { Value } from "../values/value.ts"
import {
  Bytes,
  Closure,
  Datetime,
  Decimal,
  Duration,
  field,
  Geometry,
  isInt,
  Range,
  RecordId,
  RecordRange,
  Regex,
  SetValue,
  Special,
  Table,
  Uuid
} from "../values/value.ts"
import { ownText, raise } from "./failure.ts"
import { functions } from "./functions.ts"
import type { Scope } from "./scope.ts"

/** The database's name of a value's type, as in messages and `type::of`. */
const kindOf = (v: Value): string => {
  if (v === undefined) return "none"
  if (v === null) return "null"
  if (typeof v === "boolean") return "bool"
  if (typeof v === "string") return "string"
  if (typeof v === "number" || typeof v === "bigint") return "number"
  if (Array.isArray(v)) return "array"
  if (!(v instanceof Special)) return "object"
  if (
    v instanceof Datetime ||
    v instanceof Duration ||
    v instanceof Uuid ||
    v instanceof Bytes ||
    v instanceof SetValue ||
    v instanceof Regex ||
    v instanceof RecordId ||
    v instanceof RecordRange ||
    v instanceof Range ||
    v instanceof Geometry ||
    v instanceof Table
  )
    return v.type
  return v instanceof Closure ? "function" : "number"
}

/** As {@link kindOf}, with the kind of number and of geometry: the answer of `type::of`. */
export const exactKind = (v: Value): string => {
  if (isInt(v)) return "int"
  if (v instanceof Decimal) return "decimal"
  if (isNumber(v)) return "float"
  if (v instanceof Geometry) return geometryKinds[String(field(v.value, "type"))] ?? "geometry"
  return kindOf(v)
}

const geometryKinds: { readonly [type: string]: string } = {
  Point: "geometry<point>",
  LineString: "geometry<line>",
  Polygon: "geometry<polygon>",
  MultiPoint: "geometry<multipoint>",
  MultiLineString: "geometry<multiline>",
  MultiPolygon: "geometry<multipolygon>",
  GeometryCollection: "geometry<collection>"
}

/** Function families whose functions are methods of a type. */
const families: { readonly [kind: string]: ReadonlyArray<string> } = {
  array: ["array"],
  bytes: ["bytes"],
  duration: ["duration"],
  geometry: ["geo"],
  number: ["math"],
  object: ["object"],
  record: ["record"],
  set: ["set"],
  string: ["string"],
  datetime: ["time"],
  function: [],
  range: ["range"]
}

/** Methods with another name than their function. */
const renamed: { readonly [method: string]: string } = {
  "string::similarity_fuzzy": "string::similarity::fuzzy",
  "string::similarity_jaro": "string::similarity::jaro",
  "string::similarity_jaro_winkler": "string::similarity::jaro_winkler",
  "string::similarity_smithwaterman": "string::similarity::smithwaterman",
  "string::distance_hamming": "string::distance::hamming",
  "string::distance_levenshtein": "string::distance::levenshtein",
  "string::semver_compare": "string::semver::compare",
  "string::html_encode": "string::html::encode",
  "string::html_sanitize": "string::html::sanitize",
  "array::vector_add": "vector::add",
  "array::sort_asc": "array::sort::asc",
  "array::sort_desc": "array::sort::desc"
}

/** Functions two levels below their family, by method name. */
const nested: { readonly [method: string]: string } = Object.fromEntries(
  [
    "hash::encode",
    "hash::decode",
    "distance::damerau_levenshtein",
    "distance::normalized_damerau_levenshtein",
    "distance::normalized_levenshtein",
    "similarity::sorensen_dice",
    "semver::major",
    "semver::minor",
    "semver::patch",
    "semver::inc::major",
    "semver::inc::minor",
    "semver::inc::patch",
    "semver::set::major",
    "semver::set::minor",
    "semver::set::patch"
  ].map((path) => [path.replaceAll("::", "_"), path])
)

/** Functions of a family that are no methods. */
const callsOnly: ReadonlySet<string> = new Set([
  ...[
    "clamp",
    "fixed",
    "lerp",
    "lerpangle",
    "pow",
    "sqrt",
    "bottom",
    "interquartile",
    "mean",
    "median",
    "midhinge",
    "mode",
    "nearestrank",
    "percentile",
    "product",
    "spread",
    "stddev",
    "sum",
    "top",
    "trimean",
    "variance"
  ].map((name) => `math::${name}`),
  "array::range",
  "array::sequence",
  "object::from_entries",
  "time::from_unix",
  "time::from_ulid",
  "time::from_uuid"
])

const isMethod = (path: string): boolean =>
  functions.has(path) &&
  !callsOnly.has(path) &&
  functions.get(path)!.constant === undefined &&
  functions.get(path)!.pure &&
  !/^(?:duration|time)::from_/.test(path)

/** Methods of every value: conversions and tests of its type. */
const shared = (name: string): string | undefined => {
  if (name.startsWith("is_")) return `type::${name}`
  if (name.startsWith("to_")) return `type::${name.slice(3)}`
  if (name === "repeat") return "array::repeat"
  return name === "chain" || name === "diff" || name === "patch"
    ? `value::${name}`
    : name === "type_of"
      ? "type::of"
      : undefined
}

/** The function of a method name, searched in these families. */
const resolveMethod = (of: ReadonlyArray<string>, name: string): string | undefined => {
  for (const family of of) {
    const path = `${family}::${name}`
    const known = Object.hasOwn(renamed, path) ? renamed[path]! : path
    if (isMethod(known)) return known
    const deeper = nested[name]
    if (deeper !== undefined && functions.has(`${family}::${deeper}`)) return `${family}::${deeper}`
    if (family === "array" && name.startsWith("vector_") && functions.has(name.replace("_", "::")))
      return name.replace("_", "::")
  }
  const path = shared(name)
  return path !== undefined && functions.has(path) ? path : undefined
}

/** The planner reports a method of another type differently from an unknown one; the older evaluator does not. */
const missing = (v: Value, name: string, s: Scope): never =>
  s.older !== true && resolveMethod(Object.values(families).flat(), name) !== undefined
    ? raise`Method '${ownText(name)}' cannot be called on value of type '${ownText(exactKind(v))}'`
    : raise`There was a problem running the ${ownText(name)}() function. no such method found for the ${ownText(s.older === true ? kindOf(v) : exactKind(v))} type`

/** Calls a method of a value. */
export const callMethod = (v: Value, name: string, args: ReadonlyArray<Value>, scope: Scope): Value => {
  const path = resolveMethod(families[kindOf(v)] ?? [], name)
  const fn = path === undefined ? undefined : functions.get(path)
  if (path === undefined || fn === undefined) return missing(v, name, scope)
  if (args.length + 1 < fn.min || args.length + 1 > fn.max)
    return raise`Incorrect arguments for method ${ownText(name)}(). ${ownText(fn.arity)}`
  return fn.call([v, ...args], scope, path)
}
