/**
 * A whole SSP beside a real database engine behind a real socket: what comes out of it, and what becomes of it when the
 * database fails (D20, D1, D18, D23).
 *
 * Everything is asked of the node as its users ask it, and of the engine as its users write to it.
 */

import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { afterAll, expect, onTestFinished, test } from "vitest"
import { registration } from "../../kit/data/registration.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { differing, type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { RpcServer, type ServerOptions } from "../../kit/processes/surreal/RpcServer.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { Datetime, Decimal, Range, RecordId } from "../../src/core/surql/values/value.ts"
import { layerSqlite } from "../../src/host/sqlite/Sqlite.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))
let folders = 0
const fresh = (): string => join(folder, `node-${folders++}`)

const serve = async (options: ServerOptions = {}): Promise<RpcServer> => {
  const server = await RpcServer.start(options)
  onTestFinished(() => server.kill())
  return server
}

const start = async (port: number, dataDir: string, env?: { readonly [name: string]: string }): Promise<NodeBeside> => {
  const node = await startBeside(port, dataDir, env)
  onTestFinished(() => node.stop())
  return node
}

const register = async (node: NodeBeside, id: string, surql: string): Promise<void> =>
  expect(await node.ask("POST", "/view/register", registration(id, surql, { format: "tree" }))).toMatchObject({
    status: 200
  })
const rowsOf = async (node: NodeBeside, id: string): Promise<unknown> =>
  ((await node.ask("GET", `/view/${id}`)).json as { readonly result_data?: unknown }).result_data
const change = (op: string, id: string, record: object) => ({ table: id.split(":")[0], op, id, record })
const rowOf = ({ records }: NodeBeside, text: string) => records.get(Ids.parse(text) as RecordId)

const schema = `DEFINE TABLE item SCHEMAFULL; DEFINE FIELD at ON item TYPE option<datetime>; DEFINE FIELD boss ON item TYPE option<record<person>>; DEFINE FIELD price ON item TYPE option<decimal>;
  DEFINE FIELD note ON item TYPE option<string>; DEFINE FIELD n ON item TYPE option<int>;`

test("D20 D1 the records of the database are in memory before the node is ready, with the types it has there and, at the door, those it declares", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `${schema} CREATE item:1 SET at = d'2024-01-01T00:00:00Z', boss = person:b, price = 1.50dec, note = '2024-01-01T00:00:00Z', n = 1; CREATE free:1 SET note = '2024-01-01T00:00:00Z', f = 2.0f`
  )
  server.slow(100)
  const node = await start(server.port, fresh())
  expect([
    (await node.ask("GET", "/health")).status,
    (await node.ask("POST", "/ingest", change("CREATE", "item:2", {}))).status,
    (await node.ask("POST", "/view/register", registration("v", "SELECT * FROM item"))).status
  ]).toEqual([503, 503, 503])
  server.slow(0)
  await node.ready()
  expect([...(await differing(node, "item")), ...(await differing(node, "free"))]).toEqual([])
  const sent = { at: "2025-01-01T00:00:00Z", boss: "person:c", price: "2.50", note: "2025-01-01T00:00:00Z", n: 2 }
  expect((await node.ask("POST", "/ingest", change("CREATE", "item:2", sent))).status).toBe(200)
  const { at, boss, note, price } = rowOf(node, "item:2")?.doc ?? {}
  expect([at instanceof Datetime, boss instanceof RecordId, price instanceof Decimal, note]).toEqual([
    true,
    true,
    true,
    sent.note
  ])
})

