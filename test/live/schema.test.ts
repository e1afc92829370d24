/**
 * What a database defines while a node follows it (D57): tables that come and go, fields of other types.
 *
 * The periodic compare is off, so that what a definition changes is found by the look at definitions alone.
 */
import { Effect } from "effect"
import { expect, onTestFinished, test } from "vitest"
import { install, waits } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { besides } from "../../kit/processes/besides.ts"
import { until } from "../../kit/processes/Door.ts"
import { differing, type NodeBeside } from "../../kit/processes/nodeBeside.ts"
import type { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { Duration } from "../../src/core/surql/values/value.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"

/** Waits until a service has noted that these are the tables. */
const noted = (server: RpcServer, tables: ReadonlyArray<string>): Promise<unknown> =>
  until(`${tables.join(", ")} are noted`, async () => {
    const [seen] = await server.ask<[ReadonlyArray<unknown>]>("n", "d", "SELECT VALUE tables FROM _svc_reader")
    return JSON.stringify(seen) === JSON.stringify([tables])
  })

const { fresh, serve, start: startNode } = besides()

const start = async (server: RpcServer, env: { readonly [name: string]: string } = {}): Promise<NodeBeside> => {
  const node = await startNode(server.port, fresh(), { SVC_SCHEMA_INTERVAL_MS: "100", ...env })
  await node.ready()
  return node
}

const register = async (node: NodeBeside, id: string, surql: string) => {
  const { json, status } = await node.ask("POST", "/view/register", registration(id, surql, { format: "tree" }))
  expect({ status, json }).toMatchObject({ status: 200 })
  return json as { readonly warnings?: ReadonlyArray<string> }
}

const rows = async (node: NodeBeside, id: string): Promise<unknown> =>
  ((await node.ask("GET", `/view/${id}`)).json as { readonly result_data: unknown }).result_data

const shows = (node: NodeBeside, id: string, expected: unknown): Promise<unknown> =>
  until(
    `${id} shows ${JSON.stringify(expected)}`,
    async () => JSON.stringify(await rows(node, id)) === JSON.stringify(expected)
  )

const events = async (server: RpcServer, table: string): Promise<ReadonlyArray<string>> =>
  Object.keys((await server.ask<[{ readonly events: object }]>("n", "d", `INFO FOR TABLE \`${table}\``))[0].events)

test("D57 a table that is made gets its event and its views follow it; one that is removed empties its views", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; CREATE item:1 SET n = 1; ${install("item")}`)
  const node = await start(server)
  await register(node, "items", "SELECT VALUE n FROM item")
  await register(node, "later", "SELECT VALUE n FROM `select`")
  await server.ask("n", "d", "DEFINE TABLE `select`; CREATE `select`:1 SET n = 1; CREATE `select`:2 SET n = 2;")
  await shows(node, "later", [1, 2])
  expect(await events(server, "select")).toEqual(["svc_change"])
  await server.ask("n", "d", "UPDATE `select`:1 SET n = 5")
  await shows(node, "later", [5, 2])
  await until(
    "a registration says nothing of its event",
    async () => (await register(node, "again", "SELECT VALUE n FROM `select`")).warnings === undefined
  )
  await server.ask("n", "d", "REMOVE TABLE item")
  await shows(node, "items", [])
  expect([await differing(node, "select"), await rows(node, "later")]).toEqual([[], [5, 2]])
})

test("D57 a table that is made while no service follows the database gets its event from the next; one that was left out is left out", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; DEFINE TABLE left; ${install("item")}`)
  const first = await start(server)
  await noted(server, ["item", "left"])
  await first.stop()
  await server.ask("n", "d", "DEFINE TABLE made; CREATE made:1 SET n = 1")
  const node = await start(server)
  await until("the new table has its event", async () => (await events(server, "made")).length === 1)
  expect([await events(server, "made"), await events(server, "left")]).toEqual([["svc_change"], []])
  await register(node, "made", "SELECT VALUE n FROM made")
  await server.ask("n", "d", "UPDATE made:1 SET n = 2")
  await shows(node, "made", [2])
})

