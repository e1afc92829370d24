/**
 * The heap after views have come and gone: flat, with every kind of view (D14, D16, L7).
 *
 * Why besides the counts: closures, paused generators and weak maps are seen here only. A short run; the campaign has
 * 10,000 cycles of each kind.
 */
import { expect, it } from "vitest"
import { growthOf, median } from "./churnGrowth.ts"
import { kinds } from "./kinds.ts"

const cycles = 20

it("L7 D16 memory is flat over views that come and go, of every kind", async () => {
  const grown = await growthOf(cycles, 5)
  expect(grown.map(({ kind }) => kind)).toEqual(kinds.map(({ kind }) => kind))
  // The middle block grows by nothing but a few hundred bytes of V8's own; an instance alone has more than a thousand.
  for (const { growth, kind } of grown)
    expect(median(growth) / cycles, `${kind}, bytes a block: ${growth.join(" ")}`).toBeLessThan(64)
})
