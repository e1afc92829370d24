/**
 * The dashboard with a secret that may only read (D15): everything is shown, and what is not allowed says so where it
 * was tried.
 *
 * In a real Chromium, because a page that locks itself, asks again or looks as if it had done it would be wrong in no
 * other test.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Chromium, missing, named, type Visit } from "../../kit/processes/browser.ts"
import { Door, removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"

const [viewer, owner, prometheus, own] = [
  "the-secret-of-viewer",
  "the-secret-of-owner",
  "the-secret-of-prometheus",
  "the-secret-of-ssp-1"
]
const entries = `viewer read ${viewer}\nowner ingest,read,register,admin ${owner}\nprometheus metrics ${prometheus}`

const unlock = async ({ page }: Visit, given: string): Promise<void> => {
  await page.locator("#secret").fill(given)
  await page.keyboard.press("Enter")
}

const post = (door: Door, path: string, body: unknown) =>
  request(door.url, { method: "POST", path, body, token: owner })

describe.skipIf(missing !== undefined)(named("the dashboard with a secret that may only read"), () => {
  const folder = temporaryFolder()
  const config = join(folder, "svc.yml")
  let chromium: Chromium
  let scheduler: Door
  let ssp: Door
  const visit = async (url: string): Promise<Visit> => {
    const seen = await chromium.visit(url)
    seen.page.setDefaultTimeout(100_000)
    await seen.go("/#views")
    return seen
  }
  beforeAll(async () => {
    writeFileSync(config, "job_tables:\n  mail_job:\n    name: mail\n    base_url: http://127.0.0.1:1\n")
    chromium = await Chromium.launch()
    scheduler = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"],
      env: {
        SVC_AUTH_SECRET: undefined,
        SVC_AUTH_SECRETS: `${entries}\nssp-1 ssp,read ${own}`,
        SVC_CONFIG_PATH: config,
        SVC_SCHEDULER_INGEST_PORT: "{port}",
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log"),
        SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50",
        LISTEN_ADDR: undefined,
        SVC_DATA_DIR: undefined,
        STORE_ADDR: undefined
      }
    })
    await until(
      "the scheduler serves",
      async () =>
        (await request(scheduler.url, { path: "/livez", keepAlive: false }).catch(() => undefined))?.status === 200,
      60_000
    )
    ssp = await Door.start({
      env: {
        SSP_ID: "ssp-1",
        SCHEDULER_URL: scheduler.url,
        SVC_AUTH_SECRET: own,
        SVC_SCHEDULER_AUTH_SECRET: own,
        SVC_AUTH_SECRETS: entries,
        HEARTBEAT_INTERVAL_MS: "100",
        SVC_CONFIG_PATH: config,
        SVC_JOB_RETRY_BASE_MS: "5",
        STORE_ADDR: undefined
      }
    })
    await until("the SSP is ready", async () => (await request(scheduler.url, { path: "/health" })).status === 200)
    await post(scheduler, "/ingest", [
      create("item:1", { n: 1 }),
      create("mail_job:1", { path: "/send", payload: {}, status: "pending", max_retries: 0 })
    ])
    expect(
      (await post(scheduler, "/view/register", registration("plain", "SELECT * FROM item", { format: "tree" }))).status
    ).toBe(200)
    await until("the job has failed", async () =>
      (await request(scheduler.url, { path: "/jobs/mail_job:1", token: viewer })).text.includes('"failed"')
    )
  })
  afterAll(async () => {
    await chromium?.close()
    await Promise.all([ssp?.close(), scheduler?.close()])
    removeFolder(folder)
  })
  for (const [what, url] of [
    ["an SSP", () => ssp.url],
    ["a scheduler, which passes them on", () => scheduler.url]
  ] as const) {
    it(`D15 shows views, rows and jobs of ${what} with one secret; retry, cancel and a query say which scope they need, and nothing is done`, async () => {
      const seen = await visit(url())
      await unlock(seen, viewer)
      await seen.page.locator("tr[data-row]").click()
      await seen.page.locator(".panel .live td", { hasText: "item:1" }).waitFor()
      await seen.page.locator(".panel h3", { hasText: "Plan" }).waitFor()
      await seen.page.keyboard.press("Escape")
      await seen.page.locator("[data-tab=jobs]").click()
      await seen.page.locator("tr[data-row='mail_job:1']").getByRole("button", { name: "Retry" }).click()
      await seen.page.getByRole("button", { name: "Retry it" }).click()
      const refused = seen.page.locator("#jobs .failure", { hasText: "SCOPE_REQUIRED" })
      await refused.waitFor()
      expect(await refused.innerText()).toMatch(/needs a secret with the scope admin; the secret "viewer" has read/)
      await seen.page.locator("[data-tab=query]").click()
      await seen.page.locator("#surql").fill("SELECT * FROM item")
      await seen.page.keyboard.press("Control+Enter")
      await seen.page.locator("#query .failure", { hasText: "needs a secret with the scope register" }).waitFor()
      expect([
        await seen.page.locator("#secret").count(),
        await seen.page.locator("#gate").count(),
        await seen.page.locator("#node-status.good").count()
      ]).toEqual([0, 0, 1])
      await seen.close()
    })
  }
  it("D15 a secret that may not read is refused with the scope that is missing, and the page asks for another", async () => {
    const seen = await visit(ssp.url)
    await unlock(seen, prometheus)
    const refused = seen.page.locator("dialog .failure", { hasText: "SCOPE_REQUIRED" })
    await refused.waitFor()
    expect(await refused.innerText()).toMatch(/needs a secret with the scope read; the secret "prometheus" has metrics/)
    await unlock(seen, viewer)
    await seen.page.locator("#node-status.good").waitFor()
    await seen.close()
  })
})
