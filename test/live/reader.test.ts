/**
 * The lease on a database (D44): one service at a time follows it, another stands by; a restart takes up what the
 * change table held.
 *
 * On a real engine, because what two transactions do to one row is the database's business.
 */
import { cpSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { install, left, taken } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { besides } from "../../kit/processes/besides.ts"
import { Door, schedulerEnv, sleep } from "../../kit/processes/Door.ts"
import { differing, type NodeBeside } from "../../kit/processes/nodeBeside.ts"
import type { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const { fresh, serve: serveEmpty, start: startNode } = besides()

const serve = async (): Promise<RpcServer> => {
  const server = await serveEmpty()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  return server
}

const start = (server: RpcServer, dataDir: string, name = "me"): Promise<NodeBeside> =>
  startNode(server.port, dataDir, { SSP_ID: name })

const isReady = async (node: NodeBeside): Promise<boolean> => (await node.ask("GET", "/health")).status === 200
const holder = async (server: RpcServer): Promise<string | undefined> =>
  (
    await server.ask<[ReadonlyArray<{ readonly name: string }>]>("n", "d", `SELECT name FROM ${Schema.readerTable}`)
  )[0][0]?.name

/** Written, and the word of it taken away: only a compare finds it. */
const unannounced = async (server: RpcServer, id: string): Promise<void> =>
  void (await server.ask("n", "d", `BEGIN; CREATE ${id} SET n = 1; DELETE ${Schema.changeTable}; COMMIT`))

test("D44 a second service beside a database stands by, leaves its rows alone, and follows it once the first has stopped", async () => {
  const server = await serve()
  const first = await start(server, fresh(), "first")
  await first.ready()
  const second = await start(server, fresh(), "second")
  await server.ask("n", "d", "CREATE item:1 SET n = 1")
  await taken(server)
  expect([await isReady(second), await holder(server), await differing(first, "item")]).toEqual([false, "first", []])
  await first.stop()
  await server.ask("n", "d", "CREATE item:2 SET n = 1")
  await second.ready()
  await taken(server)
  expect([await holder(server), await differing(second, "item")]).toEqual(["second", []])
})

test("D44 D57 a database at rest gets at most five requests a second: reads of the change table, looks at definitions, the lease", async () => {
  const server = await serve()
  const node = await start(server, fresh())
  await node.ready()
  expect((await node.ask("POST", "/view/register", registration("all", "SELECT * FROM item"))).status).toBe(200)
  await taken(server)
  // What a start writes is written by then; pauses have grown to the longest.
  await sleep(1_500)
  const asked = (): number => [...server.calls.values()].reduce((sum, count) => sum + count, 0)
  const before = asked(),
    begun = performance.now()
  await sleep(4_000)
  const seconds = (performance.now() - begun) / 1_000
  expect((asked() - before) / seconds).toBeLessThanOrEqual(5)
  expect(asked() - before, "it has looked").toBeGreaterThan(1)
})

test("D22 beside a database that does not exist a service ends with the fault, and has created nothing", async () => {
  const server = await serve()
  const node = await startNode(server.port, fresh(), { STORE_DB: "misspelt" })
  expect(await node.fault()).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/misspelt.*correct STORE_DB/)
  })
  const [{ databases }] = await server.ask<[{ readonly databases: object }]>("n", "d", "INFO FOR NS")
  expect(Object.keys(databases)).toEqual(["d"])
})

test("D22 a scheduler beside a database that does not exist ends with 2, names the setting, and has created nothing", async () => {
  const server = await serve()
  const scheduler = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    env: {
      ...schedulerEnv(fresh()),
      SVC_SCHEDULER_DB_URL: `127.0.0.1:${server.port}`,
      SVC_SCHEDULER_DB_NAMESPACE: "n",
      SVC_SCHEDULER_DB_DATABASE: "misspelt",
      SVC_SCHEDULER_DB_USERNAME: "root",
      SVC_SCHEDULER_DB_PASSWORD: "root"
    }
  })
  onTestFinished(() => scheduler.close())
  expect(await scheduler.exited).toEqual({ code: 2, signal: null })
  expect(scheduler.logs).toMatch(/misspelt.*correct SVC_SCHEDULER_DB_DATABASE/)
  const [{ databases }] = await server.ask<[{ readonly databases: object }]>("n", "d", "INFO FOR NS")
  expect(Object.keys(databases)).toEqual(["d"])
})

test("D44 a lease that has not been renewed lapses by the database's time", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `CREATE ${Schema.readerTable}:changes SET token = 'its', name = 'gone', until = time::now() + 1h`
  )
  const node = await start(server, fresh())
  expect([await isReady(node), await holder(server)]).toEqual([false, "gone"])
  await server.ask("n", "d", `UPDATE ${Schema.readerTable} SET until = time::now()`)
  await node.ready()
  expect(await holder(server)).toBe("me")
})

test("D44 a service that has lost the database to another deletes nothing any more and ends with 4", async () => {
  const server = await serve()
  const node = await start(server, fresh())
  await node.ready()
  await taken(server)
  await server.ask("n", "d", `UPDATE ${Schema.readerTable} SET token = 'another'; CREATE item:1 SET n = 1`)
  expect(await node.fault()).toMatchObject({ exitCode: 4 })
  expect(await left(server)).toBe(1)
})

test("D44 D20 a restart takes up what the change table held, without a compare; one whose table could miss something compares", async () => {
  const server = await serve()
  const dataDir = fresh()
  const first = await start(server, dataDir)
  await first.ready()
  await server.ask("n", "d", "CREATE item:1 SET n = 1; CREATE item:2 SET n = 1")
  await taken(server)
  await first.stop()
  const backup = fresh()
  cpSync(dataDir, backup, { recursive: true })
  await unannounced(server, "item:unannounced")
  await server.ask("n", "d", "UPDATE item:1 SET n = 2; DELETE item:2; CREATE item:3 SET n = 1")
  const second = await start(server, dataDir)
  await second.ready()
  expect(await differing(second, "item")).toEqual(["item:unannounced"])
  await server.ask("n", "d", "CREATE item:4 SET n = 1")
  await taken(server)
  await second.stop()
  // An older copy of the folder lacks what was taken since.
  const restored = await start(server, backup)
  await restored.ready()
  expect(await differing(restored, "item")).toEqual([])
  await restored.stop()
  // A table whose writes nobody announces.
  await server.ask("n", "d", `REMOVE EVENT ${Changes.changeEvent} ON item; CREATE item:5 SET n = 1`)
  const third = await start(server, backup)
  await third.ready()
  expect(await differing(third, "item")).toEqual([])
})

test("D76 a table that is removed and made again with its event while no service runs is compared at the start, and not again", async () => {
  const server = await serve()
  const dataDir = fresh()
  const restarted = async (): Promise<NodeBeside> => {
    const node = await start(server, dataDir)
    await node.ready()
    return node
  }
  const first = await restarted()
  await server.ask("n", "d", "CREATE item:1 SET n = 1; CREATE item:2 SET n = 2")
  await taken(server)
  await first.stop()
  const again = "REMOVE TABLE item; DEFINE TABLE item; CREATE item:2 SET n = 20; CREATE item:3 SET n = 3"
  await server.ask("n", "d", `BEGIN; ${again}; ${Changes.eventStatement("item")}; COMMIT`)
  const second = await restarted()
  expect(await differing(second, "item")).toEqual([])
  await second.stop()
  await unannounced(server, "item:unannounced")
  expect(await differing(await restarted(), "item")).toEqual(["item:unannounced"])
})
