/**
 * What an open dashboard costs the service, and how soon it answers a person: 1,000 views, 500 events a second, Chromium.
 *
 * As ratios within one run: rounds without and with the page open follow each other, so that whatever else the machine does falls on both. Run by
 * `npx vite-node scripts/dashboardLoad.ts` after a build; skipped with a word where there is no Chromium.
 */
import { readFileSync } from "node:fs"
import { Chromium, missing } from "../test/kit/browser.ts"
import { Door, secret, sleep } from "../test/kit/Door.ts"
import { request } from "../test/kit/http.ts"
import { registration } from "../test/kit/registration.ts"

const views = 1000
const perSecond = 500
const rounds = 8
const roundMs = 5000

/** Processor time of the process in milliseconds. */
const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Sends events at the rate, in batches of 5, until told to end. */
class Feed {
  sent = 0
  private ended = false

  async run(url: string): Promise<void> {
    const begun = performance.now()
    while (!this.ended) {
      const due = ((performance.now() - begun) / 1000) * perSecond
      while (this.sent < due) {
        const body = Array.from({ length: 5 }, () => ({ table: "item", op: "UPDATE", id: `item:${this.sent % 5000}`, record: { n: this.sent++, group: this.sent % views } }))
        await request(url, { method: "POST", path: "/ingest", token: secret, body })
      }
      await sleep(5)
    }
  }

  end(): void {
    this.ended = true
  }
}

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Milliseconds from a key to the next frame after it was handled, over sections and the search, as the browser itself measures them. */
const inputToPaint = async (page: Awaited<ReturnType<Chromium["visit"]>>["page"]): Promise<ReadonlyArray<number>> => {
  await page.evaluate("window.__took = []; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.__took.push(e.duration) }).observe({ type: 'event', durationThreshold: 16, buffered: true }); document.addEventListener('keydown', () => { const at = performance.now(); requestAnimationFrame(() => setTimeout(() => window.__took.push(performance.now() - at))) }, true)")
  for (const key of ["2", "j", "j", "k", "1", "3", "2", "/", "i", "t", "e", "m", "Escape"]) {
    await page.keyboard.press(key)
    await sleep(150)
  }
  return page.evaluate<Array<number>>("window.__took")
}

const main = async (): Promise<void> => {
  if (missing !== undefined) return console.log(`dashboard: skipped, ${missing}`)
  const [door, chromium] = await Promise.all([Door.start(), Chromium.launch()])
  try {
    for (let i = 0; i < views; i++) await request(door.url, { method: "POST", path: "/view/register", token: secret, body: registration(`view-${i}`, "SELECT * FROM item WHERE group = $g ORDER BY n DESC LIMIT 10", { params: { g: i } }) })
    const feed = new Feed()
    const feeding = feed.run(door.url)
    const seen = await chromium.visit(door.url)
    const cost = async (): Promise<number> => {
      const [cpu, sent] = [cpuOf(door.pid), feed.sent]
      await sleep(roundMs)
      return ((cpuOf(door.pid) - cpu) * 1000) / (feed.sent - sent)
    }
    await sleep(3000)
    const without: Array<number> = []
    const within: Array<number> = []
    const took: Array<number> = []
    const open = async (): Promise<void> => {
      await seen.go("/")
      await seen.page.locator("#secret").fill(secret)
      await seen.page.keyboard.press("Enter")
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
        if (isOpen) took.push(...await inputToPaint(seen.page))
      }
    }
    feed.end()
    await feeding
    const each = within.map((cpu, i) => cpu / without[i]!)
    const worst = [...took].sort((a, b) => a - b)
    console.log(`dashboard, ${views} views, ${perSecond} events/s wanted, ${rounds} rounds of ${roundMs / 1000} s:`)
    console.log(`  CPU per event, µs: ${without.map((n) => n.toFixed(0)).join(" ")} without, ${within.map((n) => n.toFixed(0)).join(" ")} with; ratio median ${median(each).toFixed(3)} (${each.map((n) => n.toFixed(2)).join(" ")})`)
    console.log(`  input to paint, ms: median ${median(took).toFixed(0)}, p95 ${worst[Math.floor(worst.length * 0.95)]?.toFixed(0)}, worst ${worst.at(-1)?.toFixed(0)} of ${took.length}`)
  } finally {
    await Promise.all([door.close(), chromium.close()])
  }
}

await main()
