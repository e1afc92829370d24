/**
 * The binary form of values: there and back by itself, and there and back through the real engine.
 *
 * Why the engine too: a codec that only understands itself proves nothing; what the database makes of the bytes, and
 * what it sends, is the law.
 */
import { createNodeEngines } from "@surrealdb/node"
import { FastCheck as fc } from "effect"
import { Surreal } from "surrealdb"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as CborReader from "../../../../../src/core/surql/values/cbor/cborReader.ts"
import * as CborWriter from "../../../../../src/core/surql/values/cbor/cborWriter.ts"
import { makeSet } from "../../../../../src/core/surql/values/makeSet.ts"
import { WideDecimal } from "../../../../../src/core/surql/values/number.ts"
import { identical } from "../../../../../src/core/surql/values/order.ts"
import * as Ids from "../../../../../src/core/surql/values/recordId.ts"
import { render } from "../../../../../src/core/surql/values/text.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  type Obj,
  Range,
  RecordRange,
  Regex,
  Table,
  Uuid,
  type Value
} from "../../../../../src/core/surql/values/value.ts"

const uuid = new Uuid("018f4e2a-0000-7000-8000-00000000abcd")
const point: Value = [new Float(1), 2.5]
const odd: ReadonlyArray<Value> = [
  undefined,
  null,
  true,
  false,
  0,
  1,
  23,
  24,
  255,
  256,
  65_535,
  65_536,
  4_294_967_295,
  4_294_967_296,
  9_007_199_254_740_991,
  -1,
  -24,
  -25,
  -9_007_199_254_740_991,
  9_007_199_254_740_992n,
  9_223_372_036_854_775_807n,
  -9_223_372_036_854_775_808n,
  new Float(1),
  new Float(0),
  -0,
  1.5,
  0.1,
  1e300,
  5e-324,
  65_504.5,
  Infinity,
  -Infinity,
  NaN,
  new Decimal(new WideDecimal("79228162514264337593543950335")),
  new Decimal(new WideDecimal("-0.0000000000000000000000000001")),
  "",
  "a",
  "\u0000",
  "héllo 😀 'x' \"y\" `z` ⟨w⟩",
  "x".repeat(70_000),
  new Datetime(0, 0),
  new Datetime(-5, 7),
  new Datetime(1_700_000_000, 999_999_999),
  new Duration(0, 0),
  new Duration(0, 1),
  new Duration(3_600, 0),
  new Duration(9_007_199_254_740_993n, 5),
  new Duration(18_446_744_073_709_551_615n, 999_999_999),
  uuid,
  new Bytes(new Uint8Array()),
  new Bytes(Uint8Array.from([0, 255])),
  makeSet([3, 1, "a"]),
  [],
  {},
  [undefined, null, [undefined]],
  { a: { b: [1, new Float(1)] } },
  JSON.parse('{"__proto__":{"x":1},"constructor":[1],"$":[1],"":0}') as Obj,
  new Table("t x"),
  new Range({ value: 1, inclusive: true }, { value: 3, inclusive: false }),
  new Range(undefined, { value: "z", inclusive: true }),
  new Range(undefined, undefined),
  new Geometry({ type: "Point", coordinates: point }),
  new Geometry({ type: "LineString", coordinates: [point, point] }),
  new Geometry({
    type: "Polygon",
    coordinates: [
      [
        [new Float(0), new Float(0)],
        [new Float(0), new Float(1)],
        [new Float(1), new Float(1)],
        [new Float(0), new Float(0)]
      ]
    ]
  }),
  new Geometry({ type: "MultiPoint", coordinates: [point, point] }),
  new Geometry({ type: "MultiLineString", coordinates: [[point, point]] }),
  new Geometry({ type: "GeometryCollection", geometries: [new Geometry({ type: "Point", coordinates: point })] })
]
const keys = [
  "a",
  "a b",
  "'",
  "`",
  "\\",
  "⟩",
  "⟨",
  "'; DROP TABLE x; --",
  "ä😀",
  "123",
  "",
  "\u0000",
  "true",
  1,
  -5,
  0,
  9_223_372_036_854_775_807n,
  uuid,
  ["x", 1, uuid],
  [[1], null],
  { a: 1, b: ["q"] },
  [new Datetime(1, 0)]
] as const
const ids = keys.flatMap((key) => [Ids.make("person", key), Ids.make("odd `name", key)])
const ranges = [
  new RecordRange("t", new Range({ value: 1, inclusive: true }, { value: 9, inclusive: false })),
  new RecordRange("t", new Range(undefined, undefined))
]

const db = new Surreal({
  engines: createNodeEngines(),
  codecs: {
    cbor: () => ({
      encode: <T>(data: T) => CborWriter.encode(data as Value),
      decode: <T>(bytes: Uint8Array) => CborReader.decode(bytes) as T
    })
  }
})
beforeAll(async () => {
  await db.connect("mem://", { namespace: "n", database: "d" })
})
afterAll(async () => {
  await db.close()
})

const same = (a: Value, b: Value): boolean => identical(a, b) && render([a]) === render([b])

test("every kind of value comes back as it was", () => {
  for (const value of [...odd, ...ids, ...ranges])
    expect(same(CborReader.decode(CborWriter.encode(value)), value), render([value])).toBe(true)
})

