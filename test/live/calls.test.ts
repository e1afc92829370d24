/** Calls of the functions for clients beside a real engine that reaches no network (D56). */
import type { Surreal } from "surrealdb"
import { expect, onTestFinished, test } from "vitest"
import { taken } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { besides } from "../../kit/processes/besides.ts"
import { until } from "../../kit/processes/Door.ts"
import { type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const { fresh, serve, start } = besides()

const rowsOf = async (node: NodeBeside, id: string): Promise<unknown> =>
  ((await node.ask("GET", `/view/${id}?format=tree`)).json as { readonly result_data: unknown }).result_data

test("D56 a view is served as soon as its row can be read, and shows the query of that row", async () => {
  const server = await serve()
  const feed = Feed.feedDefinitions({
    url: "",
    secret: undefined,
    tables: ["item"],
    mode: "changes",
    openToRecordUsers: false
  })
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; CREATE item:1 SET n = 1; ${Schema.script([...Schema.sharedDefinitions, ...feed])}`
  )
  const node = await start(server.port)
  await node.ready()
  const db = await rootClient(server)
  onTestFinished(async () => void (await db.close()))
  for (let n = 0; n < 20; n++) {
    const [view, query] = [`v${n % 10}`, `SELECT VALUE n + ${n} FROM item`]
    await db.query(`fn::svc_register('incantation:${view}', '${query}', {}, 1h, 'me')`)
    for (;;) {
      const [found] = await db.query<[ReadonlyArray<string>]>(`SELECT VALUE surql FROM _svc_query:${view}`)
      if (found[0] === query) break
    }
    expect(await rowsOf(node, view)).toEqual([n + 1])
  }
})

test("D56 a view that is registered, replaced and taken back by calls in the database, whose network is closed; a call that is rolled back leaves nothing, a refused one its reason", async () => {
  const server = await serve()
  const feed = Feed.feedDefinitions({
    url: "",
    secret: undefined,
    tables: ["item"],
    mode: "changes",
    openToRecordUsers: true
  })
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item PERMISSIONS NONE; DEFINE TABLE user PERMISSIONS FOR select WHERE id = $auth.id; ${Schema.script([...Schema.sharedDefinitions, ...feed])}; CREATE user:ann SET name = 'ann'; CREATE user:bob SET name = 'bob';
    DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name)`
  )
  const dataDir = fresh()
  const node = await start(server.port, dataDir)
  await node.ready()
  await taken(server)
  const as = async (name: string): Promise<Surreal> => {
    const db = await rootClient(server)
    onTestFinished(async () => void (await db.close()))
    await db.signin({ namespace: "n", database: "d", access: "account", variables: { name } })
    return db
  }
  const [ann, bob, root] = [await as("ann"), await as("bob"), await rootClient(server)]
  onTestFinished(async () => void (await root.close()))
  const status = async (id: string) => (await node.ask("GET", `/view/${id}`)).status
  // The transaction that makes the call makes a record too: the view shows it at once.
  const call = "fn::svc_register('incantation:mine', 'SELECT id, n FROM item WHERE n > $v', { v: 2 }, 1h)"
  await root.query(
    "BEGIN; CREATE item:1 SET n = 3; fn::svc_register('incantation:rooted', 'SELECT id, n FROM item', NONE, 1h, 'user:ann'); COMMIT"
  )
  await ann.query(call)
  await ann.query(`BEGIN; ${call.replace("mine", "cancelled")}; CANCEL`).catch(() => undefined)
  await taken(server)
  expect([await rowsOf(node, "rooted"), await rowsOf(node, "mine"), await status("cancelled")]).toEqual([
    [{ id: "item:1", n: 3 }],
    [{ id: "item:1", n: 3 }],
    404
  ])
  expect((await ann.query<[ReadonlyArray<unknown>]>("SELECT VALUE clientId FROM _svc_query"))[0]).toEqual([
    "user:ann",
    "user:ann"
  ])
  // What cannot be carried out is told to its client and to no other; the view that was there stays.
  await bob.query(call).catch(() => undefined)
  await ann.query("fn::svc_register('incantation:mine', 'SELEC * FROM item', {}, 1h)")
  await ann.query("fn::svc_register('incantation:long', 'SELECT * FROM item', {}, 1000000000y)").catch(() => undefined)
  await taken(server)
  const refusals = async (db: Surreal) =>
    (
      await db.query<[ReadonlyArray<{ readonly view: string; readonly reason: string }>]>(
        "SELECT view, reason FROM _svc_refusal"
      )
    )[0]
  expect(await refusals(ann)).toMatchObject([{ view: "incantation:mine", reason: expect.stringContaining("line 1") }])
  expect([await refusals(bob), await rowsOf(node, "mine")]).toEqual([[], [{ id: "item:1", n: 3 }]])
  // Calls on one view, as fast as they can be made: the last one counts, and the reason is gone.
  await ann.query(
    `${call}; fn::svc_unregister('mine'); ${call.replace("n > $v", "n < $v")}; fn::svc_unregister('rooted'); ${call.replace("mine", "brief")}; fn::svc_unregister('brief')`
  )
  await taken(server)
  expect([await rowsOf(node, "mine"), await status("rooted"), await status("brief"), await refusals(ann)]).toEqual([
    [],
    404,
    404,
    []
  ])
  // Made while the service is away: carried out when it is back.
  await node.stop()
  await ann.query(call.replace("mine", "later"))
  const again = await start(server.port, dataDir)
  await again.ready()
  await taken(server)
  expect(await rowsOf(again, "later")).toEqual([{ id: "item:1", n: 3 }])
})

