/**
 * The laws over as many changes as asked for: `SVC_CHANGES=10000000 npm run campaign -- test/core/ivm`.
 *
 * Why apart: the default run is a sample of half a minute; this one runs until it has made its changes, says at the end
 * how many they were, and prints the case it stopped at. Several may run side by side with seeds of their own. Where
 * the database's two evaluators contradict each other it is no judge: such answers are printed at the end, and must be
 * rare.
 */
import { setImmediate as breathe } from "node:timers/promises"
import { expect } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import { lawRun, newTotals } from "./laws.ts"

const wanted = process.env["SVC_CHANGES"] === undefined ? runs(20_000) : Number(process.env["SVC_CHANGES"])

seeded(
  "L1 L2 L3 L5 L6 hold over a campaign of changes",
  "test/core/ivm/laws.campaign.test.ts",
  async (random) => {
    const engines = await start()
    const totals = newTotals()
    const began = Date.now()
    let said = 0
    while (totals.tally.changes < wanted) {
      const wrong = await lawRun(random, engines, totals, { changes: 2_000, quick: true, views: 8 })
      if (wrong !== undefined) expect.fail(wrong)
      if (totals.tally.changes >= said + wanted / 100) {
        said = totals.tally.changes
        process.stderr.write(
          `${said} changes, ${totals.queries} queries, ${totals.compared} compared, ${totals.disputed.length} disputed, ${Math.round((Date.now() - began) / 1000)} s\n`
        )
      }
      await breathe()
    }
    await engines.close()
    for (const text of totals.disputed) process.stderr.write(`disputed between the database's evaluators: ${text}\n`)
    process.stderr.write(
      `${JSON.stringify({ ...totals.tally, queries: totals.queries, compared: totals.compared, disputed: totals.disputed.length, seconds: Math.round((Date.now() - began) / 1000) })}\n`
    )
    expect(totals.tally.changes).toBeGreaterThanOrEqual(wanted)
    expect(totals.disputed.length).toBeLessThanOrEqual(Math.ceil(totals.compared / 2_000))
    expect(totals.tally.deltas).toBeGreaterThan(wanted / 4)
  },
  86_400_000
)
