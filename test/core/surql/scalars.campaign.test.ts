/**
 * Each function a hundred times and more, operators and casts three times as often: no difference that is not in the
 * table.
 *
 * Why so: see `scalars.test.ts`, which takes a sample of the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { Judge } from "./judge.ts"
import { compareScalars, lines, tables, undemanding } from "./scalars.ts"

let judge: Judge
beforeAll(() => {
  judge = new Judge(lines, tables)
})
afterAll(() => judge.close())

describe("scalars, many of them", () => {
  it("an expression that ends the engine is found, and those beside it are answered", async () => {
    const other = new Judge(lines, tables)
    const answers = await other.ask(["1 + 1", "math::fixed(1.5, 70000)", "2 + 2"])
    expect(answers).toEqual([["[2]", "[2]"], undefined, ["[4]", "[4]"]])
    expect(other.fatal).toEqual(["math::fixed(1.5, 70000)"])
    await other.close()
  })

  seeded(
    "every function, operator and cast answers as the database does",
    "test/core/surql/scalars.campaign.test.ts",
    async (random) => {
      const tally = await compareScalars(random, judge, runs(100), 20)
      process.stderr.write(
        `${JSON.stringify({ compared: tally.compared, found: tally.found.length, passed: Object.fromEntries(tally.passed), fatal: judge.fatal })}\n`
      )
      expect(tally.found.slice(0, 200).join("\n\n")).toBe("")
      expect(
        [...tally.calls].filter(([name, c]) => c.succeeded < 20 || (c.failed < 20 && !undemanding.has(name)))
      ).toEqual([])
      expect(tally.compared).toBeGreaterThan(runs(100) * 300)
    },
    1_800_000
  )
})
