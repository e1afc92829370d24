/**
 * The programs of docs/client.md: the page shows the files that run here, and they do what it says.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createElement } from "react"
import { get } from "svelte/store"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import { connect, type Live } from "../../src/client.ts"
import * as Page from "./example/page.ts"
import { Posts } from "./example/react.ts"
import * as Solid from "./example/solid.ts"
import { titlesOf } from "./example/svelte.ts"
import { postsOf } from "./example/tanstackDb.ts"
import { route } from "./example/views.ts"
import { rowsFor } from "./example/writeRows.ts"
import { FakeServer } from "./fakeServer.ts"
import { VirtualWorld } from "./virtualWorld.ts"

const folder = join(root, "test/client/example")
const first = [{ id: "post:1", title: "one" }]
const both = [...first, { id: "post:2", title: "two" }]

let server: FakeServer
let live: Live
beforeEach(() => {
  const world = new VirtualWorld(rng(1))
  server = new FakeServer(world, rng(2))
  // Whatever a program calls its token.
  server.takesAny = true
  server.add("incantation:posts", first)
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    if (address.endsWith("/view/register")) return Response.json({})
    if (address.endsWith("/view/token")) return Response.json(server.token())
    return world.answer(address, init)
  })
  live = connect({ url: "http://live.test" })
})
afterEach(() => {
  live.close()
  vi.unstubAllGlobals()
})

const change = () => server.change(server.views.get("incantation:posts")!, both)

describe("docs/client.md", () => {
  it("shows every program as it runs here", () => {
    const page = readFileSync(join(root, "docs/client.md"), "utf8")
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), "utf8")
      expect(page).toContain(text.replaceAll('"../../../src/', '"surreal-live-sidecar/').replaceAll('.ts"', '"'))
    }
  })
  it("a page follows a view", async () => {
    const lines: Array<string> = []
    const { stop } = Page.showPosts((line) => lines.push(line))
    await until("the view is shown", () => lines.includes("live: one"))
    change()
    await until("the view is shown", () => lines.at(-1) === "live: one, two")
    stop()
  })
  it("React's component is what it says before there are rows", async () => {
    const { renderToString } = (await import("react-dom/server" as string)) as {
      readonly renderToString: (node: unknown) => string
    }
    expect(renderToString(createElement(Posts, { live }))).toBe('<ul data-status="loading"></ul>')
    const view = live.follow("incantation:posts")
    await until("the view is shown", () => view.status === "live")
    expect(renderToString(createElement(Posts, { live }))).toBe('<ul data-status="live"><li>one</li></ul>')
  })
  it("Solid, Svelte and TanStack DB follow it", async () => {
    const lines: Array<string> = []
    const dispose = Solid.showPosts(live, (line) => lines.push(line))
    const titles = titlesOf(live)
    const stop = titles.subscribe(() => {})
    const posts = postsOf(live)
    await posts.preload()
    await until("the view is shown", () => lines.at(-1) === "one")
    change()
    await until("the view is shown", () => lines.at(-1) === "one, two" && posts.size === 2)
    expect(get(titles)).toEqual(["one", "two"])
    dispose()
    stop()
    await posts.cleanup()
  })
  it("types of rows are written from the query and the schema", async () => {
    expect(await rowsFor("DEFINE FIELD title ON post TYPE string")).toContain(
      "readonly posts: { readonly id: `post:${string}`; readonly title: string }"
    )
  })
  it("the handler of named views gives a user what the user may have", async () => {
    const ask = (channel: string) =>
      route(
        new Request("http://app.test/views", {
          method: "POST",
          headers: { "content-type": "application/json", cookie: "session=ann" },
          body: JSON.stringify({ view: "posts", params: { channel } })
        })
      )
    const given = await ask("news")
    expect([given.status, await given.json()]).toEqual([
      200,
      {
        view: expect.stringMatching(/^incantation:posts-/),
        token: expect.any(String),
        expires_in_ms: expect.any(Number),
        url: "http://live.test"
      }
    ])
    expect((await ask("secrets")).status).toBe(403)
  })
})
