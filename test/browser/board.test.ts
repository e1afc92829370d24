/**
 * The board of `npm start` in a real Chromium, in two windows: what one does the other shows, and goes on showing when it
 * was offline or asleep, when its token expires, and when the service is killed.
 *
 * Every state that a window shows is compared with the states that there were.
 */
import { join } from "node:path"
import { build } from "esbuild"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { bodyOf } from "../../kit/checks/http.ts"
import { campaign, long } from "../../kit/data/random.ts"
import { BoardModel, BoardWindow, caughtUp } from "../../kit/processes/boardWindow.ts"
import { Chromium, missing, named } from "../../kit/processes/browser.ts"
import { Door, freePort, removeFolder, secret, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"
import { root } from "../../kit/rules/source.ts"
import type { Edit } from "../../scripts/start/board/records.ts"
import { Board } from "../../scripts/start/board/server.ts"

const tokenMs = 6000
const top = "Open this page in a second window"
const second = "Kill an SSP while you watch"

/** A board with two windows, and what is expected of them. */
class Two {
  readonly board: Board
  readonly model: BoardModel
  readonly one: BoardWindow
  readonly other: BoardWindow
  /** States of the model when the windows were opened. */
  readonly begun: number

  private constructor(board: Board, model: BoardModel, one: BoardWindow, other: BoardWindow) {
    this.board = board
    this.model = model
    this.one = one
    this.other = other
    this.begun = model.had.length - 1
  }

  static async open(chromium: Chromium, board: Board, model: BoardModel, service: string): Promise<Two> {
    const [one, other] = await Promise.all([1, 2].map(() => BoardWindow.open(chromium, board.url, service)))
    return new Two(board, model, one!, other!)
  }

  /** As a page sends it; it is taken before this ends. */
  async edit(edit: Edit, by = this.one): Promise<void> {
    const status = await by.visit.page.evaluate(
      `fetch("/edits", { method: "POST", headers: { "content-type": "application/json" }, body: ${JSON.stringify(JSON.stringify(edit))} }).then((answer) => answer.status)`
    )
    expect(status).toBe(200)
    this.model.take(by.name, edit)
  }

  vote(title: string, by = this.one): Promise<void> {
    return this.edit({ kind: "vote", post: this.model.idOf(title) }, by)
  }

  /** Both show what there is, have shown nothing that there was not, and have said no more than one line. */
  async settle(): Promise<void> {
    for (const window of [this.one, this.other]) {
      await caughtUp(window, this.model, this.begun)
      expect(window.lines.length).toBeLessThanOrEqual(1)
      expect(window.faults).toEqual([])
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.one.visit.close(), this.other.visit.close()])
  }
}

let chromium: Chromium
beforeAll(async () => {
  if (missing === undefined) chromium = await Chromium.launch()
})
afterAll(() => chromium?.close())

/** How long the board sends an edit again: longer than a busy machine takes to start an SSP. */
const patienceMs = 120_000

