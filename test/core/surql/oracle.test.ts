/**
 * Random queries over random data: our answer against the real database's.
 *
 * Why so: where both evaluators of the database agree, that is the law; where they differ, we must answer like one of them.
 * Failures must be worded as both word them.
 * `SVC_SEED` replays a run, `SVC_RUNS` multiplies it (the default run is a sample).
 */
import { FastCheck as fc } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fromRecords } from "../../../src/core/surql/memory.ts"
import { agree, ours, records, start } from "./engine.ts"
import type { Engines } from "./engine.ts"
import { data, query, tables } from "./generate.ts"

const seed = Number(process.env["SVC_SEED"] ?? 42)
const runs = 12 * Number(process.env["SVC_RUNS"] ?? 1)
const perRun = 40

let engines: Engines
beforeAll(async () => { engines = await start() })
afterAll(async () => { await engines.close() })

describe("random queries", () => {
  it("every answer is the database's", { timeout: 60_000 + runs * 2_000 }, async () => {
    let compared = 0, rowsSeen = 0, failures = 0, unlike = 0
    const found: Array<string> = []
    for (let run = 0; run < runs && found.length < 20; run++) {
      const [lines] = fc.sample(data, { seed: seed + run, numRuns: 1 })
      const queries = fc.sample(query, { seed: seed + run, numRuns: perRun })
      await engines.load(lines!, tables)
      const source = fromRecords(records(lines!))
      for (const q of queries) {
        const [planner, older] = await engines.ask(q)
        const mine = ours(source, q)
        compared++
        if (mine.startsWith("[") && mine !== "[[]]") rowsSeen++
        if (mine.startsWith("ERR")) failures++
        if (!agree(planner, older)) unlike++
        if (mine.startsWith("ERR") && planner === older ? mine === planner : agree(planner, mine) || agree(older, mine)) continue
        found.push(`SVC_SEED=${seed + run} ${q}\n  planner ${planner}\n  older   ${older}\n  ours    ${mine}\n  data    ${lines!.join("\n          ")}`)
      }
    }
    if (process.env["SVC_RUNS"] !== undefined) process.stderr.write(`${JSON.stringify({ compared, rowsSeen, failures, unlike })}\n`)
    expect(found.join("\n\n")).toBe("")
    expect(compared).toBe(runs * perRun)
    expect(rowsSeen).toBeGreaterThan(compared / 4)
    expect(failures).toBeGreaterThan(compared / 100)
    expect(failures).toBeLessThan(compared / 2)
  })
})
