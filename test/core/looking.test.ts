/**
 * What is kept for those who look: latencies in buckets, and pages of lists that nothing keeps sorted.
 *
 * The page is held to plain sorting on random lists, because it finds its items in one pass and drops the rest on the
 * way.
 */
import { describe, expect, it } from "vitest"
import { seeded } from "../../kit/data/random.ts"
import { containsText, page } from "../../src/core/listing.ts"
import { boundsMs, Latency } from "../../src/core/telemetry/latency.ts"

describe("latencies", () => {
  it("count in the bucket whose bound is the first not below them", () => {
    const latency = new Latency()
    for (const ms of [0, 0.1, 0.11, 1, 10_000, 10_001, Number.POSITIVE_INFINITY]) latency.observe(ms)
    const at = (bound: number): number | undefined => latency.snapshot().counts[boundsMs.indexOf(bound)]
    expect([at(0.1), at(0.15), at(1), at(10_000), latency.snapshot().counts.at(-1)]).toEqual([2, 1, 1, 1, 2])
  })
  it("of one moment do not change with the next", () => {
    const latency = new Latency()
    const { counts } = latency.snapshot()
    latency.observe(1)
    expect(counts.every((n) => n === 0)).toBe(true)
  })
})

describe("pages", () => {
  seeded("of any list are what sorting and cutting gives", "test/core/looking.test.ts", async (random) => {
    for (let round = 0; round < 300; round++) {
      const items = new Map(
        Array.from({ length: random.below(40) }, () => [`k${random.below(60)}`, random.below(4)] as const)
      )
      const limit = 1 + random.below(6)
      const wanted = (item: number): boolean => item !== 0
      const sorted = [...items].filter(([, item]) => wanted(item)).sort(([a], [b]) => (a < b ? -1 : 1))
      const after = random.chance(0.5) ? undefined : `k${random.below(60)}`
      const rest = sorted.filter(([key]) => after === undefined || key > after)
      const expected = {
        items: rest.slice(0, limit).map(([, item]) => item),
        next: rest.length > limit ? rest[limit - 1]?.[0] : undefined
      }
      expect(page(items, { after, limit, wanted })).toEqual(expected)
    }
  })
  it("search for a part in any letter case, and nothing finds all", () => {
    expect([
      containsText("AB", "xaby"),
      containsText("ab", "x", "y"),
      containsText(undefined, ""),
      containsText("", "x")
    ]).toEqual([true, false, true, true])
  })
})
