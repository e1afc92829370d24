/**
 * The value algorithms: order, equality, keys, record ids, JSON and stored text.
 *
 * Why so: every other part leans on these, so each law (total order, key agrees with `=`, reversible text) is tried on
 * all pairs and triples of one list that has every type and the awkward neighbours.
 */
import { describe, expect, it } from "vitest"
import { same } from "../../../kit/checks/same.ts"
import * as Datetimes from "../../../src/core/surql/values/datetime.ts"
import * as Durations from "../../../src/core/surql/values/duration.ts"
import { decode, encode } from "../../../src/core/surql/values/encode.ts"
import { fromJson, fromJsonTyped, stringify, toJson } from "../../../src/core/surql/values/json.ts"
import { compositeKey, indexKey } from "../../../src/core/surql/values/key.ts"
import { makeSet } from "../../../src/core/surql/values/makeSet.ts"
import { parseDecimal } from "../../../src/core/surql/values/number.ts"
import {
  compare,
  compareRecords,
  compareStrings,
  equal,
  identical,
  isTruthy
} from "../../../src/core/surql/values/order.ts"
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"
import { recordText, render } from "../../../src/core/surql/values/text.ts"
import type { RecordKey, Value } from "../../../src/core/surql/values/value.ts"
import {
  Bytes,
  Datetime,
  type Decimal,
  Duration,
  Float,
  float,
  Geometry,
  int,
  Range,
  type RecordId,
  Regex,
  sameRecord,
  Table,
  Uuid
} from "../../../src/core/surql/values/value.ts"

const dec = (text: string): Decimal => parseDecimal(text)!
const id = (text: string): RecordId => RecordIds.parse(text)!

/** In ascending order; equal neighbours are listed in one row. */
const ladder: ReadonlyArray<ReadonlyArray<Value>> = [
  [undefined],
  [null],
  [false],
  [true],
  [-Infinity],
  [-1e300],
  [-9007199254740993n],
  [-1, float(-1), dec("-1")],
  [-0, 0, float(0), dec("0")],
  [dec("0.1"), 0.1],
  [dec("0.1000000000000000055")],
  [1, new Float(1), dec("1.00")],
  [1.5, dec("1.5")],
  [9007199254740992n, 9007199254740992],
  [9007199254740993n, dec("9007199254740993")],
  [1e300],
  [Infinity],
  [NaN],
  [""],
  ["\u0000a"],
  ["10"],
  ["9"],
  ["A"],
  ["a:2"],
  ["b"],
  ["é"],
  ["\uffee"],
  ["😀"],
  [new Duration(0, 5)],
  [new Duration(60, 0)],
  [new Duration(9007199254740991, 0)],
  [new Duration(9007199254740992n, 0)],
  [new Duration(9007199254740993n, 0)],
  [Durations.longest],
  [new Datetime(-5, 3)],
  [new Datetime(0, 0)],
  [new Datetime(0, 1)],
  [new Uuid("00000000-0000-0000-0000-000000000000")],
  [new Uuid("018a6680-bef9-701b-9025-e1754f296a0f")],
  [[]],
  [[undefined]],
  [[1], [new Float(1)]],
  [[1, 2]],
  [["a:1"]],
  [makeSet([1])],
  [makeSet([2, 1]), makeSet([1, 2, 2])],
  [{}],
  [{ a: undefined }],
  [{ a: 1 }, { a: dec("1") }],
  [
    { a: 1, b: 1 },
    { b: 1, a: 1 }
  ],
  [{ a: 2 }],
  [{ b: 0 }],
  [new Geometry({ type: "Point", coordinates: [1.5, 2] })],
  [new Bytes(Uint8Array.of(1))],
  [new Table("x")],
  [id("a:1")],
  [id("a:10")],
  [id("a:b")],
  [id("a:['x']")],
  [id("b:1")],
  [new Range(undefined, undefined)],
  [new Range({ value: 1, inclusive: true }, { value: 2, inclusive: true })],
  [new Range({ value: 1, inclusive: true }, { value: 2, inclusive: false })]
]
const all = ladder.flat()

