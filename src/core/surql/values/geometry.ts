/**
 * Planar tests between geometries: point in polygon and segment crossing, enough for CONTAINS, INSIDE, INTERSECTS.
 *
 * Why so: geometries are kept as GeoJSON; the few relations the language has need no library. Borders count as outside
 * for containment and as touching for intersection.
 */
import { isNumber, toFloat } from "./number.ts"
import type { Value } from "./value.ts"
import { field, Geometry, isObj } from "./value.ts"

export type Point = readonly [number, number]

/** All positions of a coordinates array, at any depth. */
export const pointsOf = (v: Value): Array<Point> => {
  if (!Array.isArray(v)) return []
  const items = v as ReadonlyArray<Value>
  const x = items[0],
    y = items[1]
  if (items.length === 2 && isNumber(x) && isNumber(y)) return [[toFloat(x), toFloat(y)]]
  return items.flatMap(pointsOf)
}

/** Lists of positions `depth` levels down. */
export const ringsOf = (v: Value, depth: number): Array<Array<Point>> =>
  depth === 0
    ? [pointsOf(v)]
    : Array.isArray(v)
      ? (v as ReadonlyArray<Value>).flatMap((item) => ringsOf(item, depth - 1))
      : []

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
    case "Point":
    case "MultiPoint":
      return { ...none, points: pointsOf(c) }
    case "LineString":
      return { ...none, lines: [pointsOf(c)] }
    case "MultiLineString":
      return { ...none, lines: ringsOf(c, 1) }
    case "Polygon":
      return { ...none, polygons: [ringsOf(c, 1)] }
    case "MultiPolygon":
      return { ...none, polygons: list.map((p) => ringsOf(p, 1)) }
    default: {
      const parts = field(g.value, "geometries")
      const shapes = (Array.isArray(parts) ? (parts as ReadonlyArray<Value>) : []).map((p) =>
        p instanceof Geometry ? shapeOf(p) : isObj(p) ? shapeOf(new Geometry(p)) : none
      )
      return {
        points: shapes.flatMap((s) => s.points),
        lines: shapes.flatMap((s) => s.lines),
        polygons: shapes.flatMap((s) => s.polygons)
      }
    }
  }
}

const side = (a: Point, b: Point, c: Point): number =>
  Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

const onSegment = (a: Point, b: Point, p: Point): boolean =>
  side(a, b, p) === 0 &&
  p[0] >= Math.min(a[0], b[0]) &&
  p[0] <= Math.max(a[0], b[0]) &&
  p[1] >= Math.min(a[1], b[1]) &&
  p[1] <= Math.max(a[1], b[1])

const segments = (line: ReadonlyArray<Point>): Array<readonly [Point, Point]> =>
  line.slice(1).map((p, i) => [line[i]!, p] as const)

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

const partsOf = (g: Geometry): ReadonlyArray<Geometry> | undefined => {
  const parts = field(g.value, "type") === "GeometryCollection" ? field(g.value, "geometries") : undefined
  return Array.isArray(parts)
    ? (parts as ReadonlyArray<Value>).map((p) => (p instanceof Geometry ? p : new Geometry(isObj(p) ? p : {})))
    : undefined
}

/**
 * Contained types by the type of the container. `real`: types that it can contain. `itself`: types that the database
 * compares with themselves instead, so they always count as contained.
 */
const holds: {
  readonly [kind: string]: { readonly real: ReadonlyArray<string>; readonly itself: ReadonlyArray<string> }
} = {
  Point: { real: ["Point", "MultiPoint"], itself: [] },
  LineString: { real: ["Point", "LineString"], itself: ["MultiLineString"] },
  Polygon: { real: ["Point", "LineString", "Polygon"], itself: ["MultiPolygon"] },
  MultiPoint: { real: ["Point"], itself: ["MultiPoint"] },
  MultiLineString: { real: ["Point", "LineString"], itself: ["MultiLineString"] },
  MultiPolygon: {
    real: ["Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"],
    itself: []
  }
}

/** As in the database, a collection contains what each of its parts contains, and is contained where each part is. */
export const contains = (a: Geometry, b: Geometry): boolean => {
  const outer = partsOf(a),
    inner = partsOf(b)
  if (outer !== undefined) return outer.every((part) => contains(part, b))
  if (inner !== undefined) return inner.every((part) => contains(a, part))
  const { itself, real } = holds[String(field(a.value, "type"))]!,
    kind = String(field(b.value, "type"))
  return itself.includes(kind) || (real.includes(kind) && covers(a, b))
}

const between = [0.11, 0.27, 0.5, 0.73, 0.89]

/**
 * Positions of a line relative to a polygon, at its points and at points on its edges. An edge that is part of a
 * polygon's edge is on the border, without rounding errors.
 */
