/**
 * Objects from entries, and the rule that an object shaped like GeoJSON is a geometry.
 *
 * Why so: the database turns a literal `{ type: 'Point', coordinates: [1, 2] }` in a query into a geometry; with a
 * computed number in it, it is an object like any other.
 */
import { isNumber, toFloat } from "./number.ts"
import type { Obj, Value } from "./value.ts"
import { Decimal, field, float, Geometry, isObj, setField } from "./value.ts"

/** Whether a value is a point, of ints and floats; with a decimal it is an ordinary list. */
const isPoint = (v: Value): boolean =>
  Array.isArray(v) && v.length === 2 && v.every((part) => isNumber(part) && !(part instanceof Decimal))
const isList =
  (test: (v: Value) => boolean, least = 0) =>
  (v: Value): boolean =>
    Array.isArray(v) && v.length >= least && v.every(test)

const isLine = isList(isPoint)
/** A polygon has an outer ring, which may be empty. */
const isPolygon = isList(isLine, 1)

type Coordinates = ReadonlyArray<Value>

/** Coordinates become floats. */
const floats = (v: Value): Value => (Array.isArray(v) ? v.map(floats) : isNumber(v) ? float(toFloat(v)) : v)

const isSamePoint = (a: Value, b: Value): boolean =>
  (a as Coordinates).every((part, i) => {
    const other = (b as Coordinates)[i]
    return isNumber(part) && isNumber(other) && toFloat(part) === toFloat(other)
  })

/** A ring ends where it begins. */
const closed = (ring: Value): Value => {
  const points = ring as Coordinates,
    [first] = points,
    last = points.at(-1)
  return first === undefined || last === undefined || isSamePoint(first, last) ? ring : [...points, first]
}

const polygon = (v: Value): Value => (floats(v) as Coordinates).map(closed)

interface Shape {
  readonly test: (v: Value) => boolean
  readonly made: (v: Value) => Value
}

const shapes: { readonly [type: string]: Shape } = {
  Point: { test: isPoint, made: floats },
  LineString: { test: isLine, made: floats },
  Polygon: { test: isPolygon, made: polygon },
  MultiPoint: { test: isLine, made: floats },
  MultiLineString: { test: isList(isLine), made: floats },
  MultiPolygon: { test: isList(isPolygon), made: (v) => (v as Coordinates).map(polygon) }
}

const memberOf = (v: Value): Geometry | undefined => (v instanceof Geometry ? v : isObj(v) ? geometryOf(v) : undefined)

/** The geometry of an object in GeoJSON form; `undefined` for any other object. */
export const geometryOf = (object: Obj): Geometry | undefined => {
  const type = field(object, "type")
  if (typeof type !== "string" || Object.keys(object).length !== 2) return undefined
  if (type === "GeometryCollection") {
    const inner = field(object, "geometries")
    if (!Array.isArray(inner)) return undefined
    const geometries = (inner as Coordinates).map(memberOf)
    return geometries.includes(undefined) ? undefined : new Geometry({ type, geometries })
  }
  const coordinates = field(object, "coordinates")
  const shape = Object.hasOwn(shapes, type) ? shapes[type]! : undefined
  return shape?.test(coordinates) === true ? new Geometry({ type, coordinates: shape.made(coordinates) }) : undefined
}

/** An object of the entries; a later key wins. */
export const makeObject = (entries: ReadonlyArray<readonly [string, Value]>): Obj => {
  const out: Record<string, Value> = {}
  for (const [key, value] of entries) setField(out, key, value)
  return out
}
