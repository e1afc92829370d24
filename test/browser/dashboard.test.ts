/**
 * The dashboard in a real Chromium, on an SSP and on a cluster: what it shows, what it asks for, what it leaves behind,
 * and what it does not let in.
 *
 * Why a browser: that text stays text, that a secret is kept nowhere, and that leaving takes a view back are promises
 * only a browser can break.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Chromium, missing, named, type Visit, type VisitOptions } from "../../kit/processes/browser.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"

const evil = `<img src=x onerror="document.title='pwned'">`
const script = `"><script>document.title='pwned'</script><b id=pwned>`

/** Errors but for refusals, which the browser always puts on its console. */
const faultsOf = (visit: Visit): ReadonlyArray<string> =>
  visit.faults.filter((fault) => !/status of 40[01]/.test(fault))

/**
 * An id as long as the service takes none longer, in letters of no use to a line break, with a mark that turns round
 * what follows.
 */
const longId = `incantation:${"x".repeat(200)}\u202e${"y".repeat(27)}`

/** Elements that reach beyond the right edge of the window, but for what scrolls by itself. */
const outside = `[...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().right > innerWidth + 1 && e.closest(".scroll, .tabs, pre.place") === null).map((e) => e.outerHTML.slice(0, 120))`

/** Keeps what is written on a canvas, and where from the left. */
const drawnText = `globalThis.drawn = []; const fill = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) { drawn.push([text, x]); return fill.call(this, text, x, ...rest) }`

const unlock = async ({ page }: Visit, given = secret): Promise<void> => {
  await page.locator("#secret").fill(given)
  await page.keyboard.press("Enter")
}

