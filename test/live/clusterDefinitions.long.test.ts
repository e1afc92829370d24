/**
 * What a database defines, followed by a cluster (D57, D58, D59): the scheduler looks, its log says, SSPs take over.
 */
import { expect, onTestFinished, test } from "vitest"
import { EventStream } from "../../kit/checks/EventStream.ts"
import type { Answer } from "../../kit/checks/http.ts"
import { registration } from "../../kit/data/registration.ts"
import { type ClusterBeside, startClusterBeside } from "../../kit/processes/clusterBeside.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Setup from "../../src/core/surreal/databaseSetup.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"

const register = ({ cluster }: ClusterBeside, id: string, surql: string): Promise<Answer | undefined> =>
  cluster.scheduler.ask({ method: "POST", path: "/view/register", body: registration(id, surql) }, 20_000)

/** What the SSP that has it says of a view. */
const seen = async ({ cluster }: ClusterBeside, path: string): Promise<unknown> => {
  const answers = await Promise.all(cluster.ssps.map((ssp) => ssp.ask({ path })))
  return answers.find((answer) => answer?.status === 200)?.json
}

const shows = async (beside: ClusterBeside, id: string, expected: unknown): Promise<void> => {
  let last: unknown
  await until(
    `${id} shows ${JSON.stringify(expected)}`,
    async () => {
      const view = (await seen(beside, `/view/${id}?format=tree`)) as { readonly result_data: unknown } | undefined
      last = view?.result_data
      return JSON.stringify(last) === JSON.stringify(expected)
    },
    30_000
  ).catch(() => {
    const logs = beside.cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-2000)}`)
    throw new Error(`${id} shows ${JSON.stringify(last)} and not ${JSON.stringify(expected)}\n${logs.join("\n")}`)
  })
}

/** The tables that the only SSP holds. */
const held = async ({ cluster }: ClusterBeside): Promise<ReadonlyArray<string>> =>
  ((await cluster.ssps[0]!.ask({ path: "/integrity" }))?.json as { readonly holds: ReadonlyArray<string> }).holds

/** A function, a parameter and a field that lead views to tables which the SSP does not hold. */
const joins = async (beside: ClusterBeside): Promise<void> => {
  const { ask } = beside
  const tables = ["price", "discount", "offer", "maker"]
  await ask(tables.map((table) => `DEFINE TABLE ${table};`).join(" "))
  const url = "http://127.0.0.1:9"
  await ask(Setup.script({ url, secret: undefined, tables, mode: "changes", openToRecordUsers: false }))
  await ask(`CREATE price:1 SET n = 3; CREATE discount:1 SET n = 4; CREATE offer:1 SET n = 5; CREATE maker:1 SET n = 6;
    DEFINE FUNCTION fn::total() { (SELECT VALUE n FROM price) }; DEFINE PARAM $best VALUE price:1`)
  const total = "SELECT VALUE fn::total() FROM item:0"
  await until("the function is known", async () => (await register(beside, "total", total))?.status === 200)
  await register(beside, "best", "SELECT VALUE $best.n FROM item:0")
  await register(beside, "made", "SELECT VALUE by.n FROM item:1")
  await shows(beside, "total", [[3]])
  await shows(beside, "best", [3])
  await shows(beside, "made", [null])
  expect(await held(beside)).toEqual(["item", "sums", "price"])

  await ask("DEFINE FUNCTION OVERWRITE fn::total() { (SELECT VALUE n FROM discount) }")
  await shows(beside, "total", [[4]])
  await ask("DEFINE PARAM OVERWRITE $best VALUE offer:1")
  await shows(beside, "best", [5])
  await ask("DEFINE FIELD by ON item TYPE option<record<maker>>; UPDATE item:1 SET by = maker:1")
  await shows(beside, "made", [6])
  expect(await held(beside)).toEqual(["item", "sums", ...tables])
  // And what is written there from now on.
  await ask("UPDATE discount:1 SET n = 14; UPDATE offer:1 SET n = 15; UPDATE maker:1 SET n = 16")
  await shows(beside, "total", [[14]])
  await shows(beside, "best", [15])
  await shows(beside, "made", [16])
}

test("D57 D58 D59 in a cluster views use functions and parameters of the database and follow their definitions, tables AS SELECT follow their sources, records are typed as declared; D61 tables that definitions lead to join; behind kills of SSP and scheduler too", async () => {
  const beside = await startClusterBeside(1, { scheduler: { SVC_SCHEMA_INTERVAL_MS: "100" } })
  const { ask, cluster } = beside
  const { scheduler } = cluster
  const ssp = cluster.ssps[0]!
  await ask(`DEFINE PARAM $step VALUE 1; DEFINE PARAM $secret VALUE 'hidden' PERMISSIONS NONE;
    DEFINE FUNCTION fn::inner($x: any) { $x }; DEFINE FUNCTION fn::plus($x: any) { fn::inner($x) + $step };
    DEFINE FUNCTION fn::closed() { 'hidden' } PERMISSIONS NONE;
    DEFINE TABLE sums AS SELECT count() AS c, on FROM item GROUP BY on; UPDATE item:7 SET n = 5`)
  const plus = "SELECT VALUE fn::plus(n) FROM item WHERE n = 5"
  await until("the functions are known", async () => (await register(beside, "plus", plus))?.status === 200)
  await shows(beside, "plus", [6])
  await ask("DEFINE PARAM OVERWRITE $step VALUE 10")
  await shows(beside, "plus", [15])
  for (const [query, why] of [
    ["SELECT VALUE fn::closed() FROM item", "`fn::closed` cannot be used: PERMISSIONS"],
    ["SELECT VALUE $secret FROM item", "`$secret` cannot be used: PERMISSIONS"],
    ["SELECT VALUE fn::nope() FROM item", "`fn::nope` does not exist"]
  ] as const)
    expect([
      (await register(beside, "refused", query))?.status,
      (await register(beside, "refused", query))?.text
    ]).toEqual([400, expect.stringContaining(why)])
  // The record of definitions is no view's data, whatever a client asks.
  await register(beside, "own", "SELECT * FROM _svc_definitions")
  await shows(beside, "own", [])

  expect((await register(beside, "sums", "SELECT on, c FROM sums ORDER BY on"))?.status).toBe(200)
  const sums = (off: number, on: number): unknown => [
    { c: off, on: false },
    { c: on, on: true }
  ]
  await shows(beside, "sums", sums(20, 20))
  await ask("UPDATE item:1 SET on = true")
  await shows(beside, "sums", sums(19, 21))
  expect(await seen(beside, "/debug/view/sums")).toMatchObject({
    warnings: [expect.stringMatching(/^table sums is defined AS SELECT/)]
  })
  for (const process of [scheduler, ssp])
    expect((await process.ask({ path: "/overview" }))?.json).toMatchObject({
      warnings: [expect.stringMatching(/^table sums is defined AS SELECT/)]
    })

  await joins(beside)

  const wait = async (key: string): Promise<void> => {
    const body = { table: "item", op: "CREATE", id: `item:${key}`, record: { wait: "1h" } }
    expect((await scheduler.ask({ method: "POST", path: "/ingest", body }, 20_000))?.status).toBe(200)
  }
  const kinds = "SELECT id, type::of(wait) AS kind FROM item WHERE wait != NONE ORDER BY id"
  expect((await register(beside, "waits", kinds))?.text).toContain("assigned")
  await wait("before")
  const typed = [{ id: "item:before", kind: "string" }]
  await shows(beside, "waits", typed)
  await ask("DEFINE FIELD wait ON item TYPE option<duration>")
  // The compare of the table that another field brings takes away what the database does not have.
  await shows(beside, "waits", [])
  await wait("after")
  typed[0] = { id: "item:after", kind: "duration" }
  expect(await cluster.query(kinds)).toEqual(typed)
  await shows(beside, "waits", typed)

  for (const victim of [ssp, scheduler]) {
    await victim.kill()
    await ask(`DEFINE FUNCTION OVERWRITE fn::inner($x: any) { $x * ${victim === ssp ? 2 : 3} }`)
    await victim.start()
    await cluster.settled()
    await shows(beside, "plus", [victim === ssp ? 20 : 25])
    await shows(beside, "sums", sums(19, 21))
    await shows(beside, "waits", typed)
  }
  await ask("REMOVE FUNCTION fn::inner")
  await until("not served", async () => (await seen(beside, "/view/plus")) === undefined)
  await ask("DEFINE FUNCTION fn::inner($x: any) { $x }; UPDATE item:8 SET n = 5")
  await shows(beside, "plus", [15, 15])
  await ask("UPDATE item:8 SET n = 6")
  await shows(beside, "plus", [15])
}, 300_000)

test("D76 in a cluster tables that one transaction makes and fills, or removes and makes again, are shown as one step, and transactions older than their event too", async () => {
  const owner = { SVC_SCHEDULER_DB_USERNAME: "root", SVC_SCHEDULER_DB_PASSWORD: "root" }
  const beside = await startClusterBeside(1, { scheduler: { SVC_SCHEMA_INTERVAL_MS: "100", ...owner } })
  const { ask, cluster, server } = beside
  expect((await register(beside, "made", "SELECT id, n FROM made"))?.status).toBe(200)
  expect((await register(beside, "items", "SELECT VALUE n FROM item"))?.status).toBe(200)
  const stream = await EventStream.open(cluster.ssps[0]!.url, "/view/made/stream", secret)
  onTestFinished(() => stream.close())
  const sizes = stream.sizes()
  await stream.atLeast(1)
  const fill = (count: number, by: number): string =>
    `DEFINE TABLE made; FOR $n IN 0..${count} { CREATE type::record('made', $n * ${by}) SET n = $n };`
  await ask(`BEGIN; ${fill(700, 1)} COMMIT`)
  await until("it is shown", () => sizes.at(-1) === 700, 30_000)
  await ask(`BEGIN; REMOVE TABLE made; ${fill(300, 3)} COMMIT`)
  await until("the other one is shown", () => sizes.at(-1) === 300, 30_000)
  expect(sizes).toEqual([700, 300])
  await until("the table has its event", async () =>
    JSON.stringify(await ask("INFO FOR TABLE made")).includes(Changes.changeEvent)
  )
  await cluster.scheduler.kill()
  await ask(`BEGIN; REMOVE TABLE made; ${fill(5, 1)} ${Changes.eventStatement("made")}; COMMIT`)
  await cluster.scheduler.start()
  await until("the one that was made meanwhile is shown", () => sizes.at(-1) === 5, 30_000)
  expect(cluster.scheduler.logs).not.toContain("no compare with the database")

  const db = await rootClient(server)
  onTestFinished(async () => void (await db.close()))
  const told = async (): Promise<boolean> => JSON.stringify(await ask("INFO FOR TABLE item")).includes("svc_change")
  await db.query("REMOVE TABLE item; DEFINE TABLE item; CREATE item:1 SET n = 1")
  const open = await db.beginTransaction()
  await open.query("CREATE item:2 SET n = 2")
  await until("the table has its event", told)
  await shows(beside, "items", [1])
  await open.commit()
  await shows(beside, "items", [1, 2])
}, 120_000)
