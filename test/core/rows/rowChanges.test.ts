/**
 * Changes by path: applied to the old row they give the new one, whatever both are, and say no more than what changed.
 */
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { applied } from "../../../kit/checks/followRows.ts"
import { runs } from "../../../kit/data/random.ts"
import { changesOf, type Json } from "../../../src/core/rows/rowChanges.ts"

const follow = (before: Json, now: Json): unknown =>
  applied([before], { result_hash: "", patch: [[0, JSON.parse(JSON.stringify(changesOf(before, now)))]] })[0]

const names = FastCheck.constantFrom("id", "a", "b", "__proto__", "constructor", "0")
const json = FastCheck.letrec<{ value: Json }>((tie) => ({
  value: FastCheck.oneof(
    { maxDepth: 4 },
    FastCheck.constantFrom<Json>(null, 0, 1, 2, "a", "b", "", true),
    FastCheck.array(tie("value"), { maxLength: 6 }),
    FastCheck.array(FastCheck.tuple(names, tie("value")), { maxLength: 5 }).map((entries) =>
      Object.fromEntries(entries)
    )
  )
})).value

describe("changes of a row by path", () => {
  it("D50 applied to the old row they give the new one", () => {
    FastCheck.assert(
      FastCheck.property(json, json, (before, now) => {
        expect(follow(before, now)).toEqual(JSON.parse(JSON.stringify(now)))
      }),
      { numRuns: runs(2_000), seed: 42 }
    )
  })
  it("D50 a row that is the same has none", () => {
    FastCheck.assert(
      FastCheck.property(json, (row) => {
        expect(changesOf(row, JSON.parse(JSON.stringify(row)) as Json)).toEqual([])
      }),
      { numRuns: runs(500), seed: 42 }
    )
  })
  const comment = (id: number, text = "hello") => ({ id: `comment:${id}`, text })
  it.each<[what: string, before: Json, now: Json, changes: unknown]>([
    ["a field", { a: 1, b: 2 }, { a: 1, b: 3 }, [[["b"], 3]]],
    ["a field that goes", { a: 1, b: 2 }, { a: 1 }, [[["b"]]]],
    ["a field in a field", { a: { b: { c: 1 } } }, { a: { b: { c: 2 } } }, [[["a", "b", "c"], 2]]],
    ["another kind of value", 1, [1], [[[], [1]]]],
    [
      "a list that takes one in and lets one go: its last three",
      { last: [comment(3), comment(2), comment(1)] },
      { last: [comment(4), comment(3), comment(2)] },
      [
        [["last"], 2, 1, []],
        [["last"], 0, 0, [comment(4)]]
      ]
    ],
    [
      "an item of a list, told apart by its id",
      { last: [comment(3), comment(2)] },
      { last: [comment(3), comment(2, "edited")] },
      [[["last", 1, "text"], "edited"]]
    ],
    ["an item without an id", { tags: ["a", "b", "c"] }, { tags: ["a", "x", "c"] }, [[["tags"], 1, 1, ["x"]]]]
  ])("D50 says %s and no more", (_, before, now, changes) => {
    expect(changesOf(before, now)).toEqual(changes)
    expect(follow(before, now)).toEqual(now)
  })
})
