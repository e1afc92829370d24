/**
 * The laws of the engine over random queries and histories: after every change each view equals a fresh run of its
 * query by the plain evaluator, at the end of each history what the real database answers.
 *
 * Histories have four phases (build up, tear down, edit, edit back), because most faults need a row that comes back.
 * What is held against the engine after each step stands in runCase.ts; a failure prints a case that was cut down.
 */
import { afterAll, beforeAll, expect, test } from "vitest"
import { rounds, seeded } from "../../../kit/data/random.ts"
import { type Engines, start } from "../../../kit/processes/surreal/engines.ts"
import { found } from "./found.ts"
import type { Tag } from "./generateQuery.ts"
import { lawRun, newTotals } from "./laws.ts"
import { runCase } from "./runCase.ts"

let engines: Engines
beforeAll(async () => {
  engines = await start()
})
afterAll(async () => {
  await engines.close()
})

test.each(found)("L1 found before: $what", ({ steps }) => {
  expect(runCase(steps)).toBeUndefined()
})

/** How many queries must have used a feature; each must have had its result changed several times over. */
const wanted: { readonly [tag in Tag]?: number } = {
  links: 12,
  link: 16,
  graph: 12,
  graphIn: 6,
  recursion: 1,
  order: 20,
  desc: 6,
  collate: 6,
  windows: 20,
  start: 6,
  group: 12,
  groupAll: 2,
  aggregate: 12,
  beside: 8,
  split: 3,
  fetch: 4,
  only: 3,
  value: 4,
  omit: 2,
  subquery: 12,
  correlated: 10,
  deep: 4,
  uncorrelated: 8,
  sources: 12,
  several: 3,
  range: 3,
  computed: 1,
  params: 8,
  failing: 3,
  functions: 6,
  filterless: 16,
  sharedShape: 8,
  sharedFilter: 12,
  shadow: 1,
  page: 20
}

seeded(
  "L1 L2 L3 L5 L6 every view equals a fresh run of its query after every change, and the database's answer at the end",
  "test/core/ivm/laws.test.ts",
  async (random) => {
    const totals = newTotals()
    const times = rounds(10)
    for (let run = 0; run < times; run++) {
      const wrong = await lawRun(random, engines, totals)
      if (wrong !== undefined) expect.fail(wrong)
    }
    const { tally } = totals
    const factor = times / 25
    expect(totals.queries).toBeGreaterThanOrEqual(200 * factor)
    expect(tally.checks).toBeGreaterThan(100_000 * factor)
    expect(tally.deltas).toBeGreaterThan(8_000 * factor)
    expect(tally.rows).toBeGreaterThan(4_000 * factor)
    expect(tally.patched).toBeGreaterThan(300 * factor)
    expect(Math.min(tally.additions, tally.updates, tally.removals)).toBeGreaterThan(2_000 * factor)
    expect(tally.failing).toBeGreaterThan(1_000 * factor)
    expect(totals.compared).toBeGreaterThan(80 * factor)
    expect(Math.min(totals.sharing, totals.groupsSharing)).toBeGreaterThan(5 * factor)
    expect(totals.disputed.slice(totals.compared >> 11)).toEqual([])
    const scarce = Object.entries(wanted).filter(([tag, count]) => {
      const seen = totals.seen.get(tag as Tag)
      const least = Math.floor(count * factor)
      return least > 0 && (seen === undefined || Math.min(seen.queries, seen.steps) < least)
    })
    expect(
      scarce.map(([tag, count]) => `${tag}: wanted ${count}, saw ${JSON.stringify(totals.seen.get(tag as Tag))}`),
      "features that were generated too rarely"
    ).toEqual([])
  },
  300_000
)