const placesOf = (polygon: ReadonlyArray<ReadonlyArray<Point>>, line: ReadonlyArray<Point>): ReadonlyArray<number> => {
  const borders = polygon.flatMap(segments)
  return [
    ...line.map((p) => inPolygon(polygon, p)),
    ...segments(line).flatMap(([p, q]) =>
      borders.some(([a, b]) => onSegment(a, b, p) && onSegment(a, b, q))
        ? [0]
        : between.map((t) => inPolygon(polygon, [p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]))
    )
  ]
}

/** Points inside a ring, at most one between each two of its heights. */
const innerPoints = (ring: ReadonlyArray<Point>): ReadonlyArray<Point> => {
  const heights = [...new Set(ring.map(([, y]) => y))].sort((a, b) => a - b)
  return heights.slice(1).flatMap((top, i) => {
    const y = (heights[i]! + top) / 2
    const [left, right] = segments(ring)
      .filter(([a, b]) => a[1] > y !== b[1] > y)
      .map(([a, b]) => ((b[0] - a[0]) * (y - a[1])) / (b[1] - a[1]) + a[0])
      .sort((a, b) => a - b)
    return left === undefined || right === undefined ? [] : [[(left + right) / 2, y] as const]
  })
}

/** Whether no part of a polygon lies outside of another: neither its rings, nor anything in the other's holes. */
const coversPolygon = (
  outer: ReadonlyArray<ReadonlyArray<Point>>,
  inner: ReadonlyArray<ReadonlyArray<Point>>
): boolean =>
  inner.every((ring) => placesOf(outer, ring).every((at) => at >= 0)) &&
  !outer.slice(1).some((hole) => innerPoints(hole).some((p) => inPolygon(inner, p) > 0))

const isSame = (a: Point | undefined, b: Point | undefined): boolean =>
  a !== undefined && b !== undefined && a[0] === b[0] && a[1] === b[1]

/** The ends of an open line are its border, and not inside it. */
const endsAt = (line: ReadonlyArray<Point>, p: Point): boolean =>
  !isSame(line[0], line.at(-1)) && (isSame(line[0], p) || isSame(line.at(-1), p))

/**
 * Whether no part of `b` lies outside of `a`, and some part lies not only on its border; a line or polygon must lie in
 * one polygon as a whole.
 */
const covers = (a: Geometry, b: Geometry): boolean => {
  const outer = shapeOf(a),
    inner = shapeOf(b)
  const onPath = (p: Point): boolean =>
    outer.lines.some((l) => onLine(l, p) && !endsAt(l, p)) || outer.points.some((q) => isSame(q, p))
  const pointAt = (p: Point): number =>
    onPath(p) ? 1 : Math.max(-1, ...outer.polygons.map((polygon) => inPolygon(polygon, p)))
  const lineAt = (line: ReadonlyArray<Point>): ReadonlyArray<number> =>
    line.length > 0 &&
    outer.lines.some((path) =>
      segments(line).every(
        ([p, q]) => onLine(path, p) && onLine(path, q) && onLine(path, [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2])
      )
    )
      ? [1]
      : (outer.polygons.map((polygon) => placesOf(polygon, line)).find((places) => places.every((at) => at >= 0)) ?? [
          -1
        ])
  const places = [...inner.points.map(pointAt), ...inner.lines.flatMap(lineAt)]
  return (
    (places.length > 0 || inner.polygons.length > 0) &&
    places.every((at) => at >= 0) &&
    (places.some((at) => at > 0) || inner.polygons.length > 0) &&
    inner.polygons.every((polygon) => outer.polygons.some((candidate) => coversPolygon(candidate, polygon)))
  )
}

const crosses = (a: ReadonlyArray<Point>, b: ReadonlyArray<Point>): boolean =>
  segments(a).some(([p, q]) =>
    segments(b).some(
      ([r, s]) =>
        (side(p, q, r) !== side(p, q, s) && side(r, s, p) !== side(r, s, q)) ||
        onSegment(p, q, r) ||
        onSegment(p, q, s) ||
        onSegment(r, s, p) ||
        onSegment(r, s, q)
    )
  )

/** Whether the two share a point; for a collection, whether all its parts do. */
export const intersects = (a: Geometry, b: Geometry): boolean => {
  const parts = partsOf(a) ?? partsOf(b)
  if (parts !== undefined)
    return partsOf(a) !== undefined
      ? parts.every((part) => intersects(part, b))
      : parts.every((part) => intersects(a, part))
  const x = shapeOf(a),
    y = shapeOf(b)
  const touches = (s: Shape, p: Point): boolean =>
    s.polygons.some((polygon) => inPolygon(polygon, p) >= 0) ||
    s.lines.some((l) => onLine(l, p)) ||
    s.points.some((q) => isSame(q, p))
  const edges = (s: Shape): Array<ReadonlyArray<Point>> => [...s.lines, ...s.polygons.flat()]
  return (
    allPoints(y).some((p) => touches(x, p)) ||
    allPoints(x).some((p) => touches(y, p)) ||
    edges(x).some((l) => edges(y).some((m) => crosses(l, m)))
  )
}
