/**
 * Under which keys a row and the arguments of a view meet: they do exactly when the indexed conjuncts hold.
 *
 * A {@link KeySpec} names the paths whose values make the key, at most one path whose elements are filed one by one,
 * and at most one path whose value is ordered. A row whose path leaves the record (a link, an array on the way), or
 * whose value has no exact key (a regular expression equals what it matches), is
 * {@link unindexable}: every view of its shape has to look at it.
 */
import { compositeKey, indexKey } from "../../surql/values/key.ts"
import * as Ids from "../../surql/values/recordId.ts"
import {
  Closure,
  field,
  Geometry,
  isObj,
  type Obj,
  Range,
  RecordId,
  RecordRange,
  Regex,
  SetValue,
  Special,
  Uuid,
  type Value
} from "../../surql/values/value.ts"
import { type FiledKey, isCountedId, plainKey, sameKey } from "./denseMap.ts"

/** Key of a value that has no exact key. */
export const unindexable: unique symbol = Symbol("unindexable")
/** Key of a record that does not exist. */
export const absent: unique symbol = Symbol("absent")

export type Path = ReadonlyArray<string>

export interface KeySpec {
  /** The values at these paths are the key; no path: all rows have the same key. */
  readonly paths: ReadonlyArray<Path>
  /**
   * Last part of the key: each element of the value at `path`. `orSelf`: a value that is no list is its own only
   * element.
   */
  readonly each: { readonly path: Path; readonly orSelf: boolean } | undefined
  /** Rows of one key are ordered by the value at this path. */
  readonly range: Path | undefined
}

/** One key, or an array of several: a key itself is never an array. */
export type Keys = FiledKey

const endsInCount = /:\d+$/

/** The exact key of one value. Text of a record id is equal to the id (D1). */
const filedKey = (value: Value): FiledKey => {
  if (isCountedId(value)) return value
  if (typeof value !== "string" || !endsInCount.test(value)) return indexKey(value)
  const id = Ids.parse(value)
  return isCountedId(id) && id.text === value ? id : indexKey(value)
}

const follow = (doc: Obj, path: Path): Value | typeof unindexable => {
  let value: Value = field(doc, path[0]!)
  for (let i = 1; i < path.length; i++) {
    if (isObj(value)) value = field(value, path[i]!)
    else if (value === undefined || value === null || typeof value === "number" || typeof value === "boolean")
      value = undefined
    else return unindexable
  }
  return value
}

/**
 * Whether exactly the equal values have the same key: false for values that match (regular expressions) or are compared
 * part by part.
 */
const isExact = (value: Value): boolean => {
  if (typeof value !== "object" || value === null || value instanceof RecordId) return true
  if (Array.isArray(value)) return (value as ReadonlyArray<Value>).every(isExact)
  if (value instanceof SetValue) return value.items.every(isExact)
  if (value instanceof Special)
    return !(
      value instanceof Regex ||
      value instanceof Range ||
      value instanceof RecordRange ||
      value instanceof Geometry ||
      value instanceof Closure
    )
  return Object.keys(value).every((name) => isExact((value as Obj)[name]))
}

/** The key of some values, in this order, or {@link unindexable}. */
export const keyOfValues = (values: ReadonlyArray<Value>): unknown => {
  for (let i = 0; i < values.length; i++) if (!isExact(values[i])) return unindexable
  return values.length === 1 ? filedKey(values[0]) : values.length === 0 ? undefined : compositeKey(values)
}

/** One key for each element, `values` before it, or {@link unindexable}. */
export const keysOfElements = (values: ReadonlyArray<Value>, elements: ReadonlyArray<Value>): Keys => {
  if (elements.length === 1) return keyOfValues([...values, elements[0]])
  const keys = new Map<unknown, FiledKey>()
  for (const element of elements) {
    const key = keyOfValues(values.length === 0 ? [element] : [...values, element])
    if (key === unindexable) return unindexable
    keys.set(plainKey(key), key)
  }
  return [...keys.values()]
}

/** The elements of a container; {@link unindexable} for one that holds more than elements (text, ranges, ...). */
const elementsOf = (container: Value, orSelf: boolean): ReadonlyArray<Value> | typeof unindexable => {
  if (Array.isArray(container)) return container as ReadonlyArray<Value>
  if (container instanceof SetValue) return container.items
  if (orSelf) return [container]
  const more =
    typeof container === "string" ||
    container instanceof Range ||
    container instanceof Uuid ||
    container instanceof Geometry ||
    isObj(container)
  return more ? unindexable : noElements
}

const noElements: ReadonlyArray<Value> = []

/** The keys of a document, or {@link unindexable}. */
export const keysOf = (doc: Obj, { each, paths, range }: KeySpec): Keys => {
  if (range !== undefined && follow(doc, range) === unindexable) return unindexable
  if (each === undefined && paths.length === 1) {
    const value = follow(doc, paths[0]!)
    return value === unindexable || !isExact(value) ? unindexable : filedKey(value)
  }
  const values: Array<Value> = []
  for (const path of paths) {
    const value = follow(doc, path)
    if (value === unindexable) return unindexable
    values.push(value)
  }
  if (each === undefined) return keyOfValues(values)
  const container = follow(doc, each.path)
  const elements = container === unindexable ? unindexable : elementsOf(container, each.orSelf)
  return elements === unindexable ? unindexable : keysOfElements(values, elements)
}

/** The value that orders the rows of one key; only for documents that are not {@link unindexable}. */
export const rangeValueOf = (doc: Obj, { range }: KeySpec): Value => {
  const value = range === undefined ? undefined : follow(doc, range)
  return value === unindexable ? undefined : value
}

/** Whether two documents have equal keys; the same keys in another order count as different. */
export const sameKeys = (a: Keys, b: Keys): boolean =>
  Array.isArray(a) && Array.isArray(b)
    ? a.length === b.length && a.every((key, i) => sameKey(key, b[i]))
    : sameKey(a, b)

export const someKey = (keys: Keys, test: (key: FiledKey) => boolean): boolean =>
  Array.isArray(keys) ? keys.some(test) : test(keys)
