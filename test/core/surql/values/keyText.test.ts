/**
 * Keys as text order as keys do, and no two keys have the same text.
 *
 * Random keys of every kind, from few building blocks so that neighbours, prefixes and equal numbers of different kinds
 * are common.
 */
import { FastCheck as fc } from "effect"
import { expect, test } from "vitest"
import { runs, seed } from "../../../../kit/data/random.ts"
import { isKey, keyText, textRangeOf, wellFormed } from "../../../../src/core/surql/values/keyText.ts"
import { decimal, WideDecimal } from "../../../../src/core/surql/values/number.ts"
import { compareKeys, compareRecords, compareStrings } from "../../../../src/core/surql/values/order.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import {
  Bytes,
  Datetime,
  Duration,
  Float,
  type Obj,
  type RecordKey,
  SetValue,
  Uuid,
  type Value
} from "../../../../src/core/surql/values/value.ts"

const int = fc.oneof(
  fc.integer({ min: -12, max: 12 }),
  fc.constantFrom(100, 1000, 10, 20, 19, 99, -100, 9007199254740991, -9007199254740991, 123456),
  fc.bigInt({ min: -9223372036854775808n, max: -9007199254740993n }),
  fc.bigInt({ min: 9007199254740993n, max: 9223372036854775807n })
)
const unit = fc.constantFrom(
  "a",
  "b",
  "\u0000",
  "\u0001",
  "\u0002",
  "\ud7ff",
  "\ud800",
  "\udbff",
  "\udc00",
  "\udfff",
  "\ue000",
  "😀",
  "\u{103ff}",
  "\u{10ffff}",
  "é",
  "\uffff",
  "1",
  "!"
)
const text = fc.oneof(fc.string({ maxLength: 3, unit }), fc.string({ maxLength: 2 }))
const uuid = fc
  .constantFrom(
    "018a6680-bef9-701b-9025-e1754f296a0f",
    "018a6680-bef9-701b-9025-e1754f296a10",
    "f18a6680-bef9-701b-9025-e1754f296a0f"
  )
  .map((t) => new Uuid(t))

const number: fc.Arbitrary<Value> = fc.oneof(
  int,
  fc.double({ noDefaultInfinity: false }).filter((n) => !Number.isSafeInteger(n)),
  fc.constantFrom(0.1, 0.25, 1e300, -1e300, 5e-324, NaN, Infinity, -Infinity, -0, 1e21, 1.5, -1.5),
  fc.integer({ min: -3, max: 12 }).map((n) => new Float(n)),
  fc
    .constantFrom(
      "1",
      "0",
      "0.1",
      "1.50",
      "-1.5",
      "79228162514264337593543950335",
      "0.0000000000000000000000000001",
      "12"
    )
    .map((n) => decimal(new WideDecimal(n))!)
)

const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, depthIdentifier: "key" },
    { weight: 2, arbitrary: fc.constantFrom<Value>(undefined, null, true, false) },
    { weight: 4, arbitrary: number },
    { weight: 3, arbitrary: text as fc.Arbitrary<Value> },
    { weight: 1, arbitrary: uuid as fc.Arbitrary<Value> },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.integer({ min: -2, max: 12 }), fc.constantFrom(0, 1, 999_999_999))
        .map(([s, n]): Value => new Datetime(s, n))
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.integer({ min: 0, max: 12 }), fc.constantFrom(0, 1))
        .map(([s, n]): Value => new Duration(s, n))
    },
    {
      weight: 1,
      arbitrary: fc
        .array(fc.constantFrom(0, 1, 17, 255), { maxLength: 2 })
        .map((bytes): Value => new Bytes(Uint8Array.from(bytes)))
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom("t", "t\u0001", "u"), fc.oneof(int, text))
        .map(([table, key]): Value => Ids.make(table, key))
    },
    { weight: 2, arbitrary: fc.array(tie("value"), { maxLength: 2 }) as fc.Arbitrary<Value> },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 2 }).map((list): Value => new SetValue(list)) },
    { weight: 1, arbitrary: fc.dictionary(text, tie("value"), { maxKeys: 2 }) as fc.Arbitrary<Value> }
  )
}))

const key: fc.Arbitrary<RecordKey> = fc.oneof(
  int,
  text,
  uuid,
  fc.array(value, { maxLength: 3 }),
  fc.dictionary(text, value, { maxKeys: 2 }) as fc.Arbitrary<Obj>
)

const utf8 = new TextEncoder()

/** As a store compares them. */
const byBytes = (a: string, b: string): number => Buffer.compare(utf8.encode(a), utf8.encode(b))

test("keys as text order as keys do, by code point and by bytes; the texts of two keys differ when the keys do", () => {
  let equal = 0
  fc.assert(
    fc.property(key, key, (a, b) => {
      const wanted = Math.sign(compareKeys(a, b))
      const places = Math.sign(compareStrings(textRangeOf(a).first, textRangeOf(b).first))
      expect(places).toBe(wanted)
      const found = Math.sign(byBytes(keyText(a), keyText(b)))
      expect(found).toBe(Math.sign(compareStrings(keyText(a), keyText(b))))
      if (wanted !== 0) expect(found).toBe(wanted)
      else equal++
      const [idA, idB] = [Ids.make("t", a), Ids.make("t", b)]
      expect(found === 0).toBe(idA.text === idB.text)
      expect(compareRecords(idA, idB) === 0).toBe(idA.text === idB.text)
      // Between its two places lies a key with all that are equal to it, and no other.
      expect(byBytes(textRangeOf(a).first, keyText(b)) <= 0).toBe(wanted <= 0)
      expect(byBytes(keyText(b), textRangeOf(a).last) <= 0).toBe(wanted >= 0)
      expect(keyText(a)).not.toContain("\u0000")
      expect(isKey(a as Value)).toBe(true)
    }),
    { numRuns: runs(2_500), seed }
  )
  expect(equal).toBeGreaterThan(20)
})

test("a text is kept in its order and told from every other, half surrogate pairs too", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(Buffer.from(wellFormed(a)).toString()).toBe(wellFormed(a))
      expect(Math.sign(byBytes(wellFormed(a), wellFormed(b)))).toBe(Math.sign(compareStrings(a, b)))
    }),
    { numRuns: runs(2_000), seed }
  )
})