describe.skipIf(missing !== undefined)(named("the board at an SSP"), () => {
  const folder = temporaryFolder()
  let board: Board
  let url: string
  let start: () => Promise<Door>
  let door: Door
  let two: Two
  const model = new BoardModel()
  const opened = async (): Promise<Two> => (two = await Two.open(chromium, board, model, url))

  beforeAll(async () => {
    const port = await freePort()
    board = await Board.listen(0, patienceMs)
    url = `http://127.0.0.1:${port}`
    const env = {
      LISTEN_ADDR: `127.0.0.1:${port}`,
      STORE_ADDR: undefined,
      SVC_BROWSER_ORIGINS: board.origins.join()
    }
    start = () => Door.spawn({ dataDir: folder, env })
    door = await start()
    await board.open({ url, secret, tokenMs, log: () => {} })
    model.fill()
  })
  afterEach(() => two?.close())
  afterAll(async () => {
    await board?.close()
    await door?.close()
    removeFolder(folder)
  })

  it("shows in one window what is done in the other: posts, votes, comments, replies, other pages", async () => {
    const { one, other } = await opened()
    const write = async (form: ReturnType<BoardWindow["post"]>, text: string) => {
      await form.getByRole("textbox").fill(text)
      await form.getByRole("textbox").press("Enter")
    }
    await one.post(second).getByRole("button", { name: "Vote" }).click()
    model.take(one.name, { kind: "vote", post: model.idOf(second) })
    await caughtUp(other, model, two.begun)
    await other.post(second).getByRole("button", { name: "Vote" }).click()
    model.take(other.name, { kind: "vote", post: model.idOf(second) })
    await caughtUp(one, model, two.begun)
    await write(other.post(top).locator("form").last(), "here")
    model.take(other.name, { kind: "comment", about: model.idOf(top), text: "here" })
    await caughtUp(one, model, two.begun)
    const comment = one.post(top).locator(".comment", { hasText: "here" })
    await comment.hover()
    await write(comment.locator("form"), "there")
    model.take(one.name, {
      kind: "comment",
      about: (await comment.getAttribute("data-id"))!,
      text: "there"
    })
    await caughtUp(other, model, two.begun)
    await one.visit.screenshot("board")
    // What is typed meanwhile stays, and so does the focus.
    await other.post(top).locator("form").last().getByRole("textbox").fill("half a sen")
    await write(one.visit.page.locator("main > form"), "one more")
    model.take(one.name, { kind: "post", title: "one more" })
    await two.vote(top)
    await until("the counter", async () =>
      (await other.visit.page.locator("#totals").innerText()).startsWith("8 posts")
    )
    expect(await other.visit.page.evaluate("document.activeElement.value")).toBe("half a sen")
    await other.visit.page.getByRole("button", { name: "Lower" }).click()
    await other.post("one more").waitFor()
    await other.post("one more").getByRole("button", { name: "Remove" }).click()
    model.take(other.name, { kind: "remove", post: model.idOf("one more") })
    await other.post("one more").waitFor({ state: "detached" })
    await caughtUp(one, model, two.begun)
    expect([one.lines, one.faults, other.lines, other.faults]).toEqual([[], [], [], []])
  })

  it("goes on where it was after being offline", async () => {
    const { one, other } = await opened()
    await two.vote(top)
    await other.visit.page.context().setOffline(true)
    await other.visit.page.locator("#status.stale").waitFor()
    for (let n = 0; n < 3; n++) await two.vote(second)
    await two.edit({ kind: "comment", about: model.idOf(top), text: "while you were away" })
    await caughtUp(one, model, two.begun)
    await other.visit.page.context().setOffline(false)
    await two.settle()
    await two.vote(top, other)
    await two.settle()
    // On a busy machine the first try to come back may break off too.
    expect((await other.statuses()).join(" ")).toMatch(/^loading live( stale live)+$/)
    expect(await one.statuses()).toEqual(["loading", "live"])
  })

  it("renews its token without a gap, and goes on after one that expired", async () => {
    const { one, other } = await opened()
    await other.visit.page.evaluate(
      `globalThis.real = fetch; globalThis.fetch = (to, init) => to === "/views" ? Promise.reject(new TypeError("held up")) : real(to, init)`
    )
    const streams = (window: BoardWindow) => window.asked.filter((path) => path === "/stream").length
    const ended = until("the token has expired", async () => (await other.statuses()).includes("stale"))
    for (let n = 0; n < 8; n++) {
      await two.vote(second)
      await sleep(tokenMs / 4)
    }
    await ended
    await two.vote(top)
    await caughtUp(one, model, two.begun)
    expect([await one.statuses(), streams(one)]).toEqual([["loading", "live"], 1])
    expect(one.asked.filter((path) => path === "/views").length).toBeGreaterThan(4)
    await other.visit.page.evaluate("globalThis.fetch = real")
    await two.settle()
    expect((await other.statuses()).join(" ")).toMatch(/^loading live( stale live)+$/)
  })

  it("shows what happened while the tab slept, longer than its token was good for", async () => {
    const { other } = await opened()
    const cdp = await other.visit.page.context().newCDPSession(other.visit.page)
    await cdp.send("Debugger.enable")
    const asleep = new Promise((done) => cdp.once("Debugger.paused", done))
    await cdp.send("Debugger.pause")
    for (let n = 0; n < 20; n++) await two.vote(n % 2 === 0 ? top : second)
    await asleep
    await sleep(campaign ? 180_000 : 2 * tokenMs)
    await two.edit({ kind: "comment", about: model.idOf(top), text: "good morning" })
    await cdp.send("Debugger.resume")
    await two.settle()
    expect(await two.one.statuses()).toEqual(["loading", "live"])
  })

  it("goes on after the SSP is killed and started again, with what was edited meanwhile", async () => {
    const { one, other } = await opened()
    for (let n = 0; n < (campaign ? 10 : 1); n++) {
      await two.vote(top)
      const voted = [two.vote(second, other)]
      await door.kill()
      for (const window of [one, other]) await window.visit.page.locator("#status.stale").waitFor()
      // Behind the edit that was on its way, which the board sends until it is taken.
      voted.push(voted[0]!.then(() => two.edit({ kind: "comment", about: model.idOf(second), text: `again ${n}` })))
      door = await start()
      await Promise.all(voted)
      await two.settle()
    }
    expect((await one.statuses()).slice(-1)).toEqual(["live"])
  })

  it("in React with StrictMode renders the rows that changed and no others", async () => {
    const { other } = await opened()
    const { page } = other.visit
    const { outputFiles } = await build({
      entryPoints: [join(root, "kit/data/reactPage.ts")],
      bundle: true,
      write: false,
      format: "esm",
      target: "es2022",
      define: { "process.env.NODE_ENV": '"development"' }
    })
    await page.addScriptTag({ type: "module", content: outputFiles[0]!.text })
    await page.locator("#react[data-status=live] li").nth(4).waitFor()
    const rendered = () => page.evaluate<ReadonlyArray<string>>("rendered.splice(0)")
    expect([...new Set(await rendered())].length).toBe(5)
    const votes = async () => (await page.locator("#react li").allInnerTexts()).find((text) => text.startsWith(top))
    const before = await votes()
    await two.vote(top)
    await until("the vote is shown", async () => (await votes()) !== before)
    // StrictMode renders twice what it renders.
    expect(await rendered()).toEqual([model.idOf(top), model.idOf(top)])
    expect(other.faults).toEqual([])
  })

  it.runIf(long)("holds its memory over many changes", async () => {
    const { other } = await opened()
    const cdp = await other.visit.page.context().newCDPSession(other.visit.page)
    const used = async () => {
      // What the test keeps of the states would grow.
      await other.visit.page.evaluate("states.length = 0")
      await cdp.send("HeapProfiler.collectGarbage")
      return (await cdp.send("Runtime.getHeapUsage")).usedSize
    }
    const changes = campaign ? 10_000 : 200
    const send = async (from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const edit: Edit = { kind: "vote", post: model.idOf(n % 3 === 0 ? top : second) }
        expect(await board.edit(edit, { id: "test", name: "test" })).toBeUndefined()
        model.take("test", edit)
      }
      const last = JSON.stringify(model.had.at(-1))
      await until("the last one is shown", async () => JSON.stringify((await other.states()).at(-1)) === last)
    }
    await send(0, changes / 4)
    const before = await used()
    await send(changes / 4, changes)
    expect((await used()) - before).toBeLessThan(500_000)
    expect((await other.statuses()).at(-1)).toBe("live")
  })
})

