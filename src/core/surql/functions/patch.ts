/**
 * The difference between two values as a list of operations, and applying such a list: `value::diff`, `value::patch`.
 *
 * Why so: operations look like JSON Patch (RFC 6902) and are not quite: paths also split at dots and know no escapes, a
 * path through an array goes through each of its elements, and removing needs a key. All of it is the database's, so
 * that what it diffs can be patched here. Two differing texts give a text patch there; those are refused here (see the
 * differences in `docs/language.md`).
 */
import { raise } from "../evaluate/failure.ts"
import { copyOf } from "../evaluate/select/shape.ts"
import { checkSize } from "../evaluate/weigh.ts"
import { compare, equal, sortedKeys } from "../values/order.ts"
import { rawText, render } from "../values/text.ts"
import type { Obj, Value } from "../values/value.ts"
import { field, isObj, setField } from "../values/value.ts"

type Items = ReadonlyArray<Value>

/** One operation of a list; `value` and `from` only if the operation has them. */
interface Operation {
  readonly op: string
  readonly path: ReadonlyArray<string>
  readonly from: ReadonlyArray<string>
  readonly value: Value
}

const has = (o: Obj, key: string): boolean => Object.hasOwn(o, key)

/** Operations that lead from `a` to `b`, in the database's order. Cost: the size of both. */
export const diff = (a: Value, b: Value, path = ""): Array<Value> => {
  if (compare(a, b) === 0) return []
  if (isObj(a) && isObj(b)) {
    const removed = sortedKeys(a)
      .filter((key) => !has(b, key))
      .map((key): Value => ({ op: "remove", path: `${path}/${key}` }))
    return [
      ...removed,
      ...sortedKeys(b).flatMap((key) =>
        has(a, key) ? diff(field(a, key), field(b, key), `${path}/${key}`) : [added(`${path}/${key}`, field(b, key))]
      )
    ]
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    const old = a as Items,
      now = b as Items,
      shared = Math.min(old.length, now.length)
    return [
      ...old.slice(0, shared).flatMap((v, i) => diff(v, now[i], `${path}/${i}`)),
      ...now.slice(shared).map((v, i) => added(`${path}/${shared + i}`, v)),
      ...old.slice(shared).map((_, i): Value => ({ op: "remove", path: `${path}/${shared + i}` }))
    ]
  }
  if (typeof a === "string" && typeof b === "string")
    return raise`value::diff() of two texts is not supported here: text patches are the database's own`
  return [{ op: "replace", path, value: b }]
}

const added = (path: string, value: Value): Value => ({ op: "add", path, value })

const malformed = (why: string): never =>
  raise`The JSON Patch contains invalid operations. Failed to parse JSON patch structure: ${why}`

const segments = (v: Value): ReadonlyArray<string> => rawText(v).replace(/^\/+/, "").split(/[./]/)

const operation = (v: Value): Operation => {
  if (!isObj(v)) return malformed("Patch operations should be an array of objects")
  const op = field(v, "op")
  if (!has(v, "op")) malformed("Key 'op' missing")
  if (typeof op !== "string") return malformed("Key 'op' not a string")
  if (!has(v, "path")) malformed("Key 'path' missing")
  const needs = ["add", "replace", "change", "test"].includes(op)
    ? "value"
    : op === "copy" || op === "move"
      ? "from"
      : op === "remove"
        ? "path"
        : malformed(`Invalid operation '${op}'`)
  // The database names this key whichever is missing.
  if (!has(v, needs)) malformed("Key 'from' missing")
  return {
    op,
    path: segments(field(v, "path")),
    from: has(v, "from") ? segments(field(v, "from")) : [],
    value: field(v, "value")
  }
}

/** The value at a path; for an array, a list of its elements' values there. */
const pick = (v: Value, [key, ...rest]: ReadonlyArray<string>): Value =>
  key === undefined
    ? v
    : isObj(v)
      ? pick(field(v, key), rest)
      : Array.isArray(v)
        ? (v as Items).map((item) => pick(item, [key, ...rest]))
        : undefined

/**
 * A copy with a value set at a path; missing objects are made; a value that is neither object, array nor empty is kept.
 */
const put = (v: Value, path: ReadonlyArray<string>, value: Value): Value => {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(v)) return (v as Items).map((item) => put(item, path, value))
  if (v !== undefined && v !== null && !isObj(v)) return v
  const copy = v === undefined || v === null ? {} : copyOf(v)
  setField(copy, key, put(field(copy, key), rest, value))
  return copy
}

/** A copy without the key at a path. */
const cut = (v: Value, path: ReadonlyArray<string>): Value => {
  if (Array.isArray(v)) return (v as Items).map((item) => cut(item, path))
  const [key, ...rest] = path
  if (!isObj(v) || !has(v, key!)) return v
  const copy = copyOf(v)
  if (rest.length === 0) delete copy[key!]
  else setField(copy, key!, cut(field(copy, key!), rest))
  return copy
}

/** Adds to an array: before a position, at the end, or (path of the array itself) as `+=` does. */
const add = (v: Value, path: ReadonlyArray<string>, value: Value): Value => {
  const last = path[path.length - 1]!,
    parent = path.slice(0, -1)
  if (last === "-" || /^\+?\d+$/.test(last)) {
    const list = pick(v, parent)
    if (!Array.isArray(list)) return put(v, parent, value)
    const items = list as Items,
      at = last === "-" ? items.length : Math.min(Number(last), items.length)
    return put(v, parent, [...items.slice(0, at), value, ...items.slice(at)])
  }
  const list = pick(v, path)
  if (!Array.isArray(list)) return put(v, path, value)
  return put(v, path, [...(list as Items), ...(Array.isArray(value) ? (value as Items) : [value])])
}

const test = (v: Value, o: Operation): Value => {
  const found = pick(v, o.path)
  return equal(o.value, found)
    ? v
    : raise`Given test operation failed for JSON Patch. Expected \`${render(o.value)}\`, but got \`${render(found)}\` instead.`
}

const apply = (v: Value, o: Operation): Value => {
  switch (o.op) {
    case "add":
      return add(v, o.path, o.value)
    case "remove":
      return cut(v, o.path)
    case "replace":
      return put(v, o.path, o.value)
    case "copy":
      return put(v, o.path, pick(v, o.from))
    case "move":
      return cut(put(v, o.path, pick(v, o.from)), o.from)
    case "test":
      return test(v, o)
    default:
      return changed(v, o)
  }
}

/** A text patch changes only texts; for any other value the database does nothing. */
const changed = (v: Value, o: Operation): Value => {
  if (typeof o.value !== "string" || typeof pick(v, o.path) !== "string" || o.value === "") return v
  return o.value.startsWith("@@ ")
    ? raise`value::patch() with a text patch (\`change\`) is not supported here: text patches are the database's own`
    : malformed("InvalidInput")
}

/** A value with a list of operations applied, all or none. Cost: operations times the size of the value. */
export const patch = (v: Value, operations: Value): Value => {
  if (!Array.isArray(operations)) return malformed("Patch operations should be an array of objects")
  return (operations as Items).map(operation).reduce<Value>((current, o) => checkSize(apply(current, o)), v)
}
