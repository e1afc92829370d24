/**
 * What is kept of a backend's answer, and how much of it all together.
 *
 * Values alone: where results come from and who shows them is tested with the runner and the scheduler.
 */
import { expect, test } from "vitest"
import { bytesToRead, RecentResults, resultOf } from "../../../src/core/job/result.ts"

test("D36 an object is kept as it is, other JSON under `value`, a text that is no JSON not at all", () => {
  expect(
    ['{"a":[1]}', " [1] ", "5", "-1", '"x"', "null", "true", "", "ok", "<html>", '{"a":', "nothing"].map((body) =>
      resultOf(body, 100)
    )
  ).toEqual([
    { a: [1] },
    { value: [1] },
    { value: 5 },
    { value: -1 },
    { value: "x" },
    { value: null },
    { value: true },
    undefined,
    undefined,
    undefined,
    undefined,
    undefined
  ])
})

test("D36 a result longer than the limit, in bytes, is left out and says so; 0 keeps none", () => {
  const longest = JSON.stringify({ a: "é".repeat(10) })
  const bytes = new TextEncoder().encode(longest).length
  expect([resultOf(longest, bytes), resultOf(longest, bytes - 1), resultOf(longest, 0)]).toEqual([
    { a: "é".repeat(10) },
    { left_out: `the answer is longer than ${bytes - 1} bytes` },
    undefined
  ])
  // As it comes from a body that was read no further.
  expect(resultOf(longest.slice(0, 20), 19)).toEqual({ left_out: "the answer is longer than 19 bytes" })
  expect([bytesToRead(19), bytesToRead(0)]).toEqual([20, 0])
})

test("D36 the last results are kept, as many as fit by number and by length; none takes the place of one", () => {
  const few = new RecentResults(3)
  expect(["a", "b", "c", "a", "d"].map((job) => few.put(job, { of: job }))).toEqual([[], [], [], [], ["b"]])
  expect([few.size, few.get("b"), few.get("a"), few.get("d")]).toEqual([3, undefined, { of: "a" }, { of: "d" }])
  few.put("a", undefined)
  expect([few.size, few.get("a")]).toEqual([2, undefined])
  const short = new RecentResults(1_000, 100)
  for (let n = 0; n < 50; n++) short.put(`job:${n}`, { text: "x".repeat(20) })
  expect([short.size, short.get("job:49")]).toEqual([2, { text: "x".repeat(20) }])
  expect(short.put("job:50", { text: "x".repeat(200) })).toEqual(["job:48", "job:49", "job:50"])
  expect([short.size, short.get("job:50")]).toEqual([0, undefined])
})
