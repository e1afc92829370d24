/**
 * Whole nodes in one process, in virtual time and bad weather, whose SSPs follow the tables that their views read (D61):
 * laws L1 to L3 while tables come and go, nodes fall, and connections end at any byte.
 *
 * Each seed is a day of its own; the campaign draws new ones.
 */
import { describe, expect, it } from "vitest"
import { campaign, long, runs, seed, seeded } from "../../kit/data/random.ts"
import { type Feed, live } from "./cluster.ts"

const days = campaign ? runs(40) : runs(1)
const blows = campaign ? 25 : 4

const lived = async (feed: Feed, from: number): Promise<ReadonlyMap<string, number>> => {
  const counts = new Map<string, number>()
  for (let day = 0; day < days; day++) {
    const outcome = await live(from + day, blows, feed).catch((error: unknown) => {
      throw new Error(`day ${from + day}: ${error instanceof Error ? error.message : String(error)}`)
    })
    for (const [what, n] of outcome.counts) counts.set(what, (counts.get(what) ?? 0) + n)
    for (const what of ["joins at position", "is let go"])
      counts.set(what, (counts.get(what) ?? 0) + outcome.logs.filter((line) => line.includes(what)).length)
  }
  return counts
}

describe("a cluster whose SSPs follow tables", () => {
  seeded(
    `D61 ${days} days: at rest every SSP holds of its tables what the replica holds, every view is its plain evaluation`,
    "test/sim/tables.test.ts",
    async () => {
      // The day of a default run has each kind of weather; not every day has.
      const counts = await lived("pull", seed + 69)
      for (const what of ["scheduler crashes", "ssp crashes", "partitions", "views that came", "joins at position"])
        expect(counts.get(what) ?? 0, what).toBeGreaterThan(0)
      expect(counts.get("acknowledged")).toBeGreaterThan(days * 60)
    },
    1_800_000
  )
  if (long)
    seeded(
      `D61 ${days} days beside an SSP that is sent every event`,
      "test/sim/tables.test.ts",
      async () => {
        const counts = await lived("mixed", seed + 150)
        expect(counts.get("joins at position")).toBeGreaterThan(0)
      },
      1_800_000
    )
  it("D61 the tables of days without a blow are let go when no view reads them, and joined again", async () => {
    const { counts, logs } = await live(seed + 250, 0, "pull")
    expect(counts.get("views that came") ?? 0).toBeGreaterThanOrEqual(0)
    expect(logs.filter((line) => line.includes("joins at position")).length).toBeGreaterThan(0)
  })
})