test("D56 of two clients that call for one view before it is there the second is refused; without the flag a record user registers nothing", async () => {
  const server = await serve()
  const feed = (openToRecordUsers: boolean) =>
    Schema.script(
      Feed.feedDefinitions({ url: "", secret: undefined, tables: ["item"], mode: "changes", openToRecordUsers })
    )
  await server.ask(
    "n",
    "d",
    `DEFINE TABLE item; DEFINE TABLE user PERMISSIONS FOR select WHERE id = $auth.id; ${Schema.script(Schema.sharedDefinitions)}; ${feed(false)}; CREATE user:ann SET name = 'ann';
    DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name)`
  )
  const ann = await rootClient(server)
  onTestFinished(async () => void (await ann.close()))
  await ann.signin({ namespace: "n", database: "d", access: "account", variables: { name: "ann" } })
  const calls = async () =>
    (
      await server.ask<[ReadonlyArray<unknown>]>("n", "d", "SELECT VALUE call.view FROM _svc_change WHERE call != NONE")
    )[0]
  for (const attempt of [
    "fn::svc_register('a', 'SELECT * FROM item', {}, 1h)",
    "CREATE _svc_call SET op = 'register', view = 'a', surql = 'SELECT * FROM item', clientId = 'user:ann', ttl = 1h",
    "CREATE _svc_change SET r = _svc_change:call, call = { op: 'register', view: 'a', surql: 'SELECT * FROM item', clientId: 'user:ann', ttl: '1h' }",
    "fn::svc_unregister('a', 'user:bob')"
  ])
    await ann.query(attempt).catch(() => undefined)
  expect(await calls()).toEqual([])
  for (const client of ["one", "two"])
    await server.ask(
      "n",
      "d",
      `fn::svc_register('a', 'SELECT id, '${client}' AS who FROM item', {}, 1h, '${client}')`.replace(
        `'${client}' AS`,
        `"${client}" AS`
      )
    )
  expect(await calls()).toEqual(["a", "a"])
  await server.ask("n", "d", "CREATE item:1")
  const node = await start(server.port)
  await node.ready()
  await taken(server)
  expect(await rowsOf(node, "a")).toEqual([{ id: "item:1", who: "one" }])
  expect(await server.ask("n", "d", "SELECT VALUE [clientId, reason] FROM _svc_refusal")).toEqual([
    [["two", "this view belongs to another client"]]
  ])
})

test("D6 a registration does not wait for a database that is away, nor for one that hangs, longer than SVC_DATABASE_WAIT_MS", async () => {
  const server = await ServerProcess.start()
  onTestFinished(() => server.kill())
  await (await rootClient(server)).close()
  const node = await startBeside(server.port, fresh(), { SVC_DATABASE_WAIT_MS: "300" })
  onTestFinished(() => node.stop())
  await node.ready()
  const ask = () => node.ask("POST", "/view/register", registration("a", "SELECT * FROM item"))
  // The first finds our tables there, so that the next waits for its row alone.
  await until("registered", async () => (await ask()).status === 200)
  const late = { status: 500, json: { message: expect.stringContaining("within 300 ms (SVC_DATABASE_WAIT_MS)") } }
  server.pause()
  expect(await node.ask("POST", "/view/register", registration("b", "SELECT * FROM item"))).toMatchObject(late)
  server.resume()
  await server.kill()
  await until("nobody listens there", async () =>
    JSON.stringify((await node.ask("POST", "/view/register", registration("c", "SELECT * FROM item"))).json).includes(
      "within 300 ms"
    )
  )
})
