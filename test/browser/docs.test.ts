/**
 * The documents page of the SSP in a real browser, and the browser kit on pages that misbehave.
 *
 * Why the second: a kit that sees no fault would make every browser test pass.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Chromium, missing, named, type Visit } from "../../kit/processes/browser.ts"
import { closing } from "../../kit/processes/closing.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"

const later = closing()

/** A page of ours on a port of its own. */
const pageOf = async (html: string): Promise<string> => {
  const server = createServer((request, answer) =>
    request.url === "/" ? answer.writeHead(200, { "content-type": "text/html" }).end(html) : answer.writeHead(204).end()
  )
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  later(() => new Promise((done) => server.close(done)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe.skipIf(missing !== undefined)(named("in Chromium"), () => {
  let chromium: Chromium
  const visit = async (url: string): Promise<Visit> => {
    const window = await chromium.visit(url)
    later(() => window.close())
    return window
  }
  const openDocs = async (url: string) => {
    const window = await visit(url)
    window.page.setDefaultTimeout(60_000)
    return {
      page: window.page,
      faults: window.faults,
      go: () => window.go("/docs"),
      screenshot: () => window.screenshot("ssp-docs-tried")
    }
  }
  beforeAll(async () => {
    chromium = await Chromium.launch()
  })
  afterAll(() => chromium.close())

  it("GET /docs shows every group of endpoints, without an error and without a request elsewhere", async () => {
    const door = await Door.start()
    later(() => door.close())
    const window = await visit(door.url)
    await window.go("/docs")
    await window.page.getByText("/view/register", { exact: true }).first().waitFor()
    await window.page.getByText("/ingest", { exact: true }).first().waitFor()
    await window.screenshot("ssp-docs")
    expect(window.faults).toEqual([])
  })
  it("GET /docs tries an operation out with its example, which the service takes", async () => {
    const door = await Door.start()
    later(() => door.close())
    const { faults, go, page, screenshot } = await openDocs(door.url)
    await go()
    await page.getByRole("button", { name: "Authorize" }).first().click()
    await page.locator(".auth-container input").fill(secret)
    await page
      .locator(".auth-btn-wrapper")
      .getByRole("button", { name: /Apply|Authorize/ })
      .click()
    await page.locator(".auth-btn-wrapper").getByRole("button", { name: "Close" }).click()
    const blockOf = (method: string, path: string) => page.locator(`.opblock-${method}:has([data-path="${path}"])`)
    const tryOut = async (method: string, path: string): Promise<string> => {
      const block = blockOf(method, path)
      await block.locator(".opblock-summary-control").first().click()
      await block.getByRole("button", { name: "Try it out" }).click()
      await block.getByRole("button", { name: "Execute" }).click()
      return block.locator(".live-responses-table .response-col_status").last().innerText()
    }
    expect(await tryOut("post", "/view/register")).toMatch(/^200/)
    expect(await tryOut("post", "/ingest")).toMatch(/^200/)
    expect(await tryOut("get", "/view/{view_id}")).toMatch(/^200/)
    await blockOf("get", "/view/{view_id}").locator(".live-responses-table").getByText("cars:gt").first().waitFor()
    await screenshot()
    expect(faults).toEqual([])
  })
  it("the kit sees an error on the console, an exception, and a request and a socket that want to leave", async () => {
    const window = await visit(
      await pageOf(`<!doctype html><script>
      console.error("said"); fetch("http://elsewhere.example/x").catch(() => {}); new WebSocket("ws://elsewhere.example/y"); setTimeout(() => { throw new Error("thrown") }, 0)
    </script>`)
    )
    await window.go("/")
    for (const fault of [
      "console: said",
      "exception: Error: thrown",
      "request to http://elsewhere.example/x",
      "socket to ws://elsewhere.example/y"
    ]) {
      await until(`a fault "${fault}"`, () => window.faults.some((text) => text.includes(fault)))
    }
  })
  it("the kit sees nothing on a page that behaves, data urls and its own requests included", async () => {
    const window = await visit(
      await pageOf(
        `<!doctype html><link rel="icon" href="data:,"><p>fine</p><script>fetch("/own").then(() => { document.title = "done" })</script>`
      )
    )
    await window.go("/")
    await until("its own request", async () => (await window.page.title()) === "done")
    expect(window.faults).toEqual([])
  })
})
