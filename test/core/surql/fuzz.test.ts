/**
 * Mutated query texts: no crash, no hang, and what we accept the real database's parser accepts too. A sample; all of
 * it is in `fuzz.campaign.test.ts`.
 *
 * Why so: the parser meets whatever users type, and a text we take for a query must be one. What was ever found stands
 * in `test/corpus/refused.txt` and is tried first.
 */

import { readFileSync } from "node:fs"
import { Either } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { folder } from "../../../kit/data/corpusFile.ts"
import { runs, seeded } from "../../../kit/data/random.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { fuzz } from "./fuzzing.ts"
import type { Parses } from "./mutate.ts"
import { keywordTexts, startParser } from "./mutate.ts"

let parses: Parses
beforeAll(async () => {
  parses = await startParser()
})
afterAll(async () => {
  await parses.close()
})

const found = readFileSync(new URL("refused.txt", folder), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("-- "))

describe("texts that were once accepted by mistake", () => {
  it("are refused here, as the database refuses them", async () => {
    expect(found.filter((text) => Either.isRight(parseStatements(text)))).toEqual([])
    expect((await parses.refused(found)).length).toBe(found.length)
    expect(found.length).toBeGreaterThan(10)
  })
})

describe("keywords as names", () => {
  it("are taken only where the database takes them", async () => {
    const accepted = keywordTexts().filter((text) => Either.isRight(parseStatements(text)))
    expect(await parses.refused(accepted)).toEqual([])
    expect(accepted.length).toBeGreaterThan(1000)
  })
})

describe("mutated texts", () => {
  const count = runs(6_000)
  seeded(
    "never crash or hang, and what is accepted the database accepts",
    "test/core/surql/fuzz.test.ts",
    async (random) => {
      const { accepted, slowest, gaps } = await fuzz(random, count, parses)
      expect(gaps.join("\n")).toBe("")
      expect(slowest[0], slowest[1]).toBeLessThan(100)
      expect(accepted).toBeGreaterThan(count / 50)
    },
    60_000 + count * 5
  )
})
