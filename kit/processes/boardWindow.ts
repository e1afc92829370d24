/**
 * A window on the board of `npm start` that keeps every state it showed, and a model of the board that says which states
 * there were.
 *
 * What is kept is the document after each change of it, so that a mistake of the page counts as one of the client's.
 */
import { expect } from "vitest"
import { begun, type Edit } from "../../scripts/start/board/records.ts"
import type { Chromium, Visit } from "./browser.ts"
import { until } from "./Door.ts"

/** A post as a line of text: title, votes, comments with replies. */
type Shown = ReadonlyArray<string>

/** Keeps what the document shows, and the status, whenever it differs from what it showed last. */
const record = `
  globalThis.states = []
  globalThis.statuses = []
  const text = (within, selector) => within.querySelector(selector).textContent
  const said = (li) => text(li, ".author") + ": " + text(li, ".text")
  const line = (post) => [text(post, ".title"), text(post, ".votes"), ...[...post.querySelectorAll(".comment")].map((li) =>
    [said(li), ...[...li.querySelectorAll(".reply")].map(said)].join(" < "))].join(" | ")
  new MutationObserver(() => {
    if (document.querySelector("#status")?.textContent !== statuses.at(-1)) statuses.push(text(document, "#status"))
    const posts = [...document.querySelectorAll("#posts > li")].map(line)
    if (posts.length > 0 && JSON.stringify(posts) !== JSON.stringify(states.at(-1))) states.push(posts)
  }).observe(document, { subtree: true, childList: true, characterData: true })`

export class BoardWindow {
  readonly visit: Visit
  readonly name: string
  /** What the page's script wrote on the console; the browser itself names each request that failed. */
  readonly lines: ReadonlyArray<string>
  /** Paths of the requests that it made. */
  readonly asked: ReadonlyArray<string>

  private constructor(visit: Visit, name: string, lines: ReadonlyArray<string>, asked: ReadonlyArray<string>) {
    this.visit = visit
    this.name = name
    this.lines = lines
    this.asked = asked
  }

  static async open(chromium: Chromium, board: string, service: string): Promise<BoardWindow> {
    const visit = await chromium.visit(board, { asks: service })
    const { page } = visit
    page.setDefaultTimeout(60_000)
    const lines: Array<string> = []
    const asked: Array<string> = []
    page.on("console", (message) => {
      if (!message.text().startsWith("Failed to load resource")) lines.push(message.text())
    })
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    await page.addInitScript(record)
    await visit.go("/")
    await page.locator("#status.live").waitFor()
    await page.locator("#posts > li").first().waitFor()
    return new BoardWindow(visit, await page.locator(".who b").innerText(), lines, asked)
  }

  states(): Promise<ReadonlyArray<Shown>> {
    return this.visit.page.evaluate<ReadonlyArray<Shown>>("states")
  }

  /** In the order in which they were shown. */
  statuses(): Promise<ReadonlyArray<string>> {
    return this.visit.page.evaluate<ReadonlyArray<string>>("statuses")
  }

  post(title: string) {
    return this.visit.page.locator(".post", { has: this.visit.page.getByRole("heading", { name: title, exact: true }) })
  }

  /** Exceptions, and requests to where it has nothing to ask. */
  get faults(): ReadonlyArray<string> {
    return this.visit.faults.filter((fault) => !fault.startsWith("console: Failed to load resource"))
  }
}

interface Post {
  title: string
  votes: number
  readonly comments: Array<{ readonly id: string; readonly said: Array<string> }>
}

/** The first page of the board, as edits make it. It knows ids as the board gives them: one number after another. */
export class BoardModel {
  readonly #posts = new Map<string, Post>()
  #count = 0
  /** Every state that there was, the oldest first. */
  readonly had: Array<Shown> = []

  /** What is there before anyone comes. */
  fill(): void {
    for (const [title, votes, comments] of begun) this.#add("the house", title, votes, comments)
    this.keep()
  }

  #add(author: string, title: string, votes: number, comments: ReadonlyArray<string>): void {
    const id = `post:${++this.#count}`
    this.#posts.set(id, { title, votes, comments: [] })
    for (const said of comments) this.#comment(author, id, said)
  }

  /** What an edit that was taken makes of it. */
  take(author: string, edit: Edit): void {
    if (edit.kind === "post") this.#add(author, edit.title, 0, [])
    else if (edit.kind === "comment") this.#comment(author, edit.about, edit.text)
    else if (edit.kind === "remove") this.#posts.delete(edit.post)
    else this.#posts.get(edit.post)!.votes++
    this.keep()
  }

  /** The state as it is now is one that there was. */
  keep(): void {
    const now = [...this.#posts.values()]
      .sort((a, b) => b.votes - a.votes)
      .slice(0, 5)
      .map(({ comments, title, votes }) => [title, votes, ...comments.map(({ said }) => said.join(" < "))].join(" | "))
    if (JSON.stringify(now) !== JSON.stringify(this.had.at(-1))) this.had.push(now)
  }

  idOf(title: string): string {
    return [...this.#posts].find(([, post]) => post.title === title)![0]
  }

  #comment(author: string, about: string, text: string): void {
    const id = `comment:${++this.#count}`
    const post = this.#posts.get(about)
    if (post !== undefined) post.comments.push({ id, said: [`${author}: ${text}`] })
    else
      for (const { comments } of this.#posts.values())
        comments.find((comment) => comment.id === about)?.said.push(`${author}: ${text}`)
  }
}

/**
 * Waits until a window shows the state that there is now. Every state that it showed since the one numbered `from` must
 * be one that there was, none twice and none before an older one.
 */
export const caughtUp = async (window: BoardWindow, model: BoardModel, from = 0): Promise<void> => {
  const last = JSON.stringify(model.had.at(-1))
  const shown = await until("the window shows what there is", async () => {
    const states = await window.states()
    return JSON.stringify(states.at(-1)) === last && states
  }).catch(async () => window.states())
  const had = model.had.map((state) => JSON.stringify(state))
  let at = from - 1
  for (const state of shown) {
    const found = had.indexOf(JSON.stringify(state), at + 1)
    if (found < 0) expect({ shown: state }).toEqual({ had: model.had.slice(at) })
    at = found
  }
  expect(at).toBe(had.length - 1)
}
