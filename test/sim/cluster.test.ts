/**
 * Whole nodes in one process, in virtual time and bad weather: then heal, and require that everything is right (D5,
 * D20, D26, D31).
 *
 * Each seed is a day of its own; the campaign draws new ones.
 */
import { describe, expect, it } from "vitest"
import { campaign, runs, seed, seeded } from "../../kit/data/random.ts"
import { live } from "./cluster.ts"

const days = campaign ? runs(60) : runs(1)
const blows = campaign ? 25 : 8

describe("a cluster of whole nodes", () => {
  seeded(
    `D5 D26 D31 ${days} days of drops, delays, duplicates, partitions and crashes: at rest every SSP equals the replica, every view its plain evaluation, on one SSP`,
    "test/sim/cluster.test.ts",
    async () => {
      const counts = new Map<string, number>()
      for (let day = 0; day < days; day++) {
        const outcome = await live(seed + day, blows).catch((error: unknown) => {
          throw new Error(`day ${seed + day}: ${error instanceof Error ? error.message : String(error)}`)
        })
        for (const [what, n] of outcome.counts) counts.set(what, (counts.get(what) ?? 0) + n)
      }
      for (const what of ["scheduler crashes", "ssp crashes", "partitions", "changes of weather"])
        expect(counts.get(what) ?? 0, what).toBeGreaterThan(0)
      expect(counts.get("acknowledged")).toBeGreaterThan(days * 60)
    },
    1_800_000
  )

  it("the same seed gives the same trace", async () => {
    const [one, two] = [await live(seed + 1000, 3), await live(seed + 1000, 3)]
    expect(one.trace.length).toBeGreaterThan(300)
    expect(two.trace).toEqual(one.trace)
  })
})
