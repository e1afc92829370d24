/**
 * Random queries over random data: our answer against the real database's. A sample; twenty thousand pairs are in
 * `oracle.campaign.test.ts`.
 *
 * Why so: where both evaluators of the database agree, that is the law; where they differ, we must answer like one of
 * them. Failures must be worded as both word them. What was found stands in `test/corpus/regressions.surql`, which the
 * corpus test replays.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { rng, runs, seed, seeded } from "../../../kit/data/random.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import { rows } from "./differenceRows.ts"
import { compareRounds, exceptions } from "./pairing.ts"
import { allPairs, covering } from "./pairs.ts"

let engines: Engines
beforeAll(async () => {
  engines = await start()
})
afterAll(async () => {
  await engines.close()
})

describe("random queries", () => {
  it("have every two choices of how a query is built", () => {
    const choices = covering(rng(seed))
    const has = (pair: string): boolean =>
      choices.some((c) =>
        pair
          .split(" x ")
          .every(
            (part) =>
              (c as { readonly [axis: string]: string })[part.slice(0, part.indexOf(" "))] ===
              part.slice(part.indexOf(" ") + 1)
          )
      )
    expect(allPairs.filter((pair) => !has(pair))).toEqual([])
    expect(choices.length).toBeLessThan(allPairs.length / 3)
  })

  it("let pass only what stands in the table of differences", () => {
    expect(exceptions.map(({ row }) => row).filter((row) => !rows.includes(row))).toEqual([])
  })

  const rounds = runs(4)
  seeded(
    "every answer is the database's",
    "test/core/surql/oracle.test.ts",
    async (random) => {
      const tally = await compareRounds(random, engines, rounds, 1)
      expect(tally.found.join("\n\n")).toBe("")
      expect(tally.compared).toBeGreaterThan(rounds * 80)
      expect(tally.withRows).toBeGreaterThan(tally.compared / 4)
      expect(tally.failing).toBeGreaterThan(tally.compared / 100)
      expect(tally.failing).toBeLessThan(tally.compared / 2)
    },
    60_000 + rounds * 10_000
  )
})
