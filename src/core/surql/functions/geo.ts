/**
 * `geo::*`: distance, bearing, area, centroid, validity, geohash.
 *
 * Why so: spherical formulas with the database's Earth radius, without an ellipsoid.
 */
import { raise } from "../evaluate/failure.ts"
import type { Point } from "../values/geometry.ts"
import * as Measure from "../values/measure.ts"
import type { NumberValue } from "../values/number.ts"
import { toFloat } from "../values/number.ts"
import type { Value } from "../values/value.ts"
import { field, float, Geometry } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

const radius = 6_371_008.8

const pointOf = (v: Geometry): Point | undefined => {
  if (field(v.value, "type") !== "Point") return undefined
  const [x, y] = field(v.value, "coordinates") as ReadonlyArray<NumberValue>
  return [toFloat(x!), toFloat(y!)]
}

const makePoint = (x: number, y: number): Geometry => new Geometry({ type: "Point", coordinates: [float(x), float(y)] })

const rad = (degrees: number): number => degrees * (Math.PI / 180)

const distance = (a: Point, b: Point): number => {
  const h =
    Math.sin(rad(b[1] - a[1]) / 2) ** 2 +
    Math.cos(rad(a[1])) * Math.cos(rad(b[1])) * Math.sin(rad(b[0] - a[0]) / 2) ** 2
  return radius * (2 * Math.asin(Math.sqrt(h)))
}

const bearing = (a: Point, b: Point): number => {
  const y = Math.sin(rad(b[0] - a[0])) * Math.cos(rad(b[1]))
  const x =
    Math.cos(rad(a[1])) * Math.sin(rad(b[1])) - Math.sin(rad(a[1])) * Math.cos(rad(b[1])) * Math.cos(rad(b[0] - a[0]))
  const turned = (Math.atan2(y, x) * (180 / Math.PI) + 360) % 360
  return turned > 180 ? turned - 360 : turned
}

const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

const hash = ([x, y]: Point, length: number): string => {
  const range = [
    [-180, 180],
    [-90, 90]
  ] as [[number, number], [number, number]]
  let out = "",
    bits = 0,
    held = 0,
    even = true
  while (out.length < length) {
    const [low, high] = range[even ? 0 : 1],
      middle = (low + high) / 2,
      upper = (even ? x : y) > middle
    range[even ? 0 : 1] = upper ? [middle, high] : [low, middle]
    held = held * 2 + (upper ? 1 : 0)
    even = !even
    if (++bits === 5) {
      out += alphabet[held]!
      bits = held = 0
    }
  }
  return out
}

/** The five bits of a geohash character; of any other character the last five bits of its code. */
const bitsOf = (c: string): number => {
  const known = alphabet.indexOf(c)
  return known >= 0 ? known : c.codePointAt(0)! & 31
}

const unhash = (text: string): Geometry => {
  const range = [
    [-180, 180],
    [-90, 90]
  ] as [[number, number], [number, number]]
  let even = true
  for (const c of text)
    for (let bit = 4; bit >= 0; bit--) {
      const [low, high] = range[even ? 0 : 1],
        middle = (low + high) / 2
      range[even ? 0 : 1] = (bitsOf(c) >> bit) & 1 ? [middle, high] : [low, middle]
      even = !even
    }
  return makePoint((range[0][0] + range[0][1]) / 2, (range[1][0] + range[1][1]) / 2)
}

const centroid = (g: Geometry): Value => {
  const at = Measure.centroid(g)
  return at === undefined ? undefined : makePoint(...at)
}

/** A function of two points; NONE for geometries that are no points. */
const betweenPoints = (f: (a: Point, b: Point) => number): Fn =>
  define<[Geometry, Geometry]>(["geometry", "geometry"], ([a, b]) => {
    const p = pointOf(a),
      q = pointOf(b)
    return p === undefined || q === undefined ? undefined : float(f(p, q))
  })

export const geo: Table = {
  "geo::area": define<[Geometry]>(["geometry"], ([g]) => float(Measure.area(g))),
  "geo::centroid": define<[Geometry]>(["geometry"], ([g]) => centroid(g)),
  "geo::is_valid": define<[Geometry]>(["geometry"], ([g]) => Measure.isOnEarth(g)),
  "geo::bearing": betweenPoints(bearing),
  "geo::distance": betweenPoints(distance),
  "geo::hash::encode": define<[Geometry, number?]>(["geometry", "?int"], ([v, n]) => {
    const p = pointOf(v)
    if (n !== undefined && (n < 1 || n > 12))
      return raise`Incorrect arguments for function geo::encode(). The second argument must be an integer greater than 0 and less than or equal to 12.`
    return p === undefined ? undefined : hash(p, n ?? 12)
  }),
  "geo::hash::decode": define<[Value]>(["any"], ([v]) => (typeof v === "string" ? unhash(v) : undefined))
}
