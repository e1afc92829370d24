/**
 * Objects from entries, and the rule that an object shaped like GeoJSON is a geometry.
 *
 * Why so: the database turns `{ type: 'Point', coordinates: [1, 2] }` written in a query into a geometry value; parser,
 * evaluator and functions must agree on when.
 */
import { isNumber } from "./number.ts"
import type { Obj, Value } from "./value.ts"
import { Float, field, Geometry, isObj, setField } from "./value.ts"

const isPoint = (v: Value): boolean => Array.isArray(v) && v.length === 2 && v.every(isNumber)
const isList =
  (test: (v: Value) => boolean) =>
  (v: Value): boolean =>
    Array.isArray(v) && v.length > 0 && v.every(test)

const isLine = isList(isPoint)
const isPolygon = isList(isLine)

const shapes: { readonly [type: string]: (v: Value) => boolean } = {
  Point: isPoint,
  LineString: isLine,
  Polygon: isPolygon,
  MultiPoint: isLine,
  MultiLineString: isPolygon,
  MultiPolygon: isList(isPolygon)
}

const floats = (v: Value): Value =>
  Array.isArray(v) ? v.map(floats) : typeof v === "number" && Number.isSafeInteger(v) ? new Float(v) : v

/** The geometry an object stands for, `undefined` when it is none. */
export const geometryOf = (object: Obj): Geometry | undefined => {
  const type = field(object, "type")
  if (typeof type !== "string" || Object.keys(object).length !== 2) return undefined
  if (type === "GeometryCollection") {
    const inner = field(object, "geometries")
    return Array.isArray(inner) &&
      inner.every((g) => g instanceof Geometry || (isObj(g) && geometryOf(g) !== undefined))
      ? new Geometry(object)
      : undefined
  }
  const coordinates = field(object, "coordinates")
  return Object.hasOwn(shapes, type) && shapes[type]!(coordinates)
    ? new Geometry({ type, coordinates: floats(coordinates) })
    : undefined
}

/** An object (or geometry) of the entries; a later key wins. */
export const makeObject = (entries: ReadonlyArray<readonly [string, Value]>): Obj | Geometry => {
  const out: Record<string, Value> = {}
  for (const [key, value] of entries) setField(out, key, value)
  return entries.length === 2 ? (geometryOf(out) ?? out) : out
}
