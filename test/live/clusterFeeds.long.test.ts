/**
 * A cluster whose database changes how it tells of writes, while somebody writes; and jobs that come by the change table.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { taken } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { startClusterBeside } from "../../kit/processes/clusterBeside.ts"
import { removeFolder, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { persistently } from "../../kit/processes/surreal/sdk.ts"
import * as Setup from "../../src/core/surreal/databaseSetup.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

test("D44 D21 in a cluster moving between the change table, events that post, and no events at all loses nothing, while somebody writes", async () => {
  const { ask, cluster, server } = await startClusterBeside(2, { mayPost: true })
  const run = async (query: string): Promise<void> => void (await persistently(() => ask(query)))
  const body = registration("incantation:all", "SELECT id, n FROM item WHERE n != 0")
  expect((await cluster.scheduler.ask({ method: "POST", path: "/view/register", body }, 20_000))?.status).toBe(200)
  let writing = true
  const writer = (async () => {
    for (let i = 1; writing; i++)
      await run(i % 5 === 4 ? `DELETE item:${i % 23}` : `UPSERT item:${i % 23} SET n = ${i}`)
    return "written"
  })()
  const install = (mode: Feed.FeedMode): Promise<void> =>
    run(
      Setup.script({
        url: cluster.scheduler.url,
        secret: undefined,
        tables: ["item"],
        mode,
        openToRecordUsers: false
      })
    )
  for (const step of ["sync", "changes", "none", "changes", "sync", "none", "changes"] as const) {
    if (step === "none") await run(`BEGIN; ${Feed.removal(["item"]).join("; ")}; COMMIT`)
    else await install(step)
    await sleep(200)
  }
  writing = false
  expect(await writer).toBe("written")
  await taken(server)
  type Rows = ReadonlyArray<{ readonly id: unknown }>
  const all = "SELECT id, n FROM item ORDER BY id"
  const [rows] = await ask<[Rows]>(all)
  let last: unknown
  await until(
    "the replica is what the database is",
    async () => JSON.stringify((last = await cluster.query(all))) === JSON.stringify(rows)
  ).catch(() => expect(last).toEqual(JSON.parse(JSON.stringify(rows))))
  const shown = async (): Promise<ReadonlyArray<string>> =>
    (await ask<[Rows]>(`SELECT out AS id FROM ${Schema.edgeTable} WHERE in = ${Schema.queryTable}:all`))[0]
      .map(({ id }) => String(id))
      .sort()
  const wanted = (await ask<[Rows]>("SELECT id FROM item WHERE n != 0"))[0].map(({ id }) => String(id)).sort()
  await until("the view is what the database is", async () => JSON.stringify(await shown()) === JSON.stringify(wanted))
}, 120_000)

test("D44 D35 in a cluster jobs that are written into the database run once each, by the change table alone, and say so there", async () => {
  const backend = await TestBackend.start()
  const folder = temporaryFolder()
  onTestFinished(async () => {
    await backend.close()
    removeFolder(folder)
  })
  const path = join(folder, "svc.yml")
  writeFileSync(
    path,
    "job_tables:\n  mail_job:\n    name: mail\n    base_url: ${JOB_BACKEND}\n    auth_token: ${JOB_TOKEN}\n"
  )
  const env = { SVC_CONFIG_PATH: path, JOB_BACKEND: backend.url, JOB_TOKEN: backend.token }
  const { ask, cluster } = await startClusterBeside(2, {
    scheduler: env,
    ssp: () => ({ ...env, SVC_JOB_RETRY_BASE_MS: "5" }),
    jobTables: ["mail_job"]
  })
  backend.reply = ({ key }, response, n) =>
    void (key === "mail_job:3" && n === 1 ? response.writeHead(500).end("once") : response.end("{}"))
  const statuses = async (): Promise<ReadonlyArray<string>> =>
    (await ask<[ReadonlyArray<string>]>("SELECT VALUE status FROM mail_job"))[0]
  const job = (id: string): string => `CREATE mail_job:${id} SET path = '/send', payload = { to: '${id}' }`
  await ask(`BEGIN; ${[1, 2, 3, 4].map((n) => job(String(n))).join("; ")}; COMMIT`)
  await ask(`BEGIN; ${job("never")}; CANCEL`).catch(() => undefined)
  const succeeded = (count: number) => async (): Promise<boolean> => {
    const all = await statuses()
    return all.length === count && all.every((status) => status === "success")
  }
  await until("all have run", succeeded(4), 30_000)
  // One that waits while the scheduler is away is taken up when it is back.
  await cluster.scheduler.kill()
  await ask(job("5"))
  await cluster.scheduler.start()
  await cluster.settled()
  await until("the one that waited has run", succeeded(5), 30_000)
  const calls = ["1", "2", "3", "4", "5", "never"].map((id) => backend.calls(`mail_job:${id}`).length)
  expect([calls, backend.overlaps]).toEqual([[1, 1, 2, 1, 1, 0], []])
}, 120_000)
