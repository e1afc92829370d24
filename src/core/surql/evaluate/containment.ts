/**
 * The containment family: CONTAINS, IN, CONTAINSALL and their kin, `?=` and `*=`, geometry by simple planar tests.
 *
 * Why so: all of them reduce to "does this container hold this value" over arrays, sets, strings, objects, ranges and
 * geometries; the negated operators are plain negations, as in the database.
 */
import { contains as geometryContains, intersects as geometryIntersects } from "../values/geometry.ts"
import { compare, equal, equalWithoutPatterns } from "../values/order.ts"
import type { Value } from "../values/value.ts"
import { Geometry, isObj, Range, SetValue, Uuid } from "../values/value.ts"

const some = (items: ReadonlyArray<Value>, test: (v: Value) => boolean): boolean => {
  for (let i = 0; i < items.length; i++) if (test(items[i])) return true
  return false
}

/** True when a value lies within a range, by the total order. */
const inRange = (range: Range, v: Value): boolean => {
  if (range.from !== undefined) {
    const c = compare(v, range.from.value)
    if (c < 0 || (c === 0 && !range.from.inclusive)) return false
  }
  if (range.to === undefined) return true
  const c = compare(v, range.to.value)
  return c < 0 || (c === 0 && range.to.inclusive)
}

/** `container CONTAINS v` */
export const contains = (container: Value, v: Value): boolean => {
  if (Array.isArray(container)) return some(container, (item) => equal(item, v))
  if (container instanceof SetValue) return some(container.items, (item) => equalWithoutPatterns(item, v))
  if (typeof container === "string") return typeof v === "string" && container.includes(v)
  if (container instanceof Range) return inRange(container, v)
  if (container instanceof Uuid) return typeof v === "string" && container.text.includes(v)
  if (container instanceof Geometry) return v instanceof Geometry && geometryContains(container, v)
  return isObj(container) && typeof v === "string" && Object.hasOwn(container, v)
}

const itemsOf = (v: Value): ReadonlyArray<Value> | undefined =>
  Array.isArray(v) ? v : v instanceof SetValue ? v.items : undefined

/** `container CONTAINSALL values` */
export const containsAll = (container: Value, values: Value): boolean => {
  if (typeof container === "string" && typeof values === "string") return container.includes(values)
  const items = itemsOf(values)
  return items !== undefined && !some(items, (v) => !(isContainer(container) && contains(container, v)))
}

/** `container CONTAINSANY values` */
export const containsAny = (container: Value, values: Value): boolean => {
  if (typeof container === "string" && typeof values === "string") return container.includes(values)
  const items = itemsOf(values)
  return (
    items !== undefined &&
    isContainer(container) &&
    !mismatched(container, items) &&
    some(items, (v) => contains(container, v))
  )
}

/** A string can only search lists of strings. */
const mismatched = (container: Value, items: ReadonlyArray<Value>): boolean =>
  typeof container === "string" && some(items, (v) => typeof v !== "string")

const isContainer = (v: Value): boolean =>
  Array.isArray(v) || v instanceof SetValue || typeof v === "string" || v instanceof Geometry

/** `a ?= b`: any element equal, or plainly equal. */
export const anyEqual = (a: Value, b: Value): boolean => {
  const items = itemsOf(a)
  return items === undefined ? equal(a, b) : some(items, (v) => equal(v, b))
}

/** `a *= b`: all elements equal, or plainly equal. */
export const allEqual = (a: Value, b: Value): boolean => {
  const items = itemsOf(a)
  return items === undefined ? equal(a, b) : !some(items, (v) => !equal(v, b))
}

/** `a INTERSECTS b`: geometries only. */
export const intersects = (a: Value, b: Value): boolean =>
  a instanceof Geometry && b instanceof Geometry && geometryIntersects(a, b)
