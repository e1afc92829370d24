/**
 * A process that is killed with jobs pending and under way, and started again on its data: all of them finish (D39).
 *
 * On the embedded store, whose lock says that the process before is gone: what it had begun is called again at the
 * start, and not when leases of 40 s have run out. A thousand jobs in the campaign, some in the default run.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"

const campaign = process.env["SVC_CAMPAIGN"] === "1"
const pending = campaign ? 1_000 : 40
const interrupted = campaign ? 50 : 10
const timeoutMs = 30_000
/** From the start of the second process; leases run out later. */
const boundMs = 25_000

it(`D39 after kill -9 with ${pending} jobs pending and ${interrupted} under way, a restart finishes all: each of the first is called once, of the others once more, before their leases have run out`, async () => {
  const folder = temporaryFolder()
  const backend = await TestBackend.start()
  const calls = new Map<string, number>()
  let holds = true
  backend.reply = ({ key }, response) => {
    calls.set(key, (calls.get(key) ?? 0) + 1)
    if (!holds) response.end("{}")
  }
  writeFileSync(
    join(folder, "svc.yml"),
    `job_tables:\n  mail_job: { name: mail, base_url: "${backend.url}", auth_token: "\${BACKEND_TOKEN}", timeout_ms: ${timeoutMs}, concurrency: ${interrupted} }\n`
  )
  const options = {
    dataDir: folder,
    env: { STORE_ADDR: undefined, SVC_CONFIG_PATH: join(folder, "svc.yml"), BACKEND_TOKEN: backend.token }
  }
  const doors: Array<Door> = []
  const start = async (): Promise<Door> => {
    const door = await Door.start(options)
    doors.push(door)
    return door
  }
  const count = async (door: Door, status: string): Promise<number> =>
    (
      (await request(door.url, { path: `/jobs?table=mail_job&status=${status}&limit=1000`, token: secret })).json as {
        readonly jobs: ReadonlyArray<unknown>
      }
    ).jobs.length
  try {
    const first = await start()
    const jobs = Array.from({ length: pending + interrupted }, (_, n) =>
      create(`mail_job:${n}`, { path: "/send", payload: { n }, status: "pending" })
    )
    expect((await request(first.url, { method: "POST", path: "/ingest", token: secret, body: jobs })).status).toBe(200)
    await until("as many calls as there are slots", () => backend.received.length >= interrupted)
    await first.kill()
    const cut = new Set(calls.keys())
    expect([cut.size, backend.received.length]).toEqual([interrupted, interrupted])
    holds = false
    const second = await start()
    await until(
      "all are over",
      async () =>
        calls.size === pending + interrupted &&
        (await count(second, "pending")) === 0 &&
        (await count(second, "processing")) === 0,
      boundMs
    )
    expect([...calls].filter(([key, n]) => n !== (cut.has(key) ? 2 : 1))).toEqual([])
    expect([await count(second, "failed"), backend.overlaps]).toEqual([0, []])
    const seen = (await request(second.url, { path: "/metrics", token: secret })).text
    expect(seen).toContain(`svc_ssp_job_attempts_total{table="mail_job",result="success"} ${pending + interrupted}`)
  } finally {
    for (const door of doors) await door.close()
    await backend.close()
    removeFolder(folder)
  }
}, 120_000)
