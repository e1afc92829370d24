/**
 * Twenty thousand pairs of a random query and random data, every two choices of how a query is built among them: no
 * disagreement with the real database.
 *
 * Why so: see `oracle.test.ts`, which takes a sample of the same; a found case goes into
 * `test/corpus/regressions.surql`.
 */
import { afterAll, beforeAll, describe, expect } from "vitest"
import { seeded } from "../../../kit/data/random.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import { compareRounds } from "./pairing.ts"

let engines: Engines
beforeAll(async () => {
  engines = await start()
})
afterAll(async () => {
  await engines.close()
})

describe("random queries, all of them", () => {
  seeded(
    "20,000 pairs of query and data answer as the database does",
    "test/core/surql/oracle.campaign.test.ts",
    async (random) => {
      const tally = await compareRounds(random, engines, 70, 3)
      process.stderr.write(`${JSON.stringify({ ...tally, found: tally.found.length })}\n`)
      expect(tally.found.join("\n\n")).toBe("")
      expect(tally.compared).toBeGreaterThan(20_000)
    },
    1_200_000
  )
})