describe.skipIf(missing !== undefined)(named("the board at a cluster"), () => {
  it("goes on when the SSP of its views is killed and they move", async ({ onTestFinished }) => {
    const model = new BoardModel()
    const board = await Board.listen(0, patienceMs)
    onTestFinished(() => board.close())
    const cluster = await ProcessCluster.start(2, { SVC_BROWSER_ORIGINS: board.origins.join() })
    onTestFinished(() => cluster.close())
    const { url } = cluster.scheduler
    await board.open({ url, secret })
    model.fill()
    const two = await Two.open(chromium, board, model, url)
    onTestFinished(() => two.close())
    const ownerOf = async (name: string): Promise<string | null> => {
      const { views } = bodyOf((await cluster.scheduler.ask({ path: "/views" }))!) as {
        readonly views: ReadonlyArray<{ readonly id: string; readonly owner: string | null }>
      }
      return views.find(({ id }) => id.includes(name))?.owner ?? null
    }
    for (let n = 0; n < (campaign ? 10 : 1); n++) {
      await two.vote(second)
      const owner = await until("the posts have an SSP", () => ownerOf("posts").then((id) => id ?? undefined))
      const ssp = cluster.ssps.find(({ name }) => name === owner)!
      await Promise.all([ssp.kill(), two.vote(top), two.vote(second, two.other)].map((each) => each))
      await two.edit({ kind: "comment", about: model.idOf(top), text: `moved ${n}` })
      await two.settle()
      expect(await ownerOf("posts")).not.toBe(owner)
      await ssp.start()
      await cluster.settled()
    }
    expect(await two.one.statuses()).toEqual(["loading", "live"])
  })
})
