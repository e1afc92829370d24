/**
 * What an open dashboard costs the service, and how soon it answers a person: 1,000 views, 500 events a second,
 * Chromium; on an SSP, and on a scheduler with two.
 *
 * As ratios within one run: rounds without and with the page open follow each other, so that whatever else the machine
 * does falls on both. Run by `npx vite-node scripts/dashboardLoad.ts` after a build; skipped with a word where there is
 * no Chromium.
 */

import { request } from "../kit/checks/http.ts"
import { registration } from "../kit/data/registration.ts"
import { Chromium, missing } from "../kit/processes/browser.ts"
import { Door, secret, sleep } from "../kit/processes/Door.ts"
import { ProcessCluster } from "../kit/processes/processCluster.ts"
import { cpuMicros, median } from "./bench/load.ts"

const views = 1000
const perSecond = 500
const rounds = 8
const roundMs = 5000

/** Sends events at the rate, in batches of 5, until told to end. */
class Feed {
  sent = 0
  private ended = false

  async run(url: string): Promise<void> {
    const begun = performance.now()
    while (!this.ended) {
      const due = ((performance.now() - begun) / 1000) * perSecond
      while (this.sent < due) {
        const body = Array.from({ length: 5 }, () => ({
          table: "item",
          op: "UPDATE",
          id: `item:${this.sent % 5000}`,
          record: { n: this.sent++, group: this.sent % views }
        }))
        await request(url, { method: "POST", path: "/ingest", token: secret, body })
      }
      await sleep(5)
    }
  }

  end(): void {
    this.ended = true
  }
}

/**
 * Milliseconds from a key to the next frame after it was handled, over sections and the search, as the browser itself
 * measures them.
 */
const inputToPaint = async (page: Awaited<ReturnType<Chromium["visit"]>>["page"]): Promise<ReadonlyArray<number>> => {
  await page.evaluate(
    "window.__took = []; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.__took.push(e.duration) }).observe({ type: 'event', durationThreshold: 16, buffered: true }); document.addEventListener('keydown', () => { const at = performance.now(); requestAnimationFrame(() => setTimeout(() => window.__took.push(performance.now() - at))) }, true)"
  )
  for (const key of ["2", "j", "j", "k", "1", "3", "2", "/", "i", "t", "e", "m", "Escape"]) {
    await page.keyboard.press(key)
    await sleep(150)
  }
  return page.evaluate<Array<number>>("window.__took")
}

/** What is looked at: the processes whose time counts, and where the page is. */
interface Service {
  readonly name: string
  readonly url: string
  readonly pids: ReadonlyArray<number>
  readonly asksSecret: boolean
  readonly close: () => Promise<unknown>
}

const standalone = async (): Promise<Service> => {
  const door = await Door.start()
  return { name: "an SSP", url: door.url, pids: [door.pid], asksSecret: true, close: () => door.close() }
}

const cluster = async (): Promise<Service> => {
  const running = await ProcessCluster.start(2)
  return {
    name: "a scheduler with two SSPs",
    url: running.scheduler.url,
    pids: running.all.map(({ door }) => door!.pid),
    asksSecret: false,
    close: () => running.close()
  }
}

const measure = async ({ asksSecret, name, pids, url }: Service, chromium: Chromium): Promise<void> => {
  for (let i = 0; i < views; i++) {
    const answer = await request(url, {
      method: "POST",
      path: "/view/register",
      token: secret,
      body: registration(`view-${i}`, "SELECT * FROM item WHERE group = $g ORDER BY n DESC LIMIT 10", {
        params: { g: i }
      })
    })
    if (answer.status !== 200) throw new Error(answer.text)
  }
  const feed = new Feed()
  const feeding = feed.run(url)
  const seen = await chromium.visit(url)
  const cpu = (): number => pids.reduce((sum, pid) => sum + cpuMicros(pid), 0)
  const cost = async (): Promise<number> => {
    const [before, sent] = [cpu(), feed.sent]
    await sleep(roundMs)
    return (cpu() - before) / (feed.sent - sent)
  }
  await sleep(3000)
  const without: Array<number> = []
  const within: Array<number> = []
  const took: Array<number> = []
  const open = async (): Promise<void> => {
    await seen.go("/")
    if (asksSecret) {
      await seen.page.locator("#secret").fill(secret)
      await seen.page.keyboard.press("Enter")
    }
    await seen.page.locator("#node-status.good").waitFor()
    await sleep(1000)
  }
  // Each pair in the other order than the one before, so that a drift of the machine falls on both.
  for (let round = 0; round < rounds; round++) {
    const closedFirst = round % 2 === 0
    if (!closedFirst) await open()
    for (const isOpen of closedFirst ? [false, true] : [true, false]) {
      if (isOpen && closedFirst) await open()
      if (isOpen) within.push(await cost())
      else {
        await seen.page.goto("about:blank")
        without.push(await cost())
      }
      if (isOpen) took.push(...(await inputToPaint(seen.page)))
    }
  }
  feed.end()
  await feeding
  await seen.close()
  const each = within.map((cost, i) => cost / without[i]!)
  const worst = [...took].sort((a, b) => a - b)
  console.log(
    `dashboard of ${name}, ${views} views, ${perSecond} events/s wanted, ${rounds} rounds of ${roundMs / 1000} s:`
  )
  console.log(
    `  CPU per event, µs: ${without.map((n) => n.toFixed(0)).join(" ")} without, ${within.map((n) => n.toFixed(0)).join(" ")} with; ratio median ${median(each).toFixed(3)} (${each.map((n) => n.toFixed(2)).join(" ")})`
  )
  console.log(
    `  input to paint, ms: median ${median(took).toFixed(0)}, p95 ${worst[Math.floor(worst.length * 0.95)]?.toFixed(0)}, worst ${worst.at(-1)?.toFixed(0)} of ${took.length}`
  )
}

const main = async (): Promise<void> => {
  if (missing !== undefined) return console.log(`dashboard: skipped, ${missing}`)
  const chromium = await Chromium.launch()
  try {
    for (const start of [standalone, cluster]) {
      const service = await start()
      try {
        await measure(service, chromium)
      } finally {
        await service.close()
      }
    }
  } finally {
    await chromium.close()
  }
}

await main()