test("D20 records with any id and value come and go exactly", async () => {
  const server = await serve()
  const keys = [
    "'quoted'",
    "u'0190b5c3-1111-7000-8000-000000000000'",
    "['a', 1, { b: [NONE, 2] }]",
    "{ a: 'x', b: 1 }",
    "-7",
    "9223372036854775807",
    "'⟩`back\\\\slash'",
    "'7'",
    "'😀 ünïcode'",
    "'; REMOVE TABLE odd; --'",
    "['a']",
    "[]"
  ]
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE odd; ${keys.map((key, n) => `CREATE type::record('odd', ${key}) SET n = ${n}`).join("; ")}`
  )
  const data = fresh()
  const node = await start(server.port, data)
  await node.ready()
  expect(node.records.tableNames()).toEqual(["odd"])
  expect([await differing(node, "odd"), await node.writes()]).toEqual([[], keys.length])
  await node.stop()
  await server.ask("n", "d", "UPDATE odd SET n += 100 WHERE n % 2 = 0; DELETE odd WHERE n % 2 = 1")
  const again = await start(server.port, data)
  await again.ready()
  expect([await differing(again, "odd"), await again.writes()]).toEqual([[], 2 * keys.length])
})

test("D20 a restart writes only what changed meanwhile, views and versions go on; a damaged store of its own is rebuilt (D23)", async () => {
  const server = await serve({ path: `surrealkv://${join(folder, "restart")}` })
  await server.ask("n", "d", "DEFINE TABLE item; FOR $n IN 0..3000 { CREATE type::record('item', $n) SET n = $n }")
  const data = fresh()
  const node = await start(server.port, data)
  await node.ready()
  await register(node, "few", "SELECT id, n FROM item WHERE n < 3")
  expect(await node.writes()).toBe(3_000)
  await node.stop()
  await server.ask(
    "n",
    "d",
    "UPDATE item:1 SET n = 2; DELETE item:2; CREATE item:new SET n = -1; UPDATE item:2999 SET n = 0 - n"
  )
  const again = await start(server.port, data)
  await again.ready()
  expect(await again.writes()).toBe(3_004)
  expect([await rowsOf(again, "few"), rowOf(again, "item:1")?.version, rowOf(again, "item:0")?.version]).toEqual([
    [
      { id: "item:0", n: 0 },
      { id: "item:1", n: 2 },
      { id: "item:2999", n: -2999 },
      { id: "item:new", n: -1 }
    ],
    2,
    1
  ])
  await until(
    "edges of the changed view",
    async () => (await server.ask<[ReadonlyArray<unknown>]>("n", "d", "SELECT * FROM _svc_list_ref"))[0].length === 4
  )
  const highest = Math.max(
    ...[...again.records.rowsBetween("item", new Range(undefined, undefined))].map(({ version }) => version)
  )
  await again.stop()
  writeFileSync(join(data, "upstream.db"), "no database ".repeat(500))
  const rebuilt = await start(server.port, data)
  await rebuilt.ready()
  expect([
    await differing(rebuilt, "item"),
    ((await rowsOf(rebuilt, "few")) as ReadonlyArray<unknown>).length,
    rowOf(rebuilt, "item:0")?.version
  ]).toEqual([[], 4, highest + 1])
})

test("D23 a store of its own whose damage shows only on reading is set aside too, and rebuilt with versions above those clients know", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item; FOR $n IN 0..5 { CREATE type::record('item', $n) SET n = $n }")
  const data = fresh()
  const node = await start(server.port, data)
  await node.ready()
  await register(node, "all", "SELECT id FROM item")
  for (const n of [10, 20, 30]) await node.ask("POST", "/ingest", change("UPDATE", "item:1", { n }))
  await server.ask("n", "d", "UPDATE item:1 SET n = 30")
  await until("the edge", async () =>
    (
      await server.ask<[ReadonlyArray<{ readonly version: number }>]>("n", "d", "SELECT version FROM _svc_list_ref")
    )[0].some(({ version }) => version === 4)
  )
  await node.stop()
  const spoil = Effect.flatMap(SqlClient, (sql) => sql`UPDATE record SET content = '{spoiled' WHERE id = 'item:3'`)
  await Effect.runPromise(Effect.provide(spoil, layerSqlite(join(data, "upstream.db"))))
  const rebuilt = await start(server.port, data)
  await rebuilt.ready()
  expect([await differing(rebuilt, "item"), existsSync(join(data, "upstream.db.damaged"))]).toEqual([[], true])
  expect(((await rowsOf(rebuilt, "all")) as ReadonlyArray<unknown>).length).toBe(5)
  expect(
    [...rebuilt.records.rowsBetween("item", new Range(undefined, undefined))].map(({ version }) => version)
  ).toEqual([5, 5, 5, 5, 5])
})

test("D16 a reset takes views, edges and registrations away, never records of the database: those come back", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item; CREATE item:1 SET n = 1")
  const node = await start(server.port, fresh())
  await node.ready()
  await register(node, "all", "SELECT id FROM item")
  const rows = async (): Promise<ReadonlyArray<number>> =>
    (
      await server.ask<ReadonlyArray<ReadonlyArray<unknown>>>(
        "n",
        "d",
        "SELECT * FROM _svc_query; SELECT * FROM _svc_list_ref; SELECT * FROM item"
      )
    ).map((found) => found.length)
  await until("its edge", async () => (await rows())[1] === 1)
  expect(await node.ask("POST", "/reset")).toMatchObject({ status: 200 })
  await node.ready()
  expect([await rows(), await differing(node, "item"), (await node.ask("GET", "/view/all")).status]).toEqual([
    [0, 0, 1],
    [],
    404
  ])
  await register(node, "all", "SELECT id FROM item")
  expect(await rowsOf(node, "all")).toEqual([{ id: "item:1" }])
})

