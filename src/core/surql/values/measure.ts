/**
 * Area and centroid of geometries, and whether their coordinates are on Earth.
 *
 * Why so: clients compare these figures with the database's, so the order of operations is that of the library it uses:
 * areas by Chamberlain and Duquette (2007) on a sphere of the equatorial radius, centroids in the plane, weighted by
 * the geometry's highest dimension (area, else length, else count), relative to a ring's first point.
 */

import type { Point } from "./geometry.ts"
import { pointsOf, ringsOf } from "./geometry.ts"
import type { Value } from "./value.ts"
import { field, Geometry, isObj } from "./value.ts"

const radius = 6_378_137

type Ring = ReadonlyArray<Point>

/** The ring with its first point repeated at the end. */
const closed = (ring: Ring): Ring => {
  const first = ring[0],
    last = ring[ring.length - 1]
  return first === undefined || (first[0] === last![0] && first[1] === last![1]) ? ring : [...ring, first]
}

const parts = (v: Value, depth: number): ReadonlyArray<ReadonlyArray<Ring>> =>
  depth === 0
    ? [ringsOf(v, 1).map(closed)]
    : Array.isArray(v)
      ? (v as ReadonlyArray<Value>).flatMap((item) => parts(item, depth - 1))
      : []

/** Polygons of a geometry that has any, each a list of rings. */
const polygonsOf = (g: Geometry): ReadonlyArray<ReadonlyArray<Ring>> => {
  const type = field(g.value, "type")
  return type === "Polygon"
    ? parts(field(g.value, "coordinates"), 0)
    : type === "MultiPolygon"
      ? parts(field(g.value, "coordinates"), 1)
      : []
}

/** The geometries a collection holds. */
const membersOf = (g: Geometry): ReadonlyArray<Geometry> => {
  const held = field(g.value, "geometries")
  return Array.isArray(held)
    ? (held as ReadonlyArray<Value>).map((m) => (m instanceof Geometry ? m : new Geometry(isObj(m) ? m : {})))
    : []
}

const rad = (degrees: number): number => degrees * (Math.PI / 180)

const ringArea = (ring: Ring): number => {
  const n = ring.length
  if (n <= 2) return 0
  let total = 0
  for (let i = 0; i < n; i++)
    total += (rad(ring[(i + 2) % n]![0]) - rad(ring[i]![0])) * Math.sin(rad(ring[(i + 1) % n]![1]))
  return (total * radius * radius) / -2
}

/** Square metres, never negative; 0 for a geometry without an inside. */
export const area = (g: Geometry): number =>
  [
    ...polygonsOf(g).map(([outer, ...inner]) =>
      Math.abs(inner.reduce((sum, ring) => sum - ringArea(ring), ringArea(outer ?? [])))
    ),
    ...membersOf(g).map(area)
  ].reduce((a, b) => a + b, 0)

/** Coordinates within the bounds of longitude and latitude. */
export const isOnEarth = (g: Geometry): boolean =>
  pointsOf(field(g.value, "coordinates")).every(([x, y]) => x >= -180 && x <= 180 && y >= -90 && y <= 90) &&
  membersOf(g).every(isOnEarth)

/** A weighted mean of points: `x` and `y` are sums of coordinate times weight. */
interface Mean {
  readonly dimension: 0 | 1 | 2
  readonly x: number
  readonly y: number
  readonly weight: number
}

/** Adds two means; only the higher dimension counts. */
const plus = (a: Mean | undefined, b: Mean | undefined): Mean | undefined =>
  a === undefined || b === undefined
    ? (a ?? b)
    : a.dimension !== b.dimension
      ? a.dimension > b.dimension
        ? a
        : b
      : { ...a, x: a.x + b.x, y: a.y + b.y, weight: a.weight + b.weight }

const minus = (a: Mean, b: Mean): Mean =>
  a.dimension > b.dimension
    ? a
    : a.dimension < b.dimension
      ? b
      : { ...a, x: a.x - b.x, y: a.y - b.y, weight: a.weight - b.weight }

