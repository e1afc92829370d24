/**
 * The judge of the laws where the database's evaluators contradict each other: what it takes for an answer of theirs,
 * and what not.
 */
import { expect, test } from "vitest"
import { agreeInParts } from "./database.ts"

const planner = "[[{ id: p:2, n: 1, s: 'a' }, { id: p:1, n: 2, s: 'b' }]]"
const older = "[[{ id: p:1, n: 2, s: 'c' }, { id: p:2, n: 1, s: 'd' }]]"

test.each([
  ["[[{ id: p:1, n: 2, s: 'b' }, { id: p:2, n: 1, s: 'd' }]]", true, "the order of one, a field of the other"],
  ["[[{ id: p:2, n: 1, s: 'a' }, { id: p:1, n: 2, s: 'c' }]]", true, "the order of the other"],
  ["[[{ id: p:1, n: 2, s: 'a' }, { id: p:2, n: 1, s: 'd' }]]", false, "a field of another row"],
  ["[[{ id: p:1, n: 1, s: 'b' }, { id: p:2, n: 1, s: 'd' }]]", false, "a value that neither has"],
  ["[[{ id: p:1, n: 2, s: 'b' }]]", false, "a row too few"],
  ["[[{ id: p:1, n: 2, s: 'b' }, { id: p:3, n: 1, s: 'd' }]]", false, "a row that neither has"]
])("L1 beside evaluators that differ, %s is judged %s: %s", (mine, isAnswer, _) => {
  expect(agreeInParts(planner, older, mine)).toBe(isAnswer)
})

test("L1 rows in an order that neither evaluator has are no answer", () => {
  const row = (id: number) => `{ id: p:${id}, n: 1 }`
  const list = (...ids: ReadonlyArray<number>) => `[[${ids.map(row).join(", ")}]]`
  expect(agreeInParts(list(1, 2, 3), list(3, 2, 1), list(2, 1, 3))).toBe(false)
  expect(agreeInParts(list(1, 2, 3), list(3, 2, 1), list(3, 2, 1))).toBe(true)
})