describe("order", () => {
  it("compare is the ladder's order on every pair, whatever the types", () => {
    ladder.forEach((as, i) =>
      ladder.forEach((bs, j) =>
        as.forEach((a) =>
          bs.forEach((b) => same(Math.sign(compare(a, b)) + 0, Math.sign(i - j), `${render(a)} ~ ${render(b)}`))
        )
      )
    )
  })
  it("equal agrees with the order on every pair, and indexKey with equal", () => {
    for (const a of all)
      for (const b of all) {
        expect(equal(a, b), `${render(a)} = ${render(b)}`).toBe(compare(a, b) === 0)
        expect(new Set([indexKey(a), indexKey(b)]).size === 1, `${render(a)} key ${render(b)}`).toBe(equal(a, b))
        expect(new Set([compositeKey([a, 1]), compositeKey([b, 1])]).size === 1).toBe(equal(a, b))
      }
  })
  it("identical tells apart what equal merges", () => {
    expect(identical(1, new Float(1))).toBe(false)
    expect(identical({ a: [1, { b: dec("1.0") }] }, { a: [1, { b: dec("1") }] })).toBe(true)
    expect(identical("a:1", id("a:1"))).toBe(false)
    expect(identical({ toString: 1 }, {})).toBe(false)
    for (const a of all) expect(identical(a, decode(encode(a)))).toBe(true)
  })
  it("D1 a string equals the record id with the same text, deep, and shares its key", () => {
    expect(equal("a:1", id("a:1"))).toBe(true)
    expect(equal([{ x: "a:1" }], [{ x: id("a:1") }])).toBe(true)
    expect(indexKey([{ x: "a:1" }])).toBe(indexKey([{ x: id("a:1") }]))
    expect(equal("a:01", id("a:1"))).toBe(false)
  })
  it("a regex equals the strings it matches", () => {
    expect(equal(new Regex("a+"), "xaax")).toBe(true)
    expect(equal("b", new Regex("a"))).toBe(false)
  })
  it("truth is the database's", () => {
    const falsy: Array<Value> = [
      undefined,
      null,
      false,
      0,
      -0,
      new Float(0),
      dec("0"),
      "",
      [],
      {},
      new Duration(0, 0),
      new Bytes(new Uint8Array()),
      new Range(undefined, undefined),
      makeSet([])
    ]
    for (const v of falsy) expect(isTruthy(v), render(v)).toBe(false)
    for (const v of ["false", "0", [undefined], { a: undefined }, new Datetime(0, 0), NaN, id("a:0")])
      expect(isTruthy(v), render(v)).toBe(true)
  })
})

