/**
 * The dashboard of several schedulers in a real Chromium: who leads, and how far the replicas of the others are, opened
 * at one that stands by, and after the leader's death.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { create } from "../../kit/data/registration.ts"
import { Chromium, missing, named } from "../../kit/processes/browser.ts"
import { until } from "../../kit/processes/Door.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"

describe.skipIf(missing !== undefined || !Postgres.isReachable)(named("the dashboard of several schedulers"), () => {
  let chromium: Chromium
  let cluster: StandbyCluster
  beforeAll(async () => {
    chromium = await Chromium.launch()
    cluster = await StandbyCluster.start(2, 0)
  }, 120_000)
  afterAll(async () => {
    await chromium?.close()
    await cluster?.close()
  })

  it("D60 says who leads, in which term, how durable an answer is, and how far each replica is", async () => {
    const leader = await cluster.leader()
    const standby = cluster.schedulers.find((each) => each !== leader)!
    await leader.ask({ method: "POST", path: "/ingest", body: create("item:1", { n: 1 }) }, 20_000)
    await until("the other one stands by", () => cluster.standsBy(standby))
    const visit = await chromium.visit(standby.url)
    const { page } = visit
    await visit.go("/")
    const shown = async (): Promise<ReadonlyArray<string>> => {
      const rows = await page.locator('table[aria-label="Schedulers"] tbody tr').allInnerTexts()
      return rows.map((row) => row.split("\t").slice(0, 3).join(" ")).sort()
    }
    const shows = (...rows: ReadonlyArray<string>): Promise<unknown> =>
      until(
        `it shows ${rows.join(" and ")}`,
        async () => JSON.stringify(await shown()) === JSON.stringify([...rows].sort())
      )
    await shows(`${leader.name} leads up to date`, `${standby.name} stands by up to date`)
    const words = await page.locator("section", { hasText: "Schedulers of the log" }).last().innerText()
    expect(words).toMatch(/Term \d+; an answered change is on the server's disk\./)

    await leader.kill()
    await until("the other one leads", async () => (await cluster.leader()) === standby, 60_000)
    await until(
      "it shows that it leads",
      async () => (await shown()).some((row) => row.startsWith(`${standby.name} leads`)),
      60_000
    )
  }, 120_000)
})
