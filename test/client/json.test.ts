/**
 * JSON as the client and the dashboard read it (D66): integers beyond 2^53 are text or bigint, as the option says, and nothing else is
 * changed, whatever a string looks like.
 */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { jsonValues, told } from "../../kit/data/jsonValues.ts"
import { campaign, runs } from "../../kit/data/random.ts"
import { jsonWithBigints, jsonWithText, type ReadJson } from "../../src/client/json.ts"
import { shareEqualParts } from "../../src/client/share.ts"
import * as JsonText from "../../src/core/jsonText.ts"
// @ts-expect-error Scripts of the dashboard have no declarations.
import { parse as dashboardJson } from "../../src/dashboard/api.js"

const settings = { numRuns: runs(campaign ? 20_000 : 1_000) }
const withMarks = fc.oneof(
  jsonValues,
  fc.array(fc.oneof(jsonValues, fc.constantFrom("\0", "\0\0", "\0" + "1".repeat(17), "n\0"))),
  fc.dictionary(fc.constantFrom("\0", "\0" + "1".repeat(17), "a"), jsonValues)
)

describe("D66 JSON in the client", () => {
  for (const [name, read, integer] of [
    ["text", jsonWithText, String],
    ["bigint", jsonWithBigints, (n: bigint) => n],
    ["text on the dashboard", dashboardJson, String]
  ] as ReadonlyArray<readonly [string, ReadJson, (n: bigint) => unknown]>)
    it(`is the same but for integers beyond 2^53, which are ${name}`, () => {
      const expected = (value: unknown): unknown => {
        if (typeof value === "bigint") return integer(value)
        if (typeof value !== "object" || value === null) return value
        if (Array.isArray(value)) return value.map(expected)
        return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, expected(inner)]))
      }
      fc.assert(
        fc.property(withMarks, (value) => {
          expect(told(read(JsonText.write(["1".repeat(16), value])))).toBe(told(["1".repeat(16), expected(value)]))
        }),
        settings
      )
    })
  it("shares what is equal, and finds items without an id by their bigints", () => {
    const [one, two] = [{ n: 987654321987654321n }, { n: 987654321987654322n }]
    const shared = shareEqualParts([one, two], [{ ...two }, { ...one }]) as ReadonlyArray<unknown>
    expect([shared[0] === two, shared[1] === one]).toEqual([true, true])
  })
})
