/**
 * A process that is killed with 1,000 jobs pending and 50 under way, and started again on its data: all of them finish (D39).
 *
 * In the campaign, because leases outlive their holder on purpose: the 50 wait until theirs have run out and the next look finds them.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { graceMs } from "../../src/core/job/lease.ts"
import { TestBackend } from "../kit/backend.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../kit/Door.ts"
import { request } from "../kit/http.ts"
import { create } from "../kit/registration.ts"

const pending = 1_000
const interrupted = 50
const timeoutMs = 2_000

it(`D39 after kill -9 with ${pending} jobs pending and ${interrupted} under way, a restart finishes all: each of the first is called once, of the others once more, after the lease`, async () => {
  const folder = temporaryFolder()
  const backend = await TestBackend.start()
  const calledAt = new Map<string, Array<number>>()
  let holds = true
  backend.reply = ({ key }, response) => {
    calledAt.set(key, [...calledAt.get(key) ?? [], performance.now()])
    if (!holds) response.end("{}")
  }
  writeFileSync(join(folder, "svc.yml"), `job_tables:\n  mail_job: { name: mail, base_url: "${backend.url}", auth_token: "\${BACKEND_TOKEN}", timeout_ms: ${timeoutMs}, concurrency: ${interrupted} }\n`)
  const options = { dataDir: folder, env: { STORE_ADDR: undefined, SVC_CONFIG_PATH: join(folder, "svc.yml"), BACKEND_TOKEN: backend.token } }
  const doors: Array<Door> = []
  const start = async (): Promise<Door> => {
    const door = await Door.start(options)
    doors.push(door)
    return door
  }
  const count = async (door: Door, status: string): Promise<number> =>
    ((await request(door.url, { path: `/jobs?table=mail_job&status=${status}&limit=1000`, token: secret })).json as { readonly jobs: ReadonlyArray<unknown> }).jobs.length
  try {
    const first = await start()
    const jobs = Array.from({ length: pending + interrupted }, (_, n) => create(`mail_job:${n}`, { path: "/send", payload: { n }, status: "pending" }))
    expect((await request(first.url, { method: "POST", path: "/ingest", token: secret, body: jobs })).status).toBe(200)
    await until("as many calls as there are slots", () => backend.received.length >= interrupted)
    await first.kill()
    const cut = new Set(calledAt.keys())
    expect([cut.size, backend.received.length]).toEqual([interrupted, interrupted])
    holds = false
    const second = await start()
    await until("those that were pending are over", () => calledAt.size === pending + interrupted, 120_000)
    await until("those that were interrupted are over", async () => await count(second, "pending") === 0 && await count(second, "processing") === 0, 180_000)
    const calls = [...calledAt].map(([key, times]) => [cut.has(key), times.length, times.length === 1 || times[1]! - times[0]! >= timeoutMs + graceMs - 1_000] as const)
    expect(calls.filter(([wasCut, n, waited]) => n !== (wasCut ? 2 : 1) || !waited)).toEqual([])
    expect([await count(second, "failed"), backend.overlaps]).toEqual([0, []])
    const seen = (await request(second.url, { path: "/metrics", token: secret })).text
    expect(seen).toContain(`svc_ssp_job_attempts_total{table="mail_job",result="success"} ${pending + interrupted}`)
  } finally {
    for (const door of doors) await door.close()
    await backend.close()
    removeFolder(folder)
  }
}, 600_000)
