/**
 * The change table through kills of the database's process (D44): apart from the rest because each takes seconds.
 */

import { join } from "node:path"
import type { Surreal } from "surrealdb"
import { afterAll, onTestFinished, test } from "vitest"
import { runs } from "../../kit/data/random.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { differing, startBeside } from "../../kit/processes/nodeBeside.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

test("D44 a database that is killed under writes loses none of them", async () => {
  let server = await ServerProcess.start({ path: `surrealkv://${join(folder, "killed")}` })
  onTestFinished(() => server.kill())
  const admin = await rootClient(server)
  await admin.query(
    `DEFINE TABLE item; ${Schema.script([...Schema.sharedDefinitions, Changes.changeTableDefinition, Changes.events(["item"])])}`
  )
  await admin.close()
  const node = await startBeside(server.port, join(folder, "node"))
  onTestFinished(() => node.stop())
  await node.ready()
  for (let round = 1; round <= runs(4); round++) {
    let writing = true
    const write = async (db: Surreal, writer: number): Promise<void> => {
      for (let i = 0; writing; i++)
        await db
          .query(i % 7 === 6 ? "DELETE type::record('item', $id)" : "UPSERT type::record('item', $id) SET n = $n", {
            id: (i * 8 + writer) % 300,
            n: round * 100_000 + i
          })
          .catch(() => void (writing = false))
    }
    const dbs = await Promise.all(Array.from({ length: 8 }, () => rootClient(server)))
    const writers = dbs.map(write)
    await new Promise((done) => setTimeout(done, 1_000))
    await server.kill()
    writing = false
    // What is in flight when the server dies is never answered.
    await Promise.race([Promise.allSettled(writers), new Promise((done) => setTimeout(done, 1_000))])
    for (const db of dbs) void db.close().catch(() => undefined)
    server = await server.restart()
  }
  await until("memory is what the database has", async () => (await differing(node, "item")).length === 0)
}, 600_000)
