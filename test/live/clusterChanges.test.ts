/**
 * A cluster of processes beside a real database engine whose network is closed: the scheduler takes the change table
 * (D44), rows go when its log has what they named, and it needs no compare where the table has held.
 *
 * No compare runs by the clock here, so what a view lacks stays missing and fails the test.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { request } from "../../kit/checks/http.ts"
import { left, taken } from "../../kit/data/changeTable.ts"
import { campaign, long } from "../../kit/data/random.ts"
import { registration } from "../../kit/data/registration.ts"
import { type ClusterBeside, startClusterBeside } from "../../kit/processes/clusterBeside.ts"
import {
  Door,
  freePort,
  removeFolder,
  schedulerEnv,
  secret,
  sleep,
  temporaryFolder,
  until
} from "../../kit/processes/Door.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

type Rows = ReadonlyArray<{ readonly [field: string]: unknown }>

const view = "SELECT * FROM item WHERE on = true"

const ids = async (rows: Promise<readonly [Rows]>): Promise<ReadonlyArray<string>> =>
  (await rows)[0].map(({ id }) => String(id)).sort()

/** Waits until the edges of the view are what its query answers in the database. */
const equal = async ({ ask, cluster, server }: ClusterBeside, when: string): Promise<void> => {
  let last: readonly [unknown, unknown] = [undefined, undefined]
  await taken(server)
  await until(
    `edges ${when}`,
    async () => {
      last = [
        await ids(ask(`SELECT out AS id FROM ${Schema.edgeTable} WHERE in = ${Schema.queryTable}:mine`)),
        await ids(ask(view))
      ]
      return JSON.stringify(last[0]) === JSON.stringify(last[1])
    },
    60_000
  ).catch(() => {
    throw new Error(
      `${when}: ${JSON.stringify(last)}\n${cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-3000)}`).join("\n")}`
    )
  })
}

const register = async ({ cluster }: ClusterBeside): Promise<number | undefined> =>
  (
    await cluster.scheduler.ask(
      { method: "POST", path: "/view/register", body: registration("incantation:mine", view) },
      20_000
    )
  )?.status

const compares = (scheduler: Process): number => scheduler.logs.match(/replica and database are compared/g)?.length ?? 0
const uncompared = (scheduler: Process): number => scheduler.logs.match(/no compare with the database/g)?.length ?? 0

/** Of the scheduler, under writes. */
const kills = campaign ? 40 : 2

test("D44 D56 D57 in a cluster the scheduler takes the change table of a database that may not reach it: views follow, what is rolled back is not shown, calls are carried out or refused, a deleted registration takes its view away", async () => {
  const beside = await startClusterBeside(2)
  const { ask, cluster } = beside
  expect(await register(beside)).toBe(200)
  await equal(beside, "behind the clone")
  await ask(
    "BEGIN; UPDATE item:1 SET on = true; UPDATE item:2 SET on = false; DELETE item:4; CREATE item:new SET n = 1, on = true; COMMIT"
  )
  await ask("BEGIN; UPDATE item:3 SET on = true; CREATE item:never SET on = true; CANCEL").catch(() => undefined)
  await ask("CREATE item:large SET n = 9007199254740993, on = true, at = d'2024-01-01T00:00:00Z', price = 1.10dec")
  await equal(beside, "behind changes")
  const typed = "SELECT VALUE [<string> n, type::of(price), type::of(at)] FROM item:large"
  expect(await cluster.query(typed)).toEqual((await ask<[unknown]>(typed))[0])
  expect(await cluster.query("SELECT id FROM item WHERE id IN [item:never]")).toEqual([])

  const call = (query: string): string => `fn::svc_register('incantation:called', '${query}', { v: 0 }, 1h, 'me')`
  const outs = async (): Promise<ReadonlyArray<string>> =>
    ids(ask(`SELECT out AS id FROM ${Schema.edgeTable} WHERE in = ${Schema.queryTable}:called`))
  await ask(`BEGIN; ${call("SELECT id FROM item")}; CANCEL`).catch(() => undefined)
  await ask(call("SELECT id, n FROM item WHERE n > $v"))
  await until("D56 the view that was called for is there", async () => (await outs()).length === 2)
  await ask(call("SELECT nonsense FROM"))
  await ask("fn::svc_register('incantation:called', 'SELECT id FROM item', {}, 1h, 'another')").catch(() => undefined)
  await taken(beside.server)
  const [refused] = await ask<[ReadonlyArray<{ readonly reason: string }>]>(`SELECT * FROM ${Schema.refusalTable}`)
  expect(refused.map(({ reason }) => reason)).toEqual([expect.stringMatching(/line 1, column/)])
  expect(await outs()).toHaveLength(2)
  await ask("fn::svc_unregister('incantation:called', 'me')")
  await until("D56 it is gone", async () => (await outs()).length === 0)

  await ask(`DELETE ${Schema.queryTable}:mine`)
  await until("the view is gone", async () => {
    const answer = await cluster.scheduler.ask({ path: "/overview" })
    return (answer?.json as { readonly views?: unknown } | undefined)?.views === 0
  })
  expect(await register(beside)).toBe(200)
  await ask("UPDATE item:6 SET on = false")
  await equal(beside, "registered again")
  // Definitions are followed too; this user may define no event, so that is said, and what is there is compared.
  const made = registration("incantation:made", "SELECT * FROM made")
  expect((await cluster.scheduler.ask({ method: "POST", path: "/view/register", body: made }, 20_000))?.status).toBe(
    200
  )
  const edgesOfMade = (count: number): Promise<unknown> =>
    until(`${count} edges of the new table`, async () => {
      const [rows] = await ask<[Rows]>(`SELECT out FROM ${Schema.edgeTable} WHERE in = ${Schema.queryTable}:made`)
      return rows.length === count
    })
  await ask("DEFINE TABLE made; CREATE made:1; CREATE made:2")
  await edgesOfMade(2)
  expect(cluster.scheduler.logs).toContain("the new tables made get no event")
  await ask("REMOVE TABLE made")
  await edgesOfMade(0)
}, 300_000)

/** One cluster for what follows: each test takes it as the one before left it, and the last ends its scheduler. */
let beside: ClusterBeside
const ends: Array<() => Promise<void> | void> = []
beforeAll(async () => {
  beside = await startClusterBeside(1, { later: (end) => void ends.unshift(end) })
})
afterAll(async () => {
  for (const end of ends) await end()
})

test("D44 L3 in a cluster a transaction is one step of every view, though it takes several deliveries", async () => {
  const { ask, cluster } = beside
  const sum = "SELECT math::sum(n) AS n, count() AS rows FROM item GROUP ALL"
  for (const [id, surql] of [
    ["all", "SELECT id, n FROM item"],
    ["sum", sum]
  ] as const)
    expect(
      (
        await cluster.scheduler.ask(
          { method: "POST", path: "/view/register", body: registration(`incantation:${id}`, surql) },
          20_000
        )
      )?.status
    ).toBe(200)
  await taken(beside.server)
  const open = (id: string): Promise<EventStream> =>
    EventStream.open(cluster.ssps[0]!.url, `/view/${id}/stream`, secret)
  const [all, sums] = [await open("all"), await open("sum")]
  onTestFinished(() => [all, sums].forEach((stream) => stream.close()))
  const moved = ["+ 3", "- 3"].map(
    (by, i) => `FOR $i IN 0..700 { CREATE type::record('item', $i + ${i} * 700 + 1000) SET n = 0 ${by} }`
  )
  await ask(`BEGIN; ${moved.join("; ")}; COMMIT`)
  const deltas = ({ events }: EventStream) => events.filter(({ event }) => event === "delta")
  await until("the first is told", async () => deltas(all).length > 0 && deltas(sums).length > 0)
  await ask("BEGIN; UPDATE item:1000 SET n = 4; UPDATE item:1001 SET n = 2; COMMIT")
  await until("the second is told", async () => deltas(all).length > 1)
  const sizes = deltas(all).map(({ data }) => [data["additions"], data["updates"]].map((part) => (part as Rows).length))
  expect(sizes).toEqual([
    [1400, 0],
    [0, 2]
  ])
  // The second leaves the sum as it is, and halves of either would not.
  expect(deltas(sums).length).toBe(1)
}, 300_000)

test.runIf(long)(
  "D44 no write fails while the scheduler is away; it takes what waits when it is back, after kills too, without a compare",
  async () => {
    const { ask, cluster, server } = beside
    const { scheduler } = cluster
    expect(await register(beside)).toBe(200)
    await until("the first compare is done", async () => compares(scheduler) === 1)
    await equal(beside, "at first")
    for (let round = 0; round < kills; round++) {
      let n = 0
      let killed = false
      const writing = (async () => {
        while (!killed || n % 20 !== 0) {
          n++
          await ask(
            `BEGIN; UPDATE item:${n % 40} SET n += 1, on = !on; UPDATE item:${(n + 7) % 40} SET on = !on; COMMIT`
          )
        }
      })()
      await sleep(100 + round * 50)
      await scheduler.kill()
      killed = true
      await writing
      await ask("UPDATE item:1 SET on = !on; DELETE item:39; CREATE item:39 SET on = true")
      expect(await left(server)).toBeGreaterThan(0)
      await scheduler.start()
      await cluster.settled()
      await equal(beside, `behind kill ${round + 1}`)
      const all = "SELECT id, n, on FROM item ORDER BY id"
      const replica = async (): Promise<string> => JSON.stringify(await cluster.query(all))
      expect(await replica()).toBe(JSON.stringify((await ask<[Rows]>(all))[0]))
    }
    expect([compares(scheduler), uncompared(scheduler)]).toEqual([1, kills])
  },
  300_000
)

test("D44 a second scheduler beside a database takes no rows while the first has the lease, says so, and follows when that one is gone", async () => {
  const { ask, cluster, server, settings } = beside
  const port = await freePort()
  const folder = temporaryFolder()
  const second = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    dataDir: folder,
    env: {
      ...schedulerEnv(folder, port),
      SCHEDULER_ID: "second",
      ...settings
    }
  })
  onTestFinished(async () => {
    await second.kill()
    removeFolder(folder)
  })
  // What is written before its clone has ended may be in it.
  for (const said of [
    /follows this database already: this service stands by, takes only what is posted to it/,
    /the database is cloned/
  ])
    await until(`the second says ${said}`, () => said.test(second.logs))
  await ask("CREATE item:one SET on = true")
  await taken(server)
  const sees = async (id: string): Promise<boolean> =>
    (
      await request(`http://127.0.0.1:${port}`, {
        method: "POST",
        path: "/proxy/query",
        body: { query: `SELECT * FROM ${id}` },
        keepAlive: false
      })
    ).text.includes(id)
  expect(await sees("item:one")).toBe(false)
  await cluster.scheduler.stop()
  await ask("CREATE item:two SET on = true")
  await taken(server)
  await until("the second has both", async () => (await sees("item:one")) && (await sees("item:two")))
}, 300_000)