describe("record ids", () => {
  it.each([
    ["a:1", "a:1"],
    ["a:01", "a:1"],
    ["a:-0", "a:0"],
    ["a:+5", "a:5"],
    ["a:`1`", "a:`1`"],
    ["a:1e3", "a:1e3"],
    ["a:1a", "a:1a"],
    ["a:true", "a:true"],
    ["a:⟨x y⟩", "a:`x y`"],
    ["a:⟨x⟩", "a:x"],
    ["a:`a\\`b`", "a:`a\\`b`"],
    ["a:9223372036854775808", "a:`9223372036854775808`"],
    ["a:1_000", "a:`1_000`"],
    ["a:[1, 'x', d'2020-01-01T00:00:00Z']", "a:[1, 'x', d'2020-01-01T00:00:00Z']"],
    ["a:{b: 1, 'c d': \"it's\"}", 'a:{ b: 1, "c d": "it\'s" }'],
    ["a:u'018A6680-bef9-701b-9025-e1754f296a0f'", "a:u'018a6680-bef9-701b-9025-e1754f296a0f'"],
    ["`a b`:1", "`a b`:1"],
    ["a:``", "a:``"],
    ["a:[-1, 1.5f, [a:1], NONE]", "a:[-1, 1.5f, [a:1], NONE]"]
  ])("parse reads %s as the database does and prints %s", (text, canonical) => {
    expect(RecordIds.parse(text)?.text).toBe(canonical)
    expect(RecordIds.parse(canonical)?.text).toBe(canonical)
  })
  it.each(["a", "a:", ":1", "a:x y", "a:a-b", "a-b:1", "a:1.5", "a:'x'", "a:[1", "a:[1]x", "a:`x", "a:--1", "a:é"])(
    "parse refuses %s",
    (text) => {
      expect(RecordIds.parse(text)).toBeUndefined()
    }
  )
  it("parseLenient takes an unescaped key as it stands, but no broken escape", () => {
    expect(RecordIds.parseLenient("person:a-b")?.text).toBe("person:`a-b`")
    expect(RecordIds.parseLenient("person:a:b")?.key).toBe("a:b")
    expect(RecordIds.parseLenient("person:018a6680-bef9-701b-9025-e1754f296a0f")?.key).toBe(
      "018a6680-bef9-701b-9025-e1754f296a0f"
    )
    expect(RecordIds.parseLenient("person:[1")).toBeUndefined()
    expect(RecordIds.parseLenient("person:")).toBeUndefined()
  })
  it("keys order ints < strings < uuids < arrays < objects", () => {
    const sorted = [
      "t:-5",
      "t:3",
      "t:10",
      "t:``",
      "t:`10`",
      "t:`9`",
      "t:Abc",
      "t:abc",
      "t:z",
      "t:u'018a6680-bef9-701b-9025-e1754f296a0f'",
      "t:[1]",
      "t:{ a: 1 }"
    ].map(id)
    expect(
      sorted
        .slice()
        .reverse()
        .sort((a, b) => RecordIds.compareKeys(a.key, b.key))
        .map((r) => r.text)
    ).toEqual(sorted.map((r) => r.text))
  })
  it("an id makes its key from its text, and its text from its key, as they were given", () => {
    const keys: ReadonlyArray<RecordKey> = [
      ...[0, -0, 1, -1, 10, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER, 5n, 2n ** 63n - 1n, -(2n ** 63n)],
      ...["", "0", "-0", "-1", "+1", "1e3", "007", "9223372036854775808", "NaN", "Infinity", "a", "_", "a-b", "⟨a⟩"],
      ...["`", "``", "\\", "\\`", "a`b", "\u{8}", "\b\f\n\r\t\0", "é", "\u{1f600}", "\ud800", "u'x'", "[1]", "t:1"],
      ...[[1, "a"], { a: 1 }, new Uuid("018a6680-bef9-701b-9025-e1754f296a0f")]
    ]
    const ids = ["t", "T2", "NaN", "12", "a b", "`", "a:b"].flatMap((table) =>
      keys.map((key) => {
        const made = RecordIds.make(table, key)
        expect([made.table, made.text]).toEqual([table, recordText(table, key)])
        expect(made.key).toEqual(typeof key === "object" || typeof key === "string" ? key : int(BigInt(key)))
        const read = RecordIds.parse(made.text)
        if (read === undefined) return made
        expect([read.table, read.key, read.text]).toEqual([table, made.key, made.text])
        return read
      })
    )
    for (const a of ids)
      for (const b of ids) {
        const order = compareStrings(a.table, b.table) || RecordIds.compareKeys(a.key, b.key)
        const what = `${a.text} ~ ${b.text}`
        same(sameRecord(a, b), a.text === b.text, what)
        same(Math.sign(compareRecords(a, b)), Math.sign(order), what)
      }
  })
  it("an id is shared by all that are equal to it, and by no other", () => {
    const texts = ["s:1", "s:`1`", "s:a", "s:[1]", "`s 1`:1", "r:1", "s:9223372036854775807"]
    const first = texts.map((text) => RecordIds.sharedId(id(text)))
    expect(new Set(first).size).toBe(texts.length)
    for (const [i, text] of texts.entries()) expect(RecordIds.sharedId(id(text))).toBe(first[i])
  })
})