/** Every state that a stream of these views has shown, by view: the keys of its rows. */
const states = async (node: NodeBeside, view: string): Promise<ReadonlyArray<number>> => {
  const stream = await node.follow(view)
  const sizes = stream.sizes()
  await stream.atLeast(1)
  onTestFinished(() => stream.close())
  return sizes
}

test("D76 tables that one transaction makes and fills are shown as one step each, however many rows they have", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const node = await start(server, { SVC_CHANGES_PER_READ: "300" })
  const seen: Array<ReadonlyArray<number>> = []
  for (const table of ["made", "other", "large"]) {
    await register(node, table, `SELECT id, n FROM ${table}`)
    seen.push(await states(node, table))
  }
  const fill = (table: string, count: number): string =>
    `DEFINE TABLE ${table}; FOR $n IN 0..${count} { CREATE type::record('${table}', $n) SET n = $n };`
  await server.ask("n", "d", `BEGIN; ${fill("made", 210)} ${fill("other", 90)} COMMIT`)
  await until("both are shown", () => seen[0]!.at(-1) === 210 && seen[1]!.at(-1) === 90)
  expect(seen.slice(0, 2)).toEqual([[210], [90]])
  await server.ask("n", "d", "DEFINE TABLE copy AS SELECT n FROM item")
  await register(node, "copy", "SELECT id, n FROM copy")
  const copies = await states(node, "copy")
  await server.ask("n", "d", "INSERT INTO item (SELECT n FROM made) RETURN NONE")
  await until("what is computed of them is shown", () => copies.at(-1) === 210)
  expect(copies).toEqual([210])
  // More than one step takes comes in stretches, and no second look holds them up.
  await server.ask("n", "d", `BEGIN; ${fill("large", 750)} COMMIT`)
  await until("all of it is shown", () => seen[2]!.at(-1) === 750)
  expect(await differing(node, "large")).toEqual([])
})

test("D76 a table that is removed and made again between two looks shows the new records alone, as one step, and goes on", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; FOR $n IN 0..40 { CREATE type::record('item', $n) SET n = $n }; ${install("item")}`
  )
  const node = await start(server)
  await register(node, "items", "SELECT VALUE n FROM item")
  const again = "REMOVE TABLE item; DEFINE TABLE item; CREATE item:3 SET n = 30; CREATE item:50 SET n = 50;"
  for (const [made, how] of [
    ["", "without its event"],
    [Changes.eventStatement("item"), "with it"]
  ] as const) {
    await server.ask("n", "d", "UPSERT item:7 SET n = 7")
    await until(`seven is there, ${how}`, async () => JSON.stringify(await rows(node, "items")).includes("7"))
    await server.ask("n", "d", `BEGIN; ${again} ${made}; COMMIT`)
    await shows(node, "items", [30, 50])
    await until("it has its event", async () => (await events(server, "item")).length === 1)
    await server.ask("n", "d", "UPDATE item:3 SET n = 31")
    await shows(node, "items", [31, 50])
  }
  expect(await differing(node, "item")).toEqual([])
})

test("D76 what a transaction that began before a table had its event commits later is shown, without the compare of everything", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const before = await start(server)
  await noted(server, ["item"])
  await before.stop()
  const db = await rootClient(server)
  onTestFinished(async () => void (await db.close()))
  await db.query("DEFINE TABLE made; CREATE made:1 SET n = 1")
  const open = await db.beginTransaction()
  await open.query("CREATE made:2 SET n = 2; UPDATE made:1 SET n = 10")
  const node = await start(server)
  await register(node, "made", "SELECT VALUE n FROM made")
  await until("the table has its event", async () => (await events(server, "made")).length === 1)
  await shows(node, "made", [1])
  await open.commit()
  expect(await waits(server)).toBe(false)
  await shows(node, "made", [10, 2])
})

test("D57 a field that is declared anew types what is posted, and a computed one shows at once", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; CREATE item:1 SET n = 2; ${install("item")}`)
  const node = await start(server)
  await register(node, "items", "SELECT VALUE twice FROM item")
  await server.ask("n", "d", "DEFINE FIELD twice ON item COMPUTED n * 2")
  await shows(node, "items", [4])
  await server.ask(
    "n",
    "d",
    "DEFINE FIELD OVERWRITE twice ON item COMPUTED n * 3; DEFINE FIELD wait ON item TYPE option<duration>"
  )
  await shows(node, "items", [6])
  const posted = { table: "item", op: "CREATE", id: "item:9", record: { wait: "1h" } }
  expect(await node.ask("POST", "/ingest", posted)).toMatchObject({ status: 200 })
  expect(node.records.get(Ids.make("item", 9))?.doc["wait"]).toBeInstanceOf(Duration)
})

