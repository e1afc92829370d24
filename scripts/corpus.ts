/**
 * Records the real engine's answers into `test/corpus/*.surql`: `npx vite-node scripts/corpus.ts`.
 *
 * Why so: expectations come from the database, never from us; after adding queries to a file, run this and read the
 * diff.
 */
import { writeFileSync } from "node:fs"
import { folder, printFile, readCorpus, tablesOf } from "../kit/data/corpusFile.ts"
import { start } from "../kit/processes/surreal/engines.ts"

const engines = await start()
for (const file of readCorpus()) {
  await engines.load(file.data, tablesOf(file))
  const cases = []
  for (const c of file.cases) {
    const [planner, older] = await engines.ask(c.query)
    cases.push({ ...c, planner, older })
  }
  writeFileSync(new URL(file.name, folder), printFile({ ...file, cases }))
}
await engines.close()
