/**
 * Planar tests between geometries: point in polygon and segment crossing, enough for CONTAINS, INSIDE, INTERSECTS.
 *
 * Why so: geometries are kept as GeoJSON; the few relations the language has need no library. Borders count as outside for
 * containment and as touching for intersection.
 */
import { isNumber, toFloat } from "./number.ts"
import { Geometry, field, isObj } from "./value.ts"
import type { Value } from "./value.ts"

export type Point = readonly [number, number]

/** All positions in a coordinates array, however deep. */
export const pointsOf = (v: Value): Array<Point> => {
  if (!Array.isArray(v)) return []
  const items = v as ReadonlyArray<Value>
  const x = items[0], y = items[1]
  if (items.length === 2 && isNumber(x) && isNumber(y)) return [[toFloat(x), toFloat(y)]]
  return items.flatMap(pointsOf)
}

/** Lists of positions `depth` levels down. */
export const ringsOf = (v: Value, depth: number): Array<Array<Point>> =>
  depth === 0 ? [pointsOf(v)] : Array.isArray(v) ? (v as ReadonlyArray<Value>).flatMap((item) => ringsOf(item, depth - 1)) : []

interface Shape {
  readonly points: ReadonlyArray<Point>
  readonly lines: ReadonlyArray<ReadonlyArray<Point>>
  readonly polygons: ReadonlyArray<ReadonlyArray<ReadonlyArray<Point>>>
}

const shapeOf = (g: Geometry): Shape => {
  const c = field(g.value, "coordinates")
  const none: Shape = { points: [], lines: [], polygons: [] }
  const list = (Array.isArray(c) ? c : []) as ReadonlyArray<Value>
  switch (field(g.value, "type")) {
    case "Point": case "MultiPoint": return { ...none, points: pointsOf(c) }
    case "LineString": return { ...none, lines: [pointsOf(c)] }
    case "MultiLineString": return { ...none, lines: ringsOf(c, 1) }
    case "Polygon": return { ...none, polygons: [ringsOf(c, 1)] }
    case "MultiPolygon": return { ...none, polygons: list.map((p) => ringsOf(p, 1)) }
    default: {
      const parts = field(g.value, "geometries")
      const shapes = (Array.isArray(parts) ? (parts as ReadonlyArray<Value>) : []).map((p) => (p instanceof Geometry ? shapeOf(p) : isObj(p) ? shapeOf(new Geometry(p)) : none))
      return { points: shapes.flatMap((s) => s.points), lines: shapes.flatMap((s) => s.lines), polygons: shapes.flatMap((s) => s.polygons) }
    }
  }
}

const side = (a: Point, b: Point, c: Point): number => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

const onSegment = (a: Point, b: Point, p: Point): boolean =>
  side(a, b, p) === 0 && p[0] >= Math.min(a[0], b[0]) && p[0] <= Math.max(a[0], b[0]) && p[1] >= Math.min(a[1], b[1]) && p[1] <= Math.max(a[1], b[1])

const segments = (line: ReadonlyArray<Point>): Array<readonly [Point, Point]> => line.slice(1).map((p, i) => [line[i]!, p] as const)

const onLine = (line: ReadonlyArray<Point>, p: Point): boolean => segments(line).some(([a, b]) => onSegment(a, b, p))

/** 1 inside, 0 on the border, -1 outside of a ring. */
const inRing = (ring: ReadonlyArray<Point>, p: Point): number => {
  if (onLine(ring, p)) return 0
  let inside = false
  for (const [a, b] of segments(ring)) {
    if (a[1] > p[1] !== b[1] > p[1] && p[0] < ((b[0] - a[0]) * (p[1] - a[1])) / (b[1] - a[1]) + a[0]) inside = !inside
  }
  return inside ? 1 : -1
}

const inPolygon = (polygon: ReadonlyArray<ReadonlyArray<Point>>, p: Point): number => {
  const outer = inRing(polygon[0] ?? [], p)
  if (outer <= 0) return outer
  for (const hole of polygon.slice(1)) {
    const inner = inRing(hole, p)
    if (inner >= 0) return -inner
  }
  return 1
}

const allPoints = (s: Shape): Array<Point> => [...s.points, ...s.lines.flat(), ...s.polygons.flat(2)]

/** True when every point of `b` lies in the interior of (or, for points and lines, on) `a`. */
export const contains = (a: Geometry, b: Geometry): boolean => {
  const outer = shapeOf(a), inner = allPoints(shapeOf(b))
  return inner.length > 0 && inner.every((p) =>
    outer.polygons.some((polygon) => inPolygon(polygon, p) > 0) || outer.lines.some((l) => onLine(l, p)) || outer.points.some((q) => q[0] === p[0] && q[1] === p[1]))
}

const crosses = (a: ReadonlyArray<Point>, b: ReadonlyArray<Point>): boolean =>
  segments(a).some(([p, q]) => segments(b).some(([r, s]) =>
    (side(p, q, r) !== side(p, q, s) && side(r, s, p) !== side(r, s, q)) || onSegment(p, q, r) || onSegment(p, q, s) || onSegment(r, s, p) || onSegment(r, s, q)))

/** True when the two share a point. */
export const intersects = (a: Geometry, b: Geometry): boolean => {
  const x = shapeOf(a), y = shapeOf(b)
  const touches = (s: Shape, p: Point): boolean =>
    s.polygons.some((polygon) => inPolygon(polygon, p) >= 0) || s.lines.some((l) => onLine(l, p)) || s.points.some((q) => q[0] === p[0] && q[1] === p[1])
  const edges = (s: Shape): Array<ReadonlyArray<Point>> => [...s.lines, ...s.polygons.flat()]
  return allPoints(y).some((p) => touches(x, p)) || allPoints(x).some((p) => touches(y, p)) || edges(x).some((l) => edges(y).some((m) => crosses(l, m)))
}
