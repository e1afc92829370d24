/**
 * Reading, setting, removing and replacing at a path inside a result row.
 *
 * Why so: projections build rows path by path (`a.b` nests), SPLIT and OMIT edit finished rows. Rows are shared, so
 * editing copies what it changes.
 */
import type { Destructured, Part } from "../../syntax/ast.ts"
import type { Obj, Value } from "../../values/value.ts"
import { field, isObj, setField } from "../../values/value.ts"

/** Sets a path in a row under construction; objects on the way are copied once, anything else is replaced. */
export const setPath = (row: Record<string, Value>, names: ReadonlyArray<string>, value: Value): void => {
  const [name, ...rest] = names
  if (name === undefined) return
  if (rest.length === 0) setField(row, name, value)
  else setField(row, name, withPath(field(row, name), rest, value))
}

const withPath = (v: Value, names: ReadonlyArray<string>, value: Value): Value => {
  if (names.length === 0) return value
  if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map((item) => withPath(item, names, value))
  const copy: Record<string, Value> = isObj(v) ? copyOf(v) : {}
  setPath(copy, names, value)
  return copy
}

/** A shallow copy that is safe for any key. */
export const copyOf = (o: Obj): Record<string, Value> => {
  const out: Record<string, Value> = {}
  for (const key of Object.keys(o)) setField(out, key, o[key])
  return out
}

/** The position in a list of a constant index or `[$]`; undefined for other parts. */
export const positionOf = (part: Part, items: ReadonlyArray<Value>): number | undefined =>
  part.kind === "index" && part.index.kind === "literal"
    ? Number(part.index.value)
    : part.kind === "last"
      ? items.length - 1
      : undefined

/** Applies `change` to the value at a path (mapped over arrays); missing parents stay missing. */
export const replaceAt = (v: Value, parts: ReadonlyArray<Part>, change: (v: Value) => Value): Value => {
  const [part, ...rest] = parts
  if (part === undefined) return change(v)
  if (Array.isArray(v)) {
    const items = v as ReadonlyArray<Value>
    const at = positionOf(part, items)
    if (at !== undefined) return items.map((item, n) => (n === at ? replaceAt(item, rest, change) : item))
    if (part.kind === "all" || part.kind === "flatten") return items.map((item) => replaceAt(item, rest, change))
    return items.map((item) => replaceAt(item, parts, change))
  }
  if (part.kind === "all")
    return isObj(v) && rest.length > 0 ? mapFields(v, (item) => replaceAt(item, rest, change)) : change(v)
  if (part.kind !== "field" || !isObj(v) || !Object.hasOwn(v, part.name)) return v
  const copy = copyOf(v)
  setField(copy, part.name, replaceAt(v[part.name], rest, change))
  return copy
}

/** An object with each of its values changed. */
export const mapFields = (o: Obj, f: (v: Value) => Value): Obj => {
  const out: Record<string, Value> = {}
  for (const key of Object.keys(o)) setField(out, key, f(o[key]))
  return out
}

/** The row without the value at a path (OMIT). */
export const removeAt = (v: Value, parts: ReadonlyArray<Part>): Value => {
  const [part, ...rest] = parts
  if (part === undefined) return v
  if (Array.isArray(v)) return removeFromArray(v as ReadonlyArray<Value>, part, rest, parts)
  if (!isObj(v)) return v
  if (part.kind === "destructure") return part.entries.reduce<Value>((row, d) => removeAt(row, entryParts(d)), v)
  if (part.kind === "all") return rest.length === 0 ? {} : mapFields(v, (item) => removeAt(item, rest))
  if (part.kind !== "field" || !Object.hasOwn(v, part.name)) return v
  const out: Record<string, Value> = {}
  for (const key of Object.keys(v))
    if (key !== part.name) setField(out, key, v[key])
    else if (rest.length > 0) setField(out, key, removeAt(v[key], rest))
  return out
}

const entryParts = (d: Destructured): ReadonlyArray<Part> =>
  d.expr.kind === "idiom" ? d.expr.parts : [{ kind: "field", name: d.name }]

const removeFromArray = (
  items: ReadonlyArray<Value>,
  part: Part,
  rest: ReadonlyArray<Part>,
  parts: ReadonlyArray<Part>
): Value => {
  const at = positionOf(part, items)
  if (at !== undefined)
    return rest.length === 0
      ? items.filter((_, n) => n !== at)
      : items.map((item, n) => (n === at ? removeAt(item, rest) : item))
  if (part.kind === "all") return rest.length === 0 ? [] : items.map((item) => removeAt(item, rest))
  return items.map((item) => removeAt(item, parts))
}
