/**
 * A cluster whose clocks are set an hour forth and back while it works (D73): uptime counts on, no SSP is lost, views end
 * when they should, tokens too, and jobs go on.
 *
 * All clocks at once, as one service of a machine sets them, then the scheduler's alone, which then is an hour behind
 * its SSPs, and an hour ahead of them.
 */

import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { expect, it } from "vitest"
import { type Answer, request } from "../../kit/checks/http.ts"
import { begunStream } from "../../kit/checks/operations.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { listen, shut } from "../../kit/processes/listening.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"
import { SystemClock } from "../../kit/processes/systemClock.ts"
import { workshop } from "../../kit/processes/workshop.ts"

const hour = 3_600

const job = { path: "/send", payload: {}, status: "pending", max_retries: 5, retries: 0, retry_strategy: "linear" }

it("D73 clocks that are set by an hour hold nothing up and end nothing early", async ({ onTestFinished }) => {
  const shop = workshop(onTestFinished)
  /** Calls of each job; every first one fails, so that a retry is waited for. */
  const calls = new Map<string, number>()
  const backend = createServer((asked, answer) => {
    const key = String(asked.headers["idempotency-key"])
    const count = (calls.get(key) ?? 0) + 1
    calls.set(key, count)
    asked.resume().on("end", () => answer.writeHead(count === 1 ? 503 : 200).end("{}"))
  })
  const port = await listen(backend)
  onTestFinished(() => shut(backend))
  const config = join(shop.folder(), "svc.yml")
  writeFileSync(config, `job_tables:\n  mail:\n    name: mail\n    base_url: http://127.0.0.1:${port}\n`)
  const clocks = [new SystemClock(), new SystemClock()] as const
  const cluster = await ProcessCluster.start(2, { ...clocks[0].env, SVC_CONFIG_PATH: config }, () => ({
    ...clocks[1].env,
    SVC_CONFIG_PATH: config,
    TTL_CLEANUP_INTERVAL_SECS: "1",
    SVC_TABLE_GRACE_SECS: "1",
    SVC_JOB_RETRY_BASE_MS: "1500"
  }))
  onTestFinished(async () => {
    await cluster.close()
    for (const clock of clocks) clock.close()
  })
  const { scheduler } = cluster
  const post = (path: string, body: unknown): Promise<Answer> =>
    request(scheduler.url, { method: "POST", path, token: secret, body })
  const get = (path: string) => request(scheduler.url, { path, token: secret })
  const uptimes = () =>
    Promise.all(
      cluster.all.map(async (each) => {
        const { json } = await request(each.url, { path: "/overview", token: secret })
        return (json as { readonly uptime_seconds: number }).uptime_seconds
      })
    )
  const begun = performance.now()
  const first = await uptimes()

  for (const [step, [schedulerSecs, sspSecs]] of (
    [
      [hour, hour],
      [-hour, -hour],
      [0, 0],
      [-hour, 0],
      [hour, 0]
    ] as const
  ).entries()) {
    const view = `incantation:short${step}`
    const kept = `incantation:kept${step}`
    expect((await post("/view/register", registration(view, `SELECT * FROM t${step}`, { ttl: "3s" }))).status).toBe(200)
    expect((await post("/view/register", registration(kept, `SELECT * FROM t${step}`, { ttl: "50m" }))).status).toBe(
      200
    )
    const id = `mail:${step}`
    expect((await post("/ingest", create(id, job))).status).toBe(200)
    await until("the job has failed once", () => [...calls.values()].length > step)

    clocks[0].set(schedulerSecs)
    clocks[1].set(sspSecs)
    await until("the clocks are set", () =>
      cluster.all.every((each) => clocks[each === scheduler ? 0 : 1].isSeenIn(each.logs))
    )
    const later = `incantation:later${step}`
    expect((await post("/view/register", registration(later, `SELECT * FROM l${step}`, { ttl: "50m" }))).status).toBe(
      200
    )
    await until(`${step}: the job is done`, async () => {
      const { json } = await get(`/jobs/${encodeURIComponent(id)}`)
      return (json as { readonly status?: string }).status === "success"
    })
    await until(`${step}: the view has ended`, async () => (await get(`/view/${view}`)).status === 404)
    for (const id of [kept, later]) expect((await get(`/view/${id}`)).status, `${id} has not ended`).toBe(200)
    const ups = await uptimes()
    const goneSecs = (performance.now() - begun) / 1_000
    for (const [n, up] of ups.entries()) {
      expect(up - first[n]!).toBeGreaterThan(0)
      expect(up - first[n]!).toBeLessThan(goneSecs + 5)
    }
    expect((await cluster.ready()).length, "no SSP is lost").toBe(2)
  }
  for (const each of cluster.all) expect(each.logs).not.toMatch(/silent|is removed|heartbeat timeout/i)
  expect([...calls.values()], "called again once, by one").toEqual([2, 2, 2, 2, 2])

  // A token's end is a time of the day: it opens nothing once the clock is past it, and what it opened ends.
  const { json } = await post("/view/token", { views: ["incantation:kept0"] })
  const { token } = json as { readonly token: string }
  const stream = await fetch(`${scheduler.url}/view/incantation:kept0/stream`, {
    headers: { authorization: `Bearer ${token}` }
  })
  expect(stream.status).toBe(200)
  clocks[0].set(2 * hour)
  expect(await stream.text()).toMatch(/event: end\ndata: .*"unauthorized"/)
  expect((await begunStream(scheduler.url, "/view/incantation:kept0/stream", undefined)).status).toBe(200)
}, 300_000)
