/**
 * Shared by the CBOR reader and writer: the database's tags, half floats, and uuids as bytes.
 */

/** Tag numbers of the database's types; geometries except collections are in {@link tagOfGeometry} by their `type`. */
export const tags = {
  textDatetime: 0,
  none: 6,
  table: 7,
  record: 8,
  textUuid: 9,
  decimal: 10,
  datetime: 12,
  textDuration: 13,
  duration: 14,
  uuid: 37,
  range: 49,
  included: 50,
  excluded: 51,
  file: 55,
  set: 56,
  point: 88,
  line: 89,
  polygon: 90,
  points: 91,
  lines: 92,
  polygons: 93,
  collection: 94
} as const

export const tagOfGeometry: { readonly [type: string]: number } = {
  Point: tags.point,
  LineString: tags.line,
  Polygon: tags.polygon,
  MultiPoint: tags.points,
  MultiLineString: tags.lines,
  MultiPolygon: tags.polygons
}

export const typeOfGeometry: ReadonlyMap<number, string> = new Map([
  ...Object.entries(tagOfGeometry).map(([type, tag]) => [tag, type] as const),
  [tags.collection, "GeometryCollection"]
])

/** Tags of a geometry's parts; the parts of a point are numbers. */
export const partOfGeometry: { readonly [tag: number]: number } = {
  [tags.line]: tags.point,
  [tags.polygon]: tags.line,
  [tags.points]: tags.point,
  [tags.lines]: tags.line,
  [tags.polygons]: tags.polygon
}

/** The number in the 16 bits of a half float. */
export const halfFloat = (bits: number): number => {
  const sign = bits & 0x8000 ? -1 : 1,
    exponent = (bits >> 10) & 31,
    fraction = bits & 1023
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

/** The 16 bits of a half float, if it holds the number exactly. */
export const halfBits = (n: number): number | undefined => {
  if (n !== n) return 0x7e00
  const sign = n < 0 || Object.is(n, -0) ? 0x8000 : 0,
    size = Math.abs(n)
  if (size === 0) return sign
  if (size === Infinity) return sign | 0x7c00
  const exponent = Math.max(-14, Math.floor(Math.log2(size)))
  const mantissa = size / 2 ** (exponent - 10)
  if (exponent > 15 || mantissa !== Math.floor(mantissa) || mantissa >= 2048) return undefined
  return mantissa < 1024 ? sign | mantissa : sign | ((exponent + 15) << 10) | (mantissa - 1024)
}

/** The 16 bytes of a uuid's text. */
export const uuidBytes = (text: string): Uint8Array => {
  const digits = text.replaceAll("-", "")
  return Uint8Array.from({ length: 16 }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16))
}

/** The text of a uuid's 16 bytes. */
export const uuidText = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
