/**
 * A newcomer's walk: `npm start`, the address it prints in a browser, a view that changes under their eyes, a query of
 * their own, the jobs, Ctrl-C.
 *
 * The steps are README's, and what is clicked is found by its role and its words, as a person finds it. How long each
 * step took is printed.
 */
import { existsSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { Chromium, missing, named } from "../../kit/processes/browser.ts"
import { until } from "../../kit/processes/Door.ts"
import { LocalCluster } from "../../kit/processes/localCluster.ts"

describe.skipIf(missing !== undefined || !existsSync("/proc/self/cwd"))(named("a newcomer in Chromium"), () => {
  it("goes from npm start to a live view on the dashboard, tries a query, looks at the jobs, and stops it all with Ctrl-C", async ({
    onTestFinished
  }) => {
    const begun = performance.now()
    const step = (what: string): void => console.log(`${((performance.now() - begun) / 1000).toFixed(1)} s: ${what}`)
    const cluster = await LocalCluster.spawn("npm")
    onTestFinished(() => cluster.close())
    const [{ dashboard, secret }, chromium] = await Promise.all([cluster.greeting(), Chromium.launch()])
    onTestFinished(() => chromium.close())
    step("npm start has printed the dashboard's address")
    const window = await chromium.visit(dashboard)
    const { page } = window
    page.setDefaultTimeout(60_000)

    await window.go("/")
    await page.getByText(/2 of 2 SSPs ready/).waitFor()
    await until("events are counted", async () =>
      /^[1-9]/.test(await page.locator(".tile", { hasText: "Events per second" }).locator(".value").innerText())
    )
    await window.screenshot("walk-1-overview", true)
    step("the dashboard shows the cluster")

    await page.getByRole("link", { name: /^Views/ }).click()
    await page.getByText("demo:best-films", { exact: true }).click()
    await page
      .getByRole("dialog", { name: /secret/ })
      .getByLabel(/^Secret/)
      .fill(secret)
    await page
      .getByRole("dialog", { name: /secret/ })
      .getByRole("button", { name: "Unlock" })
      .click()
    const panel = page.getByRole("dialog", { name: "demo:best-films" })
    await panel.getByText("live", { exact: true }).waitFor()
    const result = panel.locator("table.result tbody")
    await until("ten films", async () => (await result.locator("tr").count()) === 10)
    const before = await result.innerText()
    await until("the view changes by itself", async () => (await result.innerText()) !== before, 60_000)
    await window.screenshot("walk-2-live-view", true)
    step("a view changes on the dashboard")
    await panel.getByRole("button", { name: "Close" }).click()

    await page.getByRole("link", { name: "Query" }).click()
    await page
      .getByLabel("A SELECT, kept live while you look")
      .fill("SELECT network, count() AS quakes FROM quake WHERE mag > 1 GROUP BY network")
    await page.getByRole("button", { name: "Run live" }).click()
    await page.locator("#query").getByText("live", { exact: true }).waitFor()
    await until(
      "networks with their quakes",
      async () => (await page.locator("#query table.result tbody tr").count()) > 5
    )
    await window.screenshot("walk-3-query", true)
    step("a query of their own is live")

    await page.getByRole("link", { name: /^Jobs/ }).click()
    await page.getByRole("group", { name: "Status" }).getByRole("button", { name: "success" }).click()
    await page
      .locator("#jobs")
      .getByText(/alert:\d+/)
      .first()
      .waitFor()
    await window.screenshot("walk-4-jobs", true)
    step("the jobs are there")
    // A browser writes every 401 on its console: those are the questions before the secret was given.
    expect(
      window.faults.filter((fault) => !/status of 401 \(Unauthorized\) \(http:\S+\/(?:debug\/)?view\/demo/.test(fault))
    ).toEqual([])

    cluster.ctrlC()
    expect(await cluster.door.exited).toEqual({ code: 0, signal: null })
    await until(
      "the dashboard says that nobody answers",
      async () => !/^(?:ready|ok|connected)$/i.test(await page.locator("#node-status").innerText())
    )
    step("everything is stopped")
  })
})