const ofPoint = ([x, y]: Point): Mean => ({ dimension: 0, x, y, weight: 1 })

/** The square of a number as a sum of two floats, without rounding. */
const exactSquare = (x: number): readonly [number, number] => {
  const split = 134217729 * x,
    high = split - (split - x),
    low = x - high,
    square = x * x
  return [square, high * high - square + 2 * high * low + low * low]
}

/** sqrt(x^2 + y^2), rounded once: `Math.hypot` may differ in the last digit. */
const hypotenuse = (x: number, y: number): number => {
  const h = Math.sqrt(x * x + y * y)
  if (h === 0 || !Number.isFinite(h)) return h
  const [hh, hl] = exactSquare(h),
    [xh, xl] = exactSquare(Math.max(Math.abs(x), Math.abs(y))),
    [yh, yl] = exactSquare(Math.min(Math.abs(x), Math.abs(y)))
  return h - (hh - xh - yh + (hl - xl - yl)) / (2 * h)
}

const ofSegment = (a: Point, b: Point): Mean => {
  if (a[0] === b[0] && a[1] === b[1]) return ofPoint(a)
  const weight = hypotenuse(b[0] - a[0], b[1] - a[1])
  return { dimension: 1, x: ((a[0] + b[0]) / 2) * weight, y: ((a[1] + b[1]) / 2) * weight, weight }
}

const segments = (line: Ring): ReadonlyArray<readonly [Point, Point]> =>
  line.slice(1).map((p, i) => [line[i]!, p] as const)

const ofLines = (lines: ReadonlyArray<Ring>): Mean | undefined =>
  lines
    .flatMap((line) => (line.length === 1 ? [ofPoint(line[0]!)] : segments(line).map(([a, b]) => ofSegment(a, b))))
    .reduce<Mean | undefined>(plus, undefined)

const ofRing = (ring: Ring): Mean | undefined => {
  const first = ring[0]
  if (first === undefined) return undefined
  let doubled = 0,
    x = 0,
    y = 0
  for (const [p, q] of segments(ring)) {
    const a = [p[0] - first[0], p[1] - first[1]] as const,
      b = [q[0] - first[0], q[1] - first[1]] as const
    const cross = a[0] * b[1] - a[1] * b[0]
    doubled += cross
    x += (b[0] + a[0]) * cross
    y += (b[1] + a[1]) * cross
  }
  const flat = doubled / 2
  if (flat === 0) return ofLines([ring])
  const weight = Math.abs(flat)
  return { dimension: 2, x: (x / (6 * flat) + first[0]) * weight, y: (y / (6 * flat) + first[1]) * weight, weight }
}

const ofPolygon = ([outer, ...inner]: ReadonlyArray<Ring>): Mean | undefined => {
  const whole = ofRing(outer ?? [])
  const holes = inner.map(ofRing).reduce(plus, undefined)
  const left = whole === undefined || holes === undefined ? whole : minus(whole, holes)
  return left?.weight === 0 ? ofLines([outer ?? []]) : left
}

const meanOf = (g: Geometry): Mean | undefined => {
  const coordinates = field(g.value, "coordinates")
  switch (field(g.value, "type")) {
    case "Point":
    case "MultiPoint":
      return pointsOf(coordinates).map(ofPoint).reduce<Mean | undefined>(plus, undefined)
    case "LineString":
      return ofLines([pointsOf(coordinates)])
    case "MultiLineString":
      return ofLines(ringsOf(coordinates, 1))
    case "Polygon":
    case "MultiPolygon":
      return polygonsOf(g).map(ofPolygon).reduce(plus, undefined)
    default:
      return membersOf(g).map(meanOf).reduce(plus, undefined)
  }
}

/** The centre of mass, in degrees; undefined for an empty geometry. */
export const centroid = (g: Geometry): Point | undefined => {
  const mean = meanOf(g)
  return mean === undefined ? undefined : [mean.x / mean.weight, mean.y / mean.weight]
}
