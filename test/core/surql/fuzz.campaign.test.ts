/**
 * 100,000 mutated query texts: no crash, no hang over 100 ms, nothing accepted that the real database's parser refuses.
 *
 * Why so: see `fuzz.test.ts`, which takes a sample of the same; a found text goes into `test/corpus/refused.txt`.
 */
import { afterAll, beforeAll, describe, expect } from "vitest"
import { seeded } from "../../../kit/data/random.ts"
import { fuzz } from "./fuzzing.ts"
import type { Parses } from "./mutate.ts"
import { startParser } from "./mutate.ts"

let parses: Parses
beforeAll(async () => {
  parses = await startParser()
})
afterAll(async () => {
  await parses.close()
})

describe("mutated texts, all of them", () => {
  seeded(
    "100,000 texts never crash or hang, and what is accepted the database accepts",
    "test/core/surql/fuzz.campaign.test.ts",
    async (random) => {
      const { accepted, slowest, gaps } = await fuzz(random, 100_000, parses)
      expect(gaps.join("\n")).toBe("")
      expect(slowest[0], slowest[1]).toBeLessThan(100)
      expect(accepted).toBeGreaterThan(2_000)
    },
    900_000
  )
})