test("D57 tables without an event are named: where the registration answers, and in /debug/view", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const node = await start(server, { SVC_DEFINE_EVENTS: "off" })
  await server.ask("n", "d", "DEFINE TABLE quiet; CREATE quiet:1 SET n = 1; DEFINE TABLE copy AS SELECT * FROM item")
  await register(node, "quiet", "SELECT VALUE n FROM quiet")
  await shows(node, "quiet", [1])
  const { warnings } = await register(node, "quiet", "SELECT VALUE n FROM quiet")
  expect(warnings).toEqual([expect.stringMatching(/^table quiet has no event .* the compare/)])
  expect((await node.ask("GET", "/debug/view/quiet")).json).toMatchObject({ warnings })
  expect((await register(node, "copy", "SELECT * FROM copy")).warnings).toEqual([
    expect.stringMatching(/^table copy is defined AS SELECT/)
  ])
  expect(await register(node, "item", "SELECT * FROM item")).not.toHaveProperty("warnings")
  expect((await node.ask("GET", "/overview")).json).toMatchObject({
    warnings: [expect.stringMatching(/^table copy is defined/), expect.stringMatching(/^table quiet has no event/)]
  })
  expect(await events(server, "quiet")).toEqual([])
})

test("D59 views of tables AS SELECT follow the tables that those are computed from", async () => {
  const server = await serve()
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; DEFINE TABLE sums AS SELECT count() AS c, g FROM item GROUP BY g; DEFINE TABLE high AS SELECT n FROM item WHERE n > 5; CREATE item:1 SET n = 1, g = 'a'; CREATE item:2 SET n = 7, g = 'b'; ${install("item")}`
  )
  const node = await start(server)
  const { warnings } = await register(node, "sums", "SELECT g, c FROM sums")
  expect(warnings).toEqual([expect.stringMatching(/^table sums is defined AS SELECT/)])
  await register(node, "high", "SELECT VALUE n FROM high")
  await shows(node, "sums", [
    { c: 1, g: "a" },
    { c: 1, g: "b" }
  ])
  await server.ask("n", "d", "CREATE item:3 SET n = 9, g = 'a'; UPDATE item:1 SET n = 6")
  await shows(node, "sums", [
    { c: 2, g: "a" },
    { c: 1, g: "b" }
  ])
  await shows(node, "high", [6, 7, 9])
  await server.ask("n", "d", "DELETE item:2")
  await shows(node, "sums", [{ c: 2, g: "a" }])
  await shows(node, "high", [6, 9])
  await server.ask("n", "d", "DEFINE TABLE later AS SELECT count() AS c FROM item GROUP ALL")
  await register(node, "later", "SELECT VALUE c FROM later")
  await shows(node, "later", [2])
  await server.ask("n", "d", "CREATE item:4 SET n = 0")
  await shows(node, "later", [3])
})

test("D57 a look at definitions answers what is known where nothing has changed, and else what is there", async () => {
  const server = await serve()
  await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}`)
  const node = await start(server, { SVC_SCHEMA_INTERVAL_MS: "0" })
  const known = await Effect.runPromise(node.upstream.schema!(undefined))
  expect(await Effect.runPromise(node.upstream.schema!(known))).toBe(known)
  await server.ask("n", "d", "DEFINE FIELD n ON item TYPE int")
  const other = await Effect.runPromise(node.upstream.schema!(known))
  expect([other.mark === known.mark, other.tables[0]?.types]).toEqual([false, { n: "int" }])
})
