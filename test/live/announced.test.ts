/**
 * What clients of a database on disk are shown while others write (D44): only what was committed, transactions whole,
 * and no version before the content it stands for.
 *
 * One database and one node for all of it; the periodic compare is off. The long form is `ledger.campaign.test.ts`.
 */
import { join } from "node:path"
import type { Surreal } from "surrealdb"
import { afterAll, beforeAll, expect, test } from "vitest"
import { announced } from "../../kit/checks/announcedRun.ts"
import * as Ledger from "../../kit/checks/ledger.ts"
import { followed } from "../../kit/checks/ledgerRun.ts"
import { install, taken } from "../../kit/data/changeTable.ts"
import { rng, runs, seed } from "../../kit/data/random.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { differing, type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"

const folder = temporaryFolder()
let server: RpcServer
let node: NodeBeside
let db: Surreal
beforeAll(async () => {
  // SurrealKV lets two transactions commit that have both written one record (3.0.2), which a ledger shows as lost.
  server = await RpcServer.start({ path: `rocksdb://${join(folder, "database")}` })
  await server.ask("n", "d", `${Ledger.tables}; DEFINE TABLE item; ${Ledger.heads}; ${install("account", "item")}`)
  node = await startBeside(server.port, join(folder, "node"))
  await node.ready()
  // The compare that the setup asks for reads page by page, so it is over before the first transaction.
  await taken(server)
  db = await rootClient(server)
})
afterAll(async () => {
  await db?.close()
  await node?.stop()
  await server?.kill()
  removeFolder(folder)
})

test("D44 clients on LIVE, on the edges and on the stream read, at every announcement, content as new as the version: long transactions, bulk writes, roll-backs, conflicts, deletions", async () => {
  const rows = 400
  const { counts, faults } = await announced(node, server, rows, 1)
  expect(faults.slice(0, 5)).toEqual([])
  // Each record comes, changes once with the others, and goes; polling may miss what is between two looks.
  expect(Math.min(counts.live, counts.stream, counts.poll)).toBeGreaterThanOrEqual(2 * rows)
})

test("L3 D44 every state that views and streams show is one that the database had: transactions over 2 to 20 records, some taken back, eight writers", async () => {
  const { faults, sightings, size } = await followed(node, server, rng(seed), runs(100))
  expect(faults.slice(0, 5)).toEqual([])
  expect(await differing(node, "account")).toEqual([])
  expect(Math.min(size, ...sightings), "enough was seen").toBeGreaterThan(3)
})
