/**
 * The change table beside a real engine (D44): what a view shows is what the database had, whatever happens in between.
 *
 * The table is the only way in here: the periodic compare is off, and nobody posts to `/ingest`.
 */
import { expect, onTestFinished, test } from "vitest"
import { type Asked, install, left, taken } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { besides } from "../../kit/processes/besides.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { FeedPort } from "../../kit/processes/feedPort.ts"
import { differing, type NodeBeside } from "../../kit/processes/nodeBeside.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { persistently, rootClient } from "../../kit/processes/surreal/sdk.ts"
import { Range } from "../../src/core/surql/values/value.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const { fresh, serve, start } = besides()

const register = async (node: NodeBeside, id: string, surql: string): Promise<void> =>
  expect(await node.ask("POST", "/view/register", registration(id, surql, { format: "tree" }))).toMatchObject({
    status: 200
  })
const rowsOf = async (node: NodeBeside, id: string): Promise<ReadonlyArray<{ readonly [field: string]: unknown }>> =>
  (
    (await node.ask("GET", `/view/${id}`)).json as {
      readonly result_data: ReadonlyArray<{ readonly [field: string]: unknown }>
    }
  ).result_data

test("D44 D1 every write arrives with its types, computed fields and every kind of id; a write that is rolled back never does", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; DEFINE FIELD twice ON item COMPUTED n * 2; DEFINE TABLE likes TYPE RELATION; DEFINE TABLE \`odd \\\`name'\`; ${install("item", "likes", "odd `name'")}`
  )
  const node = await start(server.port)
  await node.ready()
  const keys = [
    "'quoted'",
    "u'0190b5c3-1111-7000-8000-000000000000'",
    "['a', 1, { b: [NONE, 2] }]",
    "{ a: 'x', b: 1 }",
    "-7",
    "9223372036854775807",
    "'⟩`back\\\\slash'",
    "'7'",
    "7",
    "'😀 ünïcode'",
    "[]"
  ]
  await server.ask(
    "n",
    "d",
    `${keys.map((key, n) => `CREATE type::record('odd \`name\\'', ${key}) SET n = ${n}`).join("; ")};
    CREATE item:1 SET n = 9007199254740993, price = 1.50dec, at = d'2024-01-01T00:00:00.123456789Z', took = 1h, f = 2.0f, tags = {'a', 'b'}, who = odd:1, none = [NONE];
    CREATE item:2 SET n = 1; RELATE item:1->likes:x->item:2 SET n = 1; UPDATE item:2 SET n = 2`
  )
  for (const failing of [
    "BEGIN; UPDATE item:2 SET n = 77; CREATE item:3 SET n = 1; THROW 'no'; COMMIT",
    "BEGIN; DELETE item:1; CANCEL"
  ])
    await server.ask("n", "d", failing).catch(() => undefined)
  await taken(server)
  const wrong = async () =>
    (await Promise.all(["item", "likes", "odd `name'"].map((table) => differing(node, table)))).flat()
  expect([await wrong(), node.records.tableNames().length, node.upstream.changes !== undefined]).toEqual([[], 3, true])
  const writes = await node.writes()
  await server.ask("n", "d", "DELETE item:1; DELETE `odd \\`name'` WHERE n % 2 = 0; UPSERT item:2 SET n = 2")
  await taken(server)
  // item:1, its edge, six of the odd ones; what was written as it was is nothing new.
  expect([await wrong(), (await node.writes()) - writes]).toEqual([[], 8])
})

const sorted = (state: Iterable<readonly [string, unknown]>): string =>
  JSON.stringify([...state].toSorted(([a], [b]) => (a < b ? -1 : 1)))

test("D44 a record that the database fails to read holds up no other, and is taken when it can be read; the compare that a setup asks for runs", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; DEFINE TABLE part; DEFINE FIELD sum ON item COMPUTED part.n + 1; CREATE part:1 SET n = 1; ${install("item", "part")}`
  )
  const node = await start(server.port)
  await node.ready()
  await taken(server)
  await server
    .ask(
      "n",
      "d",
      // At once: between the two the node could read item:1, and nothing would be left.
      "BEGIN; CREATE item:1 SET part = part:1; UPDATE part:1 SET n = NONE; COMMIT; CREATE item:2 SET n = 1, part = part:2; CREATE part:2 SET n = 2"
    )
    .catch(() => undefined)
  await server.ask("n", "d", "CREATE part:3 SET n = 3")
  await until(
    "the others",
    async () =>
      node.records.rowsBetween("part", new Range(undefined, undefined)) !== undefined &&
      [...node.records.rowsBetween("part", new Range(undefined, undefined))].some(({ id }) => id.text === "part:3")
  )
  await until("only the row of the one that cannot be read", async () => (await left(server)) === 1)
  // Written while no event stood there: a compare finds it.
  await server.ask(
    "n",
    "d",
    `REMOVE EVENT ${Changes.changeEvent} ON part; CREATE part:4 SET n = 4; UPDATE part:1 SET n = 1`
  )
  await server.ask("n", "d", Changes.askCompare)
  await until("compared", async () =>
    [...node.records.rowsBetween("part", new Range(undefined, undefined))].some(({ id }) => id.text === "part:4")
  )
})

test("D44 D21 moving between the change table and events that post, while somebody writes, loses nothing; a registration that is deleted there is followed", async () => {
  const port = await FeedPort.start()
  onTestFinished(() => port.close())
  const server = await RpcServer.start({ path: `surrealkv://${fresh()}`, capabilities: { network_targets: true } })
  onTestFinished(() => server.kill())
  await server.ask("n", "d", `DEFINE TABLE item; ${Schema.script(Schema.sharedDefinitions)}`)
  const node = await start(server.port)
  await node.ready()
  port.behind = node
  await register(node, "all", "SELECT id FROM item")
  const db = await rootClient(server)
  const run = async (query: string): Promise<void> => void (await persistently(async () => db.query(query)))
  let writing = true
  const writer = (async () => {
    for (let i = 0; writing; i++)
      await run(i % 5 === 4 ? `DELETE item:${i % 23}` : `UPSERT item:${i % 23} SET n = ${i}`)
  })()
  for (const mode of ["changes", "sync", "changes", "sync"] as const) {
    await run(
      `BEGIN; ${Schema.script(Feed.feedDefinitions({ url: port.url, secret, tables: ["item"], mode, openToRecordUsers: false }))}COMMIT`
    )
    await new Promise((done) => setTimeout(done, 150))
  }
  await run(
    `BEGIN; ${Schema.script(Feed.feedDefinitions({ url: port.url, secret, tables: ["item"], mode: "changes", openToRecordUsers: false }))}COMMIT`
  )
  writing = false
  await writer
  await taken(server)
  expect(await differing(node, "item")).toEqual([])
  await run("DELETE _svc_query:all")
  await until("the view is gone", async () => (await node.ask("GET", "/view/all")).status === 404)
  await db.close()
})