describe("JSON", () => {
  it("D1 complete date-times become datetimes, everything else keeps its type, untouched objects are the same object", () => {
    const plain = JSON.parse('{"a":1,"b":["x",{"c":null}],"__proto__":{"d":"2020-01-01"},"e":"a:1"}') as {
      [key: string]: unknown
    }
    expect(fromJson(plain)).toBe(plain)
    const typed = fromJson({
      at: "2020-01-01T00:00:00.5+02:00",
      n: [["2020-01-01T00:00:00Z"]],
      no: "2020-02-30T00:00:00Z"
    }) as { [key: string]: Value }
    expect(typed["at"]).toEqual(new Datetime(1577829600, 500000000))
    expect(toJson(typed)).toEqual({
      at: "2019-12-31T22:00:00.500Z",
      n: [["2020-01-01T00:00:00Z"]],
      no: "2020-02-30T00:00:00Z"
    })
  })
  it("D1 declared types win and what does not parse stays a string", () => {
    const types = {
      "a.b": "duration",
      "tags.*": "uuid",
      by: "option<record<user>>",
      list: "array<decimal, 5>",
      s: "set<int>",
      when: "datetime | string",
      f: "float",
      free: "string"
    }
    const v = fromJsonTyped(
      {
        a: { b: "1h" },
        tags: ["018a6680-bef9-701b-9025-e1754f296a0f", "no"],
        by: "user:1",
        list: ["1.50", 2],
        s: [2, 1, 2],
        when: "2020-01-01T00:00:00Z",
        f: 1,
        free: "2020-01-01T00:00:00Z",
        other: "2020-01-01T00:00:00Z"
      },
      types
    ) as { [key: string]: Value }
    expect(render(v)).toBe(
      "{ a: { b: 1h }, by: user:1, f: 1f, free: '2020-01-01T00:00:00Z', list: [1.5dec, 2dec], other: d'2020-01-01T00:00:00Z', s: {1, 2}, tags: [u'018a6680-bef9-701b-9025-e1754f296a0f', 'no'], when: d'2020-01-01T00:00:00Z' }"
    )
  })
  it("D1 a type names one element by its place, a name with dots or stars in back-ticks, and a number that JSON cannot carry", () => {
    const types = {
      "list.0": "datetime",
      "`a.b`": "datetime",
      "a.`*`": "duration",
      "`\\`\\\\`": "uuid",
      big: "int 9223372036854775807",
      inf: "float -Infinity",
      "gap.1": "none",
      b: "bytes",
      half: "float"
    }
    const v = fromJsonTyped(
      {
        list: ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"],
        "a.b": "2020-01-01T00:00:00Z",
        a: { b: "2020-01-01T00:00:00Z", "*": "1h", c: "1h" },
        "`\\": "018a6680-bef9-701b-9025-e1754f296a0f",
        big: 9223372036854775807,
        inf: null,
        gap: [null, null],
        b: [1, 2],
        half: null
      },
      types,
      "plain"
    ) as { [key: string]: Value }
    expect(render(v)).toBe(
      `{ "\`\\\\": u'018a6680-bef9-701b-9025-e1754f296a0f', a: { "*": 1h, b: '2020-01-01T00:00:00Z', c: '1h' }, "a.b": d'2020-01-01T00:00:00Z', b: b"0102", big: 9223372036854775807, gap: [NULL, NONE], half: NULL, inf: -Infinity, list: [d'2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z'] }`
    )
  })
  it("D2 values leave as the database renders them", () => {
    const v = {
      z: 1,
      a: undefined,
      b: [undefined, null],
      c: dec("1.50"),
      d: NaN,
      e: new Duration(5400, 0),
      f: id("a:⟨x y⟩"),
      g: new Bytes(Uint8Array.of(104)),
      h: makeSet([2, 1]),
      i: new Float(2),
      k: 9007199254740993n
    }
    expect(stringify(v)).toBe(
      '{"b":[null,null],"c":"1.5","d":null,"e":"1h30m","f":"a:`x y`","g":[104],"h":[1,2],"i":2.0,"k":9007199254740993,"z":1}'
    )
    expect(JSON.stringify(toJson({ b: 1, a: undefined, A: [undefined] }))).toBe('{"A":[null],"b":1}')
    expect(toJson(undefined)).toBeNull()
  })
})

describe("stored text", () => {
  it("encode is reversible and deterministic, and no user object is mistaken for a tag", () => {
    for (const v of [
      ...all,
      { $: ["d", "2020-01-01T00:00:00Z"] },
      { a: { $: 1, b: dec("1") } },
      '{"$":[',
      JSON.parse('{"__proto__":{"a":1}}') as Value
    ])
      expect(identical(decode(encode(v)), v), encode(v)).toBe(true)
    expect(encode({ b: 1, a: 2 })).toBe(encode({ a: 2, b: 1 }))
  })
})

describe("dates and durations", () => {
  it.each([
    ["1h30m", "1h30m"],
    ["400d", "1y5w"],
    ["36h", "1d12h"],
    ["1500ms", "1s500ms"],
    ["1us", "1µs"],
    ["0ns", "0ns"],
    ["1w2d3h4m5s6ms7us8ns", "1w2d3h4m5s6ms7µs8ns"]
  ])("duration %s prints as %s", (text, out) => {
    expect(Durations.render(Durations.parse(text)!)).toBe(out)
  })
  it("datetimes survive text in both directions, leap years and negative epochs included", () => {
    for (const text of [
      "0001-01-01T00:00:00Z",
      "1969-12-31T23:59:59.999999999Z",
      "2000-02-29T12:00:00.100Z",
      "9999-12-31T23:59:59.000001Z"
    ])
      expect(Datetimes.render(Datetimes.parse(text)!)).toBe(text)
    for (const text of [
      "2021-02-29T00:00:00Z",
      "2020-13-01T00:00:00Z",
      "2020-01-01",
      "2020-01-01T25:00:00Z",
      "2020-01-01 00:00:00Z",
      "2020-01-01t00:00:00Z",
      "2020-01-01T00:00:00z"
    ])
      expect(Datetimes.parse(text)).toBeUndefined()
  })
})
