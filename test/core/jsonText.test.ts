/**
 * JSON text with integers of 64 bits (D66): what is read is what was written, and whatever holds no such number is read
 * and written as JavaScript does.
 */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { jsonValues, least, most, told } from "../../kit/data/jsonValues.ts"
import { campaign, runs } from "../../kit/data/random.ts"
import * as JsonText from "../../src/core/jsonText.ts"

const spaced = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|[,:[\]{}]/g, (token) => (token.length > 1 ? token : ` ${token}\n\t`))

const settings = { numRuns: runs(campaign ? 20_000 : 1_000) }

describe("D66 JSON text", () => {
  it("comes back as it was, however it is spaced", () => {
    fc.assert(
      fc.property(jsonValues, (value) => {
        const text = JsonText.write(value)
        expect(told(JsonText.parse(text))).toBe(told(value))
        expect(told(JsonText.parse(spaced(text)))).toBe(told(value))
        expect(JsonText.write(JsonText.parse(text))).toBe(text)
      }),
      settings
    )
  })
  it("is read as JavaScript reads it but for the integers, and refused where JavaScript refuses it", () => {
    const rounded = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (_, inner: unknown) => (typeof inner === "bigint" ? Number(inner) : inner)))
    fc.assert(
      fc.property(
        jsonValues,
        fc.nat(),
        fc.constantFrom("", "0", "-", ",", "]", "}", '"', "e5", ".5", " 1"),
        (value, at, put) => {
          const text = JsonText.write(value)
          const place = at % (text.length + 1)
          const broken = text.slice(0, place) + put + text.slice(place)
          let expected: unknown
          try {
            expected = JSON.parse(broken)
          } catch {
            return void expect(() => JsonText.parse(broken)).toThrow(SyntaxError)
          }
          try {
            const read = JsonText.parse(broken)
            expect(rounded(read)).toEqual(JSON.parse(JSON.stringify(expected)))
          } catch (error) {
            if (!(error instanceof JsonText.NumberRefused)) throw error
          }
        }
      ),
      settings
    )
  })
  for (const [text, is] of [
    ["9007199254740992", 9007199254740992n],
    ["9007199254740991", 9007199254740991],
    ["-9007199254740993", -9007199254740993n],
    ["9223372036854775807", most],
    ["-9223372036854775808", least],
    // Floats: with a point or an exponent, or as JavaScript writes one.
    ["9007199254740993.0", 9007199254740992],
    ["1e16", 1e16],
    ["9223372036854775808", 2 ** 63],
    ["9223372036854776000", 2 ** 63],
    ["100000000000000000000", 1e20],
    ["[-0, -0.0, 0e5, 1e-400]", [0, 0, 0, 0]],
    ['{"a":987654321987654321,"a":1}', { a: 1 }],
    ['{"a":1,"a":987654321987654321}', { a: 987654321987654321n }],
    ['"987654321987654321"', "987654321987654321"]
  ] as const)
    it(`reads ${text}`, () => expect(told(JsonText.parse(text))).toBe(told(is)))
  it("keeps a key `__proto__` as a key, beside an integer too", () => {
    const read = JsonText.parse('{"__proto__":{"x":987654321987654321}}') as object
    expect([Object.keys(read), Object.getPrototypeOf(read)]).toEqual([["__proto__"], Object.prototype])
    expect(JsonText.write(read)).toBe('{"__proto__":{"x":987654321987654321}}')
  })
  for (const [text, path, reason] of [
    ["1e400", "", "is 1e400, which neither a 64-bit integer nor a float can hold"],
    ['[{"a":1},{"record":{"n":[0,-1e999]}}]', "[1].record.n[1]", "is -1e999, which"],
    ['{"n":9223372036854775809}', "n", "is 9223372036854775809, which"],
    ['{"n":-9223372036854775809}', "n", "is -9223372036854775809, which"],
    [`{"n":${"9".repeat(400)}}`, "n", `is ${"9".repeat(40)}… (400 characters), which`]
  ] as const)
    it(`refuses ${text.slice(0, 60)} and says where`, () => {
      let error: unknown
      try {
        JsonText.parse(text)
      } catch (caught) {
        error = caught
      }
      expect(error).toBeInstanceOf(JsonText.NumberRefused)
      expect(error).toMatchObject({ path, reason: expect.stringContaining(reason) })
    })
  it("writes what JavaScript leaves out as JavaScript does, beside an integer too", () => {
    const value = { n: most, f: undefined, list: [undefined, NaN, Infinity, () => 1], at: new Date(0), big: 5n }
    expect(JsonText.write(value)).toBe(
      '{"n":9223372036854775807,"list":[null,null,null,null],"at":"1970-01-01T00:00:00.000Z","big":5}'
    )
  })
})