test("every kind of value comes back from the database as it was", async () => {
  for (const value of [...odd, ...ids, ...ranges]) {
    const [answer] = await db.query<[Value]>("RETURN $value", { value })
    expect(same(answer, value), `${render([value])} came back as ${render([answer])}`).toBe(true)
  }
})

test("the database and we write the values we send alike", async () => {
  const unlike: Array<string> = []
  // The text of a geometry, and of a NUL inside a string, is written differently here; their bytes are the same
  // (above).
  const alike = [...odd, ...ids].filter((value) => !(value instanceof Geometry) && !render([value]).includes("\u0000"))
  for (const value of alike) {
    const [text] = await db.query<[string]>("RETURN <string>[$value]", { value })
    if (text !== render([value])) unlike.push(`${text} here ${render([value])}`)
  }
  expect(unlike).toEqual([])
})

test("record ids with quotes, backticks, unicode, numbers, arrays, objects and uuids are stored and found exactly", async () => {
  await db.query("DEFINE TABLE person; DEFINE TABLE `odd \\`name`")
  for (const id of ids) {
    const [made] = await db.query<[ReadonlyArray<Obj>]>("CREATE $id SET own = $id", { id })
    expect(same(made[0]?.["id"], id) && same(made[0]?.["own"], id), id.text).toBe(true)
  }
  for (const table of ["person", "odd `name"]) {
    const [rows] = await db.query<[ReadonlyArray<Value>]>("SELECT VALUE id FROM $table ORDER BY id", {
      table: new Table(table)
    })
    expect(new Set(rows.map((row) => render([row])))).toEqual(
      new Set(ids.filter((id) => id.table === table).map((id) => render([id])))
    )
  }
})

test("any JSON comes back, also through the database", async () => {
  const samples = fc.sample(fc.jsonValue({ noUnicodeString: false }) as fc.Arbitrary<unknown>, {
    numRuns: 100,
    seed: Number(process.env["SVC_SEED"] ?? 7)
  }) as ReadonlyArray<Value>
  expect(samples.some((value) => typeof value === "object" && value !== null)).toBe(true)
  for (const value of samples) expect(same(CborReader.decode(CborWriter.encode(value)), value)).toBe(true)
  const [back] = await db.query<[ReadonlyArray<Value>]>("RETURN $samples", { samples })
  expect(same(back, samples)).toBe(true)
})

test("floats of two and four bytes and lists without a length are read", () => {
  expect(CborReader.decode(Uint8Array.from([0xf9, 0x35, 0x55]))).toBeCloseTo(0.3333, 4)
  expect(CborReader.decode(Uint8Array.from([0xf9, 0x00, 0x01]))).toBe(2 ** -24)
  expect(CborReader.decode(Uint8Array.from([0xfa, 0x3f, 0xc0, 0, 0]))).toBe(1.5)
  expect(CborReader.decode(Uint8Array.from([0x9f, 1, 0x7f, 0x61, 0x61, 0x61, 0x62, 0xff, 0xff]))).toEqual([1, "ab"])
  expect(CborReader.decode(Uint8Array.from([0xbf, 0x61, 0x61, 1, 0xff]))).toEqual({ a: 1 })
})

test("the int of 54 bits below zero stays an int, and a mark at the start of a text stays in it", () => {
  expect(CborReader.decode(Uint8Array.from([0x3b, 0, 0x1f, 255, 255, 255, 255, 255, 255]))).toBe(-9007199254740992n)
  expect(CborReader.decode(CborWriter.encode("\ufeffa"))).toBe("\ufeffa")
})

test("in the canonical form, read as a stranger's bytes, every value comes back, and at most as long", () => {
  for (const value of odd) {
    const bytes = CborWriter.encodeCanonical(value)!
    expect(same(CborReader.decodeStranger(bytes)!.value, value), render([value])).toBe(true)
    expect(bytes.length, render([value])).toBeLessThanOrEqual(CborWriter.encode(value).length)
  }
})

test("a tag that is unknown or does not fit its content is passed over for the database, and refused for strangers", () => {
  const cases: ReadonlyArray<readonly [ReadonlyArray<number>, Value]> = [
    [[0xd9, 3, 231, 1], 1],
    [[0xca, 1], 1],
    [[0xd8, 37, 0x41, 7], new Bytes(Uint8Array.of(7))]
  ]
  for (const [bytes, content] of cases) {
    expect(same(CborReader.decode(Uint8Array.from(bytes)), content)).toBe(true)
    expect(CborReader.decodeStranger(Uint8Array.from(bytes))).toBeUndefined()
  }
  // A bound outside of a range, and one level too many.
  expect(CborReader.decodeStranger(Uint8Array.of(0x81, 0xd8, 50, 1))).toBeUndefined()
  const deep = (levels: number) => Uint8Array.from({ length: levels }, (_, i) => (i < levels - 1 ? 0x81 : 0))
  expect(CborReader.decodeStranger(deep(64))).toBeDefined()
  expect(CborReader.decodeStranger(deep(65))).toBeUndefined()
  expect(CborReader.decode(deep(65))).toBeDefined()
})

test("bytes that are no value, and values that cannot be sent, are refused", () => {
  for (const bytes of [[], [0x62, 0x61], [0x82, 1], [0xfc], [0x1c]])
    expect(() => CborReader.decode(Uint8Array.from(bytes))).toThrow(RangeError)
  expect(() => CborWriter.encode(new Regex("a+"))).toThrow("cannot be sent")
  expect(() => CborWriter.encode(2n ** 63n)).toThrow("beyond 64 bits")
})
