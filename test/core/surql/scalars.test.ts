/**
 * Functions, operators and casts with generated arguments of every kind: our answers against the real database's. A
 * sample; many times as much is in `scalars.campaign.test.ts`.
 *
 * Why so: where both evaluators of the database agree, that is the law; where they differ, we must answer like one of
 * them. A case that is found goes into `test/corpus/`, which the corpus test replays.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { seeded } from "../../../kit/data/random.ts"
import { rows } from "./differenceRows.ts"
import { Judge } from "./judge.ts"
import { names, signaturesOf } from "./scalarCalls.ts"
import { compareScalars, exceptions, lines, tables, undemanding } from "./scalars.ts"

let judge: Judge
beforeAll(() => {
  judge = new Judge(lines, tables)
})
afterAll(() => judge.close())

describe("scalars", () => {
  it("has a signature of every function", () => {
    expect(names.filter((name) => signaturesOf(name).length === 0)).toEqual([])
    expect(names.length).toBeGreaterThan(330)
  })

  it("lets pass only what stands in the table of differences", () => {
    expect(exceptions.map(({ row }) => row).filter((row) => !rows.includes(row))).toEqual([])
  })

  seeded(
    "every function, operator and cast answers as the database does",
    "test/core/surql/scalars.test.ts",
    async (random) => {
      const tally = await compareScalars(random, judge, 3, 1)
      expect(tally.found.join("\n\n")).toBe("")
      expect(
        [...tally.calls].filter(([name, c]) => c.succeeded < 1 || (c.failed < 1 && !undemanding.has(name)))
      ).toEqual([])
      expect(tally.compared).toBeGreaterThan(1_500)
      expect(judge.fatal).toEqual([])
    },
    120_000
  )
})
