/**
 * Ten thousand transactions with a ledger, eight writers, clients that look and follow (D44): every state shown is one
 * that the database had; and ten thousand rows written at once before clients that read what is announced.
 *
 * The database is a process of its own, so that the writers do not slow the node down. The short form is in
 * `announced.test.ts`.
 */
import { join } from "node:path"
import { afterAll, expect, onTestFinished, test } from "vitest"
import { announced } from "../../kit/checks/announcedRun.ts"
import * as Ledger from "../../kit/checks/ledger.ts"
import { followed } from "../../kit/checks/ledgerRun.ts"
import { askedOver, install, taken } from "../../kit/data/changeTable.ts"
import { rng, runs, seed } from "../../kit/data/random.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { differing, type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

let databases = 0
const beside = async (): Promise<{ readonly node: NodeBeside; readonly server: ServerProcess }> => {
  const server = await ServerProcess.start({ path: `rocksdb://${join(folder, `database-${databases}`)}` })
  onTestFinished(() => server.kill())
  const db = await rootClient(server)
  onTestFinished(() => void db.close())
  await db.query(`${Ledger.tables}; DEFINE TABLE item; ${Ledger.heads}; ${install("account", "item")}`)
  const node = await startBeside(server.port, join(folder, `node-${databases++}`))
  onTestFinished(() => node.stop())
  await node.ready()
  await taken(askedOver(db))
  return { node, server }
}

test("L3 D44 ten thousand transactions over 2 to 20 records by eight writers: no state is shown that the database did not have", async () => {
  const { node, server } = await beside()
  const { conflicts, faults, sightings, size } = await followed(node, server, rng(seed), runs(10_000))
  console.log(`${size} transactions, ${conflicts} conflicts, states seen by client: ${sightings.join(", ")}`)
  expect(faults.slice(0, 5)).toEqual([])
  expect(await differing(node, "account")).toEqual([])
  expect(Math.min(...sightings), "enough was seen").toBeGreaterThan(Math.min(20, runs(100)))
})

test("D44 content is as new as the version announced, with ten thousand rows written at once", async () => {
  const { node, server } = await beside()
  const { counts, faults } = await announced(node, server, 10_000, runs(3))
  console.log(`announced: ${JSON.stringify(counts)}`)
  expect(faults.slice(0, 5)).toEqual([])
  expect(Math.min(...Object.values(counts)), "enough was announced").toBeGreaterThan(20_000)
})
