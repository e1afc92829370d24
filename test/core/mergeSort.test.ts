/** Sorting with pauses: what the runtime's sort gives, and few comparisons between two pauses. */
import { expect, test } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { mergeSort } from "../../src/core/mergeSort.ts"

test("D48 sorts as the runtime does, stably, and pauses after some thousand comparisons", () => {
  for (const count of [0, 1, 2, 511, 512, 513, 5_000, 20_000]) {
    const chance = rng(count)
    const items = Array.from({ length: count }, (_, at) => ({ n: chance.below(1 + count / 3), at }))
    let compared = 0,
      most = 0
    const compare = (a: { n: number }, b: { n: number }): number => (compared++, a.n - b.n)
    const slices = mergeSort([...items], compare)
    for (;;) {
      const before = compared,
        step = slices.next()
      most = Math.max(most, compared - before)
      if (step.done !== true) continue
      expect(step.value).toEqual([...items].sort((a, b) => a.n - b.n))
      break
    }
    expect(most).toBeLessThan(6_000)
  }
})