describe.skipIf(missing !== undefined)(named("the dashboard of an SSP"), () => {
  const folder = temporaryFolder()
  let chromium: Chromium
  let door: Door
  const ask = (line: string, body?: unknown) => send(door, { ask: line, ...(body === undefined ? {} : { body }) })
  const views = async (): Promise<ReadonlyArray<Body>> =>
    bodyOf(await ask("GET /views"))["views"] as ReadonlyArray<Body>
  const visit = async (path = "/", options: VisitOptions = {}): Promise<Visit> => {
    const opened = await chromium.visit(door.url, options)
    opened.page.setDefaultTimeout(100_000)
    await opened.go(path)
    return opened
  }
  const opened = async (path = "/", options: VisitOptions = {}): Promise<Visit> => {
    const page = await visit(path, options)
    await unlock(page)
    await page.page.locator("#node-status.good").waitFor()
    return page
  }
  beforeAll(async () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, "svc.yml"),
      "job_tables:\n  mail_job:\n    name: mail\n    base_url: http://127.0.0.1:1\n"
    )
    ;[chromium, door] = await Promise.all([
      Chromium.launch(),
      Door.start({ env: { SSP_ID: "solo", SVC_CONFIG_PATH: join(folder, "svc.yml"), SVC_JOB_RETRY_BASE_MS: "5" } })
    ])
    await ask("POST /ingest", [
      create("item:1", { name: evil, n: 1 }),
      create("item:2", { name: script, n: 2 }),
      create("mail_job:1", { path: "/send", payload: { to: "ann" }, status: "pending", max_retries: 0 })
    ])
    await ask(
      "POST /view/register",
      registration(evil, `SELECT * FROM item WHERE name != "${script.replace(/"/g, "'")}" ORDER BY n`, {
        clientId: script,
        format: "tree",
        params: { x: evil }
      })
    )
    await ask("POST /view/register", registration("plain", "SELECT n FROM item", { format: "tree" }))
  })
  afterAll(async () => {
    await Promise.all([chromium?.close(), door?.close()])
    removeFolder(folder)
  })

  it("asks for the secret before it asks anything of the service, refuses a wrong one, and keeps the right one nowhere but in memory", async () => {
    const seen = await visit()
    const asked: Array<string> = []
    seen.page.on("request", (sent) => asked.push(sent.url()))
    await seen.page.locator("dialog[open]").waitFor()
    expect(asked.filter((url) => /overview|views|jobs/.test(url))).toEqual([])
    await unlock(seen, "wrong")
    await seen.page.locator("dialog .failure").waitFor()
    await unlock(seen)
    await seen.page.locator("#node-status.good").waitFor()
    await seen.screenshot("dashboard-ssp")
    const kept = await seen.page.evaluate<string>(
      "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href, document.documentElement.outerHTML])"
    )
    expect(kept).not.toContain(secret)
    expect(asked.join()).not.toContain(secret)
    await seen.page.reload()
    await seen.page.locator("#secret").waitFor()
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("D11 D13 shows a hostile view, its plan and its rows as text, and a change as it happens", async () => {
    const seen = await opened("/#views")
    await seen.page.locator("tr[data-row]", { hasText: "onerror" }).click()
    await seen.page.locator(".panel .live td", { hasText: evil }).waitFor()
    await ask("POST /ingest", create("item:3", { name: "from elsewhere", n: 3 }))
    await seen.page.locator(".panel .live tr.added", { hasText: "from elsewhere" }).waitFor()
    await seen.page.locator(".panel td", { hasText: "source item" }).waitFor()
    await seen.screenshot("dashboard-view")
    expect(
      await seen.page.evaluate(
        "[document.querySelectorAll('img, #pwned, main script, aside script').length, document.title]"
      )
    ).toEqual([0, "solo · ready"])
    await seen.page.keyboard.press("Escape")
    expect(await seen.page.locator(".panel").isHidden()).toBe(true)
    await seen.page.locator("#search").fill("PLAIN")
    await until("one row is left", async () => (await seen.page.locator("tr[data-row]").count()) === 1)
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("registers a query for as long as its page is open, shows its change, says what is wrong with another, and takes it back on leaving", async () => {
    const seen = await opened("/#query")
    const ours = async () => (await views()).filter((view) => view["client_id"] === "dashboard")
    await seen.page.locator("#surql").fill("SELECT * FROM item WHERE n > 50")
    await seen.page.keyboard.press("Control+Enter")
    await seen.page.locator(".live .empty", { hasText: "No rows" }).waitFor()
    expect(await ours()).toMatchObject([{ ttl_seconds: 120, query: "SELECT * FROM item WHERE n > 50" }])
    await ask("POST /ingest", create("item:60", { name: "large", n: 60 }))
    await seen.page.locator("#query .live td", { hasText: "large" }).waitFor()
    await seen.screenshot("dashboard-query")
    await seen.page.locator("#surql").fill("SELECT * FORM item")
    await seen.page.keyboard.press("Control+Enter")
    const refused = seen.page.locator("#query .failure")
    await refused.waitFor()
    expect(await refused.innerText()).toMatch(/INVALID_QUERY[\s\S]*FORM item\n\s+\^/)
    await until("the first is taken back", async () => (await ours()).length === 0)
    await seen.page.locator("#surql").fill("SELECT * FROM item")
    await seen.page.keyboard.press("Control+Enter")
    await until("it is registered", async () => (await ours()).length === 1)
    await seen.page.goto("about:blank")
    await until("it is taken back", async () => (await ours()).length === 0)
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("has an address for an open view, each filter and a query, which opens it again, with columns as the query has them", async () => {
    await ask("POST /view/register", registration("incantation:addressed", "SELECT n, name, id AS a, id FROM item"))
    const seen = await opened("/#views")
    const address = () => seen.page.evaluate("location.hash")
    const head = (inside: string) => seen.page.locator(`${inside} .result th`).allInnerTexts()
    await seen.page.locator("#search").fill("addressed")
    await seen.page.locator("#order").selectOption("cost")
    await until(
      "the filters are in the address",
      async () => (await address()) === "#views?search=addressed&order=cost"
    )
    await seen.page.locator("tr[data-row='incantation:addressed']").click()
    await seen.page.locator(".panel .result td").first().waitFor()
    expect(await head(".panel")).toEqual(["n", "name", "a", "id"])
    const open = "#views?search=addressed&order=cost&view=incantation%3Aaddressed"
    expect(await address()).toBe(open)
    await seen.page.goBack()
    await seen.page.locator(".panel").waitFor({ state: "hidden" })
    await seen.close()

    const again = await opened(`/${open}`)
    await again.page.locator(".panel .result td").first().waitFor()
    expect(await again.page.locator("#search").inputValue()).toBe("addressed")
    await again.screenshot("dashboard-address")
    await again.page.keyboard.press("Escape")
    await until(
      "the view is closed in the address",
      async () => (await again.page.evaluate("location.hash")) === "#views?search=addressed&order=cost"
    )
    await again.close()

    const query = await opened(
      `/#query?${new URLSearchParams({ surql: "SELECT name, n FROM item WHERE n = $n", params: '{"n": 2' })}`
    )
    await query.page.locator("#surql").press("Control+Enter")
    await query.page.locator("#query .failure", { hasText: "no JSON" }).waitFor()
    await query.page.locator("#params").fill('{"n": 2}')
    await query.page.locator("#params").press("Control+Enter")
    await query.page.locator("#query .result td", { hasText: "script" }).waitFor()
    expect(await query.page.locator("#query .result th").allInnerTexts()).toEqual(["name", "n"])
    await query.screenshot("dashboard-parameters")
    await query.close()

    const jobs = await opened("/#jobs?table=mail_job&status=failed")
    await jobs.page.locator("#jobs summary", { hasText: "payload" }).click()
    await jobs.page.locator("#jobs code", { hasText: '{"to":"ann"}' }).waitFor()
    await jobs.screenshot("dashboard-jobs-payload")
    expect([again, query, jobs].flatMap(faultsOf)).toEqual([])
    await jobs.close()
    await ask("POST /view/unregister", { id: "incantation:addressed" })
  })
  it("takes back a query that it left, or asked otherwise, before it had the answer to its registration", async () => {
    const ours = async () => (await views()).filter((view) => view["client_id"] === "dashboard")
    const seen = await opened("/#query")
    const held: Array<() => void> = []
    await seen.page.route("**/view/register", async (route) => {
      const response = await route.fetch()
      await new Promise<void>((release) => held.push(release))
      await route.fulfill({ response }).catch(() => undefined)
    })
    for (const [n, surql] of ["SELECT * FROM item WHERE n > 1", "SELECT * FROM item WHERE n > 2"].entries()) {
      await seen.page.locator("#surql").fill(surql)
      await seen.page.keyboard.press("Control+Enter")
      await until("it is registered", async () => (await ours()).length === n + 1 && held.length === n + 1)
    }
    for (const release of held.reverse()) release()
    await until("one is left", async () => (await ours()).length === 1)
    await seen.page.locator("#query .live td").first().waitFor()
    expect(await ours()).toMatchObject([{ query: "SELECT * FROM item WHERE n > 2" }])
    await seen.page.locator("#surql").fill("SELECT * FROM item WHERE n > 3")
    await seen.page.keyboard.press("Control+Enter")
    await until("the third is registered", async () => held.length === 3)
    await seen.page.goto("about:blank")
    await until("it is taken back", async () => (await ours()).length === 0)
    held[2]!()
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("D57 shows the warnings of an overview as text, and none where there are none", async () => {
    const seen = await visit()
    let warnings: ReadonlyArray<string> = [`table ${evil} has no event`]
    await seen.page.route("**/overview", async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...((await response.json()) as Body), warnings } })
    })
    await unlock(seen)
    await seen.page.getByText(warnings[0]!).waitFor()
    warnings = []
    await seen.page.getByRole("heading", { name: "Warnings" }).waitFor({ state: "hidden" })
    await seen.page.unrouteAll({ behavior: "ignoreErrors" })
    expect(await seen.page.title()).not.toBe("pwned")
    expect(faultsOf(seen)).toEqual([])
  })

  it("D61 shows how long the feed took on an SSP that follows one, since it is sent nothing", async () => {
    const seen = await visit()
    let steps = 0
    await seen.page.route("**/overview", async (route) => {
      const response = await route.fetch()
      const feed = { bounds_ms: [100, 200], counts: [0, (steps += 10), 0] }
      await route.fulfill({ response, json: { ...((await response.json()) as Body), feed } })
    })
    await unlock(seen)
    const tile = seen.page.locator(".tile", { hasText: "Feed latency p99" })
    await tile.getByText(/^median 1\d\d ms$/).waitFor()
    await seen.page.getByRole("img", { name: "Feed latency" }).waitFor()
    await seen.page.unrouteAll({ behavior: "ignoreErrors" })
    await seen.page.locator(".tile", { hasText: "Ingest latency p99" }).getByText("nothing came in").waitFor()
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("D35 shows a failed job with its errors, and runs it again after a question", async () => {
    const seen = await opened("/#jobs")
    const row = seen.page.locator("tr[data-row='mail_job:1']")
    await row.waitFor()
    await row.locator("summary").last().click()
    await row.getByText("attempt 1").waitFor()
    await row.getByRole("button", { name: "Retry" }).click()
    await seen.page.getByRole("button", { name: "Keep as it is" }).click()
    expect((bodyOf(await ask("GET /jobs/mail_job:1"))["errors"] as ReadonlyArray<unknown>).length).toBe(1)
    await row.getByRole("button", { name: "Retry" }).click()
    await seen.page.getByRole("button", { name: "Retry it" }).click()
    await until(
      "it has run again",
      async () => (bodyOf(await ask("GET /jobs/mail_job:1"))["errors"] as ReadonlyArray<unknown>).length === 3
    )
    await seen.screenshot("dashboard-jobs")
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("is worked by keyboard alone", async () => {
    const seen = await opened()
    const focused = () => seen.page.evaluate<string>("document.activeElement.id || document.activeElement.textContent")
    const blur = () => seen.page.evaluate("document.activeElement.blur()")
    await blur()
    await seen.page.keyboard.press("Tab")
    expect(await focused()).toBe("Skip to content")
    await seen.page.keyboard.press("2")
    await seen.page.locator("tr[data-row]").first().waitFor()
    await seen.page.keyboard.press("j")
    await seen.page.keyboard.press("j")
    expect(await focused()).toContain("plain")
    await seen.page.keyboard.press("Enter")
    await seen.page.locator(".panel h2", { hasText: "plain" }).waitFor()
    await seen.page.keyboard.press("Escape")
    expect(await focused()).toContain("plain")
    // The page hears of the end of a dialog a moment later: who goes on at once keeps the panel, or the focus.
    const after = (action: string, then: string) =>
      seen.page.evaluate(
        `new Promise((done) => { const panel = document.querySelector("dialog.panel"); ${action}; setTimeout(() => done(${then}), 100) })`
      )
    await seen.page.keyboard.press("Enter")
    await seen.page.locator(".panel h2", { hasText: "plain" }).waitFor()
    expect(
      await after(
        `panel.close(); [...document.querySelectorAll("#views [data-row]")].find((row) => row.dataset.row === "plain").click()`,
        "panel.querySelector('h2')?.textContent"
      )
    ).toBe("plain")
    expect(await after(`panel.close(); document.getElementById("search").focus()`, "document.activeElement.id")).toBe(
      "search"
    )
    await blur()
    await seen.page.keyboard.press("/")
    expect(await focused()).toBe("search")
    await seen.page.keyboard.press("Escape")
    await blur()
    await seen.page.keyboard.press("?")
    await seen.page.locator("dialog kbd").first().waitFor()
    await seen.page.keyboard.press("Escape")
    await seen.page.keyboard.press("t")
    expect(await seen.page.evaluate("document.documentElement.dataset.theme")).toBe("dark")
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  for (const [name, options] of [
    ["390 px", { phone: true }],
    ["768 px", { viewport: { width: 768, height: 900 }, colorScheme: "dark" }],
    ["1280 px", {}]
  ] as const) {
    it(`shows a view on ${name} with every value and Close in the window, and a long id whose characters all show`, async () => {
      await ask(
        "POST /view/register",
        registration(longId, "SELECT * FROM item", {
          format: "tree",
          clientId: "c".repeat(200),
          params: { long: "p".repeat(300) }
        })
      )
      await ask(
        "POST /ingest",
        create("item:wide", {
          n: 9,
          ...Object.fromEntries(
            Array.from({ length: 9 }, (_, i) => [`a_column_with_a_long_name_${i}`, "value ".repeat(8)])
          )
        })
      )
      const seen = await opened("/#views", options)
      const row = seen.page.locator("tr[data-row]", { hasText: "xxxx" })
      await row.click()
      const panel = seen.page.getByRole("dialog")
      await panel.locator(".live td", { hasText: "item:wide" }).waitFor()
      await panel.getByText("source item").waitFor()
      await seen.screenshot(`dashboard-panel-${name.replace(" ", "")}`)
      expect(await seen.page.evaluate(outside)).toEqual([])
      const close = panel.getByRole("button", { name: "Close" })
      const box = (await close.boundingBox())!
      expect([box.width >= 30, box.height >= 28, box.x + box.width <= seen.page.viewportSize()!.width]).toEqual([
        true,
        true,
        true
      ])
      expect(await panel.getByRole("heading", { level: 2 }).innerText()).toBe(longId.replace("\u202e", "⟨U+202E⟩"))
      expect(await seen.page.evaluate("document.body.innerText.includes('\\u202e')")).toBe(false)
      await close.click()
      await panel.waitFor({ state: "hidden" })
      expect(await seen.page.evaluate("document.activeElement.dataset.row")).toBe(longId)
      expect(faultsOf(seen)).toEqual([])
      await seen.close()
      await ask("POST /view/unregister", { id: longId })
    })
  }
  it("keeps Tab inside the panel, and closes it on Escape from wherever the focus is", async () => {
    const seen = await opened("/#views")
    await seen.page.locator("tr[data-row]", { hasText: "plain" }).click()
    const panel = seen.page.getByRole("dialog", { name: "plain", exact: true })
    await panel.getByRole("heading", { name: "Plan" }).waitFor()
    const places = new Set<string>()
    for (let n = 0; n < 12; n++) {
      await seen.page.keyboard.press("Tab")
      places.add(
        await seen.page.evaluate<string>(
          "document.activeElement === document.body ? 'the browser' : document.activeElement.closest('dialog') === null ? document.activeElement.outerHTML : 'inside'"
        )
      )
    }
    expect([...places].filter((place) => place !== "the browser")).toEqual(["inside"])
    await seen.page.evaluate("document.activeElement.blur()")
    await seen.page.keyboard.press("Escape")
    await panel.waitFor({ state: "hidden" })
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  it("has a heading, names for all tables, buttons named as they read, and an axis whose marks differ", async () => {
    const seen = await chromium.visit(door.url)
    const { page } = seen
    page.setDefaultTimeout(100_000)
    await page.addInitScript(drawnText)
    await seen.go("/")
    await unlock(seen)
    await page.locator("#node-status.good").waitFor()
    expect(await page.getByRole("heading", { level: 1 }).allInnerTexts()).toEqual(["solo"])
    await page.getByRole("button", { name: "Lock", exact: true }).waitFor()
    const marks = await until("times of day on an axis", async () => {
      const drawn = (await page.evaluate<ReadonlyArray<readonly [string, number]>>("drawn")).filter(([text]) =>
        /^\d\d:\d\d/.test(text)
      )
      return drawn.length > 20 && drawn
    })
    expect(marks.filter(([text, x], i) => i > 0 && marks[i - 1]![0] === text && x > marks[i - 1]![1] + 20)).toEqual([])
    for (const section of ["overview", "views", "query", "jobs"]) {
      await page.locator(`[data-tab=${section}]`).click()
      await page.locator(`#${section}`).waitFor()
      const nameless = await page.evaluate<ReadonlyArray<string>>(
        `[...document.querySelectorAll("table, section, dialog")].filter((e) => e.checkVisibility() && !e.getAttribute("aria-label") && e.querySelector("caption, h2") === null).map((e) => e.outerHTML.slice(0, 100))`
      )
      expect([section, nameless]).toEqual([section, []])
    }
    await page.getByRole("button", { name: "Lock", exact: true }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click()
    await page.getByRole("button", { name: "Unlock", exact: true }).waitFor()
    expect(faultsOf(seen)).toEqual([])
    await seen.close()
  })
  for (const colorScheme of campaign ? (["light", "dark"] as const) : (["dark"] as const)) {
    it(`fits a phone in the ${colorScheme}: nothing is wider than the window`, async () => {
      const seen = await opened("/", { phone: true, colorScheme })
      for (const section of ["overview", "views", "query", "jobs"]) {
        await seen.page.locator(`[data-tab=${section}]`).click()
        await seen.page.locator(`#${section}`).waitFor()
        await seen.screenshot(`dashboard-phone-${colorScheme}-${section}`)
        expect([section, await seen.page.evaluate("document.documentElement.scrollWidth")]).toEqual([section, 390])
      }
      expect(await seen.page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe(
        colorScheme === "light" ? "rgb(247, 247, 245)" : "rgb(17, 19, 21)"
      )
      expect(faultsOf(seen)).toEqual([])
      await seen.close()
    })
  }
})

describe.skipIf(missing !== undefined)(named("the dashboard of a cluster"), () => {
  let chromium: Chromium
  let cluster: ProcessCluster
  beforeAll(async () => {
    ;[chromium, cluster] = await Promise.all([Chromium.launch(), ProcessCluster.start(2)])
    for (const id of ["one", "two"])
      await cluster.scheduler.ask(
        { method: "POST", path: "/view/register", body: registration(id, "SELECT * FROM item", { format: "tree" }) },
        20_000
      )
  })
  afterAll(() => Promise.all([chromium?.close(), cluster?.close()]))

  it("D30 shows every SSP with its state, the views with their owners, a view through the scheduler with the SSPs' secret, and says so when no SSP answers", async () => {
    const url = cluster.scheduler.url
    const seen = await chromium.visit(url)
    seen.page.setDefaultTimeout(100_000)
    await seen.go("/")
    for (const id of ["ssp-1", "ssp-2"])
      await seen.page.locator(".ssp", { hasText: id }).locator(".pill.good", { hasText: "ready" }).waitFor()
    await request(url, {
      method: "POST",
      path: "/ingest",
      body: [create("item:1", { n: 1 }), create("item:2", { n: 2 })]
    })
    await seen.page.locator(".facts dd", { hasText: "seq 2" }).waitFor()
    await seen.screenshot("dashboard-cluster")
    await seen.page.locator(".ssp .link", { hasText: "ssp-1" }).click()
    await until("the views of one SSP", async () => (await seen.page.locator("tr[data-row]").count()) === 1)
    // A refusal that arrives when the secret has been given already does not ask again, nor forget it.
    let given = (): void => undefined
    const unlocked = new Promise<void>((done) => {
      given = done
    })
    await seen.page.route(
      "**/debug/view/**",
      async (route) => {
        const refusal = await route.fetch()
        await unlocked
        await route.fulfill({ response: refusal })
      },
      { times: 1 }
    )
    await seen.page.locator("tr[data-row]").click()
    await unlock(seen)
    await seen.page.locator(".panel .live td", { hasText: "item:2" }).waitFor()
    given()
    await seen.page.locator(".panel h3", { hasText: "Plan" }).waitFor()
    expect(await seen.page.locator("#secret").count()).toBe(0)
    await request(url, { method: "POST", path: "/ingest", body: create("item:3", { n: 3 }) })
    await seen.page.locator(".panel .live td", { hasText: "item:3" }).waitFor()
    expect(faultsOf(seen)).toEqual([])
    await seen.page.keyboard.press("Escape")
    await seen.page.locator("[data-tab=overview]").click()
    expect(await seen.page.title()).toMatch(/ · ready$/)
    await cluster.scheduler.kill()
    await seen.page.locator("#node-status.bad", { hasText: "no answer" }).waitFor()
    expect(await seen.page.title()).toMatch(/ · no answer$/)
    await seen.page
      .getByRole("alert")
      .filter({ hasText: /figures below are \d+ \w+ old/ })
      .waitFor()
    await until("figures of before are dimmed", () =>
      seen.page.evaluate<boolean>("getComputedStyle(document.getElementById('overview')).opacity < 0.6")
    )
    await seen.screenshot("dashboard-stale")
    await cluster.scheduler.start()
    await seen.page.locator("#node-status.good").waitFor()
    expect(await seen.page.title()).not.toContain("no answer")
    await until("figures of now are not", () =>
      seen.page.evaluate<boolean>("getComputedStyle(document.getElementById('overview')).opacity === '1'")
    )
    await seen.close()
  })
})
