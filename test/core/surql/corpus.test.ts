/**
 * The corpus: our answers against the recorded ones, and the recorded ones against the real engine.
 *
 * Why so: the files are the specification of the language; if the engine under test ever answers otherwise, the file is
 * stale and says so, and if we do, we are wrong. `scripts/corpus.ts` records the answers anew.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readCorpus, tablesOf } from "../../../kit/data/corpusFile.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { agree, ours, records } from "./engine.ts"

let engines: Engines
beforeAll(async () => {
  engines = await start()
})
afterAll(async () => {
  await engines.close()
})

const files = readCorpus()

describe("corpus", () => {
  it("is large enough to mean something", () => {
    expect(files.reduce((n, f) => n + f.cases.length, 0)).toBeGreaterThan(1000)
  })

  it.each(files.map((f) => [f.name, f] as const))(
    "%s: the recorded answers are the engine's",
    { timeout: 60_000 },
    async (_, file) => {
      await engines.load(file.data, tablesOf(file))
      const asked: Array<(typeof file.cases)[number]> = []
      for (const c of file.cases) {
        const [planner, older] = await engines.ask(c.query)
        asked.push({ ...c, planner, older })
      }
      expect(asked).toEqual(file.cases)
    }
  )

  it.each(files.map((f) => [f.name, f] as const))("%s: failures are worded as the engine words them", (_, file) => {
    const source = fromRecords(records(file.data))
    const wrong: Array<string> = []
    for (const c of file.cases) {
      const mine = ours(source, c.query)
      if (mine.startsWith("ERR") && c.planner?.startsWith("ERR") === true && mine !== c.planner && mine !== c.older)
        wrong.push(`${c.query}\n  engine ${c.planner}\n  ours   ${mine}`)
    }
    expect(wrong.join("\n")).toBe("")
  })

  it.each(files.map((f) => [f.name, f] as const))("%s: our answers are the recorded ones", (_, file) => {
    const source = fromRecords(records(file.data))
    const wrong: Array<string> = []
    for (const c of file.cases) {
      const mine = ours(source, c.query)
      const right = agree(c.planner ?? "", mine) || agree(c.older ?? "", mine)
      if (right === (c.differs === undefined)) continue
      wrong.push(
        right
          ? `${c.query}: said to differ, does not`
          : `${c.query}\n  planner ${c.planner}\n  older   ${c.older}\n  ours    ${mine}`
      )
    }
    expect(wrong.join("\n")).toBe("")
  })
})