test("D21 a registration put into the database or taken out of it by hand is followed", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item; CREATE item:1 SET n = 1")
  const node = await start(server.port, fresh())
  await node.ready()
  await register(node, "mine", "SELECT id FROM item")
  await server.ask(
    "n",
    "d",
    `DELETE _svc_query:mine; CREATE _svc_query:theirs SET view = 'incantation:theirs', surql = 'SELECT n FROM item', clientId = 'c', ttl = 1h, params = 'null', format = 'tree', lastActiveAt = time::now()`
  )
  expect((await node.ask("POST", "/reconcile")).status).toBe(200)
  expect([(await node.ask("GET", "/view/mine")).status, await rowsOf(node, "theirs")]).toEqual([404, [{ n: 1 }]])
  await until(
    "its edge",
    async () =>
      (
        await server.ask<[ReadonlyArray<unknown>]>("n", "d", "SELECT * FROM _svc_list_ref WHERE in = _svc_query:theirs")
      )[0].length === 1
  )
})

test("D18 a database that is not there yet is waited for, and a database that dies half-way is read on from there", async () => {
  const first = await ServerProcess.start({ path: `surrealkv://${join(folder, "half")}` })
  onTestFinished(() => first.kill())
  const writer = await rootClient(first)
  await writer.query("DEFINE TABLE item; FOR $n IN 0..6500 { CREATE type::record('item', $n) SET n = $n }")
  await writer.close()
  await first.kill()
  const node = await start(first.port, fresh())
  expect((await node.ask("GET", "/health")).json).toEqual({ status: "bootstrapping" })
  const second = await first.restart()
  onTestFinished(() => second.kill())
  await second.slow(30)
  await until("some of the records", async () => (await node.writes()) >= 2_000)
  await second.kill()
  expect((await node.ask("POST", "/ingest", change("CREATE", "item:x", {}))).json).toMatchObject({
    code: "SSP_NOT_READY"
  })
  expect(await node.writes()).toBeLessThan(6_500)
  const third = await second.restart()
  onTestFinished(() => third.kill())
  await node.ready()
  expect([await differing(node, "item"), await node.writes()]).toEqual([[], 6_500])
})

test("D20 a server that stands still, and a server that ends sessions, are used again; changes are taken meanwhile", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item; FOR $n IN 0..50 { CREATE type::record('item', $n) SET n = $n }")
  const node = await start(server.port, fresh())
  await node.ready()
  await server.ask("n", "d", "UPDATE item:1 SET n = 100; DELETE item:2")
  server.expireSessions()
  server.pause()
  const reconciling = node.ask("POST", "/reconcile")
  expect((await node.ask("POST", "/ingest", change("CREATE", "mine:1", { n: 1 }))).status).toBe(200)
  await new Promise((done) => setTimeout(done, 300))
  server.resume()
  const { json, status } = await reconciling
  expect([status, (json as { readonly repaired: ReadonlyArray<string> }).repaired.toSorted()]).toEqual([
    200,
    ["item:1", "item:2", "mine:1"]
  ])
  expect(await differing(node, "item")).toEqual([])
})

test("D20 writes that were announced and rolled back are repaired, a change that was lost is found, and views show it", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item; CREATE item:1 SET n = 1; CREATE item:2 SET n = 2")
  const node = await start(server.port, fresh(), { SVC_RECONCILE_INTERVAL_SECS: "1" })
  await node.ready()
  await register(node, "all", "SELECT id, n FROM item")
  for (const announced of [
    change("UPDATE", "item:1", { n: "rolled back" }),
    change("CREATE", "item:3", { n: "rolled back" }),
    change("DELETE", "item:2", {})
  ])
    expect((await node.ask("POST", "/ingest", announced)).status).toBe(200)
  await server.ask("n", "d", "CREATE item:4 SET n = 'lost'")
  const right = [
    { id: "item:1", n: 1 },
    { id: "item:2", n: 2 },
    { id: "item:4", n: "lost" }
  ]
  await until("repaired by itself", async () => JSON.stringify(await rowsOf(node, "all")) === JSON.stringify(right))
  expect(["item:1", "item:2"].map((id) => rowOf(node, id)?.version)).toEqual([3, 2])
})