/** Live queries that stand on the change table. */
const listening = async (server: Asked): Promise<number> =>
  Object.keys(
    (await server.ask<[{ readonly lives: object }]>("n", "d", `INFO FOR TABLE ${Schema.changeTable}`))[0].lives
  ).length

test("D44 a live query stands on the change table at rest, also behind a lost connection, and changes are shown", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const node = await start(server.port)
  await node.ready()
  const all = new Range(undefined, undefined)
  const shows = async (n: number): Promise<void> => {
    await server.ask("n", "d", `UPSERT item:1 SET n = ${n}`)
    await until(`n is ${n}`, () =>
      Promise.resolve([...node.records.rowsBetween("item", all)].some((row) => row.doc["n"] === n))
    )
  }
  const heard = () => until("a live query", async () => (await listening(server)) > 0)
  await heard()
  for (const n of [1, 2, 3]) await shows(n)
  server.cut()
  await heard()
  for (const n of [4, 5, 6]) await shows(n)
  expect(await differing(node, "item")).toEqual([])
})

test("an SSP whose database is gone stops in time, with edges that wait for it", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE item")
  const node = await start(server.port)
  await node.ready()
  await register(node, "all", "SELECT id FROM item")
  await until("the edges are kept", () => Promise.resolve(node.edges.counts().compared === 1))
  await server.kill()
  expect((await node.ask("POST", "/ingest", { table: "item", op: "CREATE", id: "item:1", record: {} })).status).toBe(
    200
  )
  expect(node.edges.counts().waiting).toBe(1)
  await node.stop()
})

test("D44 a database that hangs and cuts its connections under writes loses none of them", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const node = await start(server.port)
  await node.ready()
  await register(node, "all", "SELECT id, n FROM item")
  const written = new Map<string, number>()
  const blows = [() => server.cut(), () => server.pause()]
  for (let round = 1; round <= blows.length; round++) {
    const blow = { at: (round * 7) % 30 }
    for (let i = 0; i < 30; i++) {
      await server.ask("n", "d", `UPSERT item:${i % 20} SET n = ${round * 1_000 + i}`)
      written.set(`item:${i % 20}`, round * 1_000 + i)
      if (i === blow.at) blows[round % blows.length]?.()
    }
    await new Promise((done) => setTimeout(done, 50))
    server.resume()
  }
  await until(
    "everything is shown",
    async () => sorted((await rowsOf(node, "all")).map(({ id, n }) => [String(id), n])) === sorted(written)
  )
  expect(await differing(node, "item")).toEqual([])
})

test("D21 edges that an operator's guard has refused are named in /debug/view, and all there once it is gone and the compare has run", async () => {
  const server = await serve()
  const ask = (query: string): Promise<unknown> => server.ask("n", "d", query)
  await ask(`DEFINE TABLE item; FOR $n IN 0..70 { CREATE type::record('item', $n) SET n = $n }; ${install("item")}`)
  const node = await start(server.port)
  await node.ready()
  const edges = async (): Promise<number> => {
    const [found] = (await ask(`SELECT VALUE id FROM ${Schema.edgeTable}`)) as readonly [ReadonlyArray<unknown>]
    return found.length
  }
  const refusal = async (): Promise<unknown> =>
    ((await node.ask("GET", "/debug/view/all")).json as { readonly edges_refused?: unknown }).edges_refused
  for (const [guard, removal, reason] of [
    [
      `DEFINE FIELD OVERWRITE version ON ${Schema.edgeTable} TYPE int ASSERT $value > 1`,
      `DEFINE FIELD OVERWRITE version ON ${Schema.edgeTable} TYPE int`,
      "version"
    ],
    [
      `DEFINE EVENT guard ON ${Schema.edgeTable} WHEN $event = 'CREATE' THEN { THROW 'guarded' }`,
      `REMOVE EVENT guard ON ${Schema.edgeTable}`,
      "guarded"
    ]
  ] as const) {
    await ask(guard)
    await register(node, "all", "SELECT id FROM item")
    await until("they are refused", async () => JSON.stringify(await refusal())?.includes('"count":70'))
    expect([await refusal(), await edges()]).toEqual([
      { count: 70, edge: expect.stringMatching(/^item:/), reason: expect.stringContaining(reason) },
      0
    ])
    await ask(removal)
    expect((await node.ask("POST", "/reconcile")).status).toBe(200)
    await until("all are there", async () => (await edges()) === 70)
    expect(await refusal()).toBeUndefined()
    await node.ask("POST", "/view/unregister", { id: "all" })
    await until("they are gone", async () => (await edges()) === 0)
  }
})
