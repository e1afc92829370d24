/** Maps that keep the entries that were set last. */
import { expect, it } from "vitest"
import { Recent } from "../../src/core/recent.ts"

it("keeps the entries that were set last, and one that is set again as the last of them", () => {
  const recent = new Recent<string, number>(2)
  recent.set("a", 1).set("b", 2).set("a", 3)
  expect([...recent]).toEqual([
    ["b", 2],
    ["a", 3]
  ])
  expect([recent.get("b"), ...recent.set("c", 4).keys()], "a look moves nothing").toEqual([2, "a", "c"])
  expect(recent.delete("a") && [...recent.set("d", 5).keys()]).toEqual(["c", "d"])
})
