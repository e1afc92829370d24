/**
 * The bindings with the real libraries: what is shown follows the view, only what changed is rendered, and the view is
 * let go of with the last component.
 */
import { createCollection } from "@tanstack/db"
import { createElement, type FunctionComponent, memo, StrictMode, Suspense } from "react"
import { derived, get } from "svelte/store"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import type { Live, NamedTypes } from "../../src/client/api.ts"
import { LiveClient } from "../../src/client/live.ts"
import { useView, useViewSuspense } from "../../src/client/react.ts"
import { viewStore } from "../../src/client/svelte.ts"
import { viewCollection } from "../../src/client/tanstack-db.ts"
import { FakeServer } from "./fakeServer.ts"
import { VirtualWorld } from "./virtualWorld.ts"

interface Post {
  readonly id: string
  readonly n: number
}

let world: VirtualWorld
let server: FakeServer
let live: Live
beforeEach(() => {
  world = new VirtualWorld(rng(5))
  server = new FakeServer(world, rng(6))
  server.tokenMs = 3_600_000
  // The client of a page, with the time of the test.
  live = new LiveClient({ url: "http://server", token: async () => server.token() }, world) as unknown as Live
})

const posts = (...numbers: ReadonlyArray<number>): ReadonlyArray<{ id: string; n: number }> =>
  numbers.map((n, at) => ({ id: `post:${at}`, n }))

const rendered: Array<string> = []
const Row = memo(({ row }: { readonly row: Post }) => {
  rendered.push(row.id)
  return `${row.n} `
})
const List: FunctionComponent = () => useViewSuspense<Post>(live, "posts").rows.map(({ n }) => `row ${n}`)

describe("React", () => {
  const before = new Map<string, unknown>()
  const scope = globalThis as { [name: string]: unknown }
  let act: (run: () => Promise<void>) => Promise<void>
  let createRoot: (element: unknown) => { render: (node: unknown) => void; unmount: () => void }
  beforeAll(async () => {
    const { Window } = await import("happy-dom")
    const window = new Window()
    // For React alone: workers of the test runner are shared, so all of it is taken away again.
    for (const [name, value] of Object.entries({
      window,
      document: window.document,
      ...("navigator" in scope ? {} : { navigator: window.navigator }),
      IS_REACT_ACT_ENVIRONMENT: true
    })) {
      before.set(name, scope[name])
      scope[name] = value
    }
    ;({ act } = (await import("react")) as never)
    // Named so, because its types need those of a browser.
    const name = "react-dom/client"
    ;({ createRoot } = (await import(name)) as never)
  })
  afterAll(() => {
    for (const [name, value] of before)
      if (value === undefined) delete scope[name]
      else scope[name] = value
  })

  const mount = async (component: FunctionComponent) => {
    const element = (scope["document"] as { createElement: (tag: string) => { textContent: string } }).createElement(
      "div"
    )
    const root = createRoot(element)
    await act(async () => root.render(createElement(StrictMode, null, createElement(component))))
    return { text: () => element.textContent, unmount: () => act(async () => root.unmount()) }
  }
  const pass = (ms: number): Promise<void> => act(() => world.pass(ms))

  it("with StrictMode renders the rows that changed and no others, and asks once", async () => {
    const view = server.add("posts", posts(1, 2, 3))
    rendered.length = 0
    const { text, unmount } = await mount(() => {
      const { rows, status } = useView<Post>(live, "posts")
      return [status, ": ", ...rows.map((row) => createElement(Row, { key: row.id, row }))]
    })
    expect(text()).toBe("loading: ")
    await pass(10)
    expect(text()).toBe("live: 1 2 3 ")
    rendered.length = 0
    server.change(view, posts(1, 5, 3))
    await pass(10)
    expect(text()).toBe("live: 1 5 3 ")
    // StrictMode renders twice what it renders.
    expect([...new Set(rendered)]).toEqual(["post:1"])
    expect([rendered.length, server.requests]).toEqual([2, ["/stream"]])
    await unmount()
    await pass(11_000)
    expect(server.connections.size).toBe(0)
  })
  it("follows another view when params change, and shows no rows of the one before", async () => {
    const shown = new Map<string, string>()
    for (const channel of ["a", "b"]) server.add(`posts-${channel}`, [{ id: `post:${channel}` }])
    const named = new LiveClient(
      {
        url: "http://server",
        views: async (_, params) => ({ view: `posts-${(params as { channel: string }).channel}`, ...server.token() })
      },
      world
    ) as unknown as Live<{ posts: { params: { channel: string }; row: Post } }>
    let turn = (_: string): void => {}
    const { useState } = await import("react")
    const { text, unmount } = await mount(() => {
      const [channel, setChannel] = useState("a")
      turn = setChannel
      const { rows } = useView(named, "posts", { channel })
      for (const { id } of rows) shown.set(`${channel} ${id}`, id)
      return rows.map(({ id }) => id)
    })
    await pass(10)
    expect(text()).toBe("post:a")
    await act(async () => turn("b"))
    await pass(10)
    expect([text(), [...shown.keys()]]).toEqual(["post:b", ["a post:a", "b post:b"]])
    await unmount()
  })
  it("below Suspense shows the fallback until the first rows are there", async () => {
    server.add("posts", posts(7))
    const { text, unmount } = await mount(() => createElement(Suspense, { fallback: "wait" }, createElement(List)))
    expect(text()).toBe("wait")
    await pass(10)
    expect([text(), server.requests]).toEqual(["row 7", ["/stream"]])
    await unmount()
    await pass(11_000)
    expect(server.connections.size).toBe(0)
  })
})

describe("Solid", () => {
  it("has a signal of the state, follows params that change, and lets go with its owner", async () => {
    // What a browser loads; in Node the package gives its build without signals.
    const { createEffect, createRoot, createSignal } = await import("solid-js")
    const { createView } = await import("../../src/client/solid.ts")
    for (const channel of ["a", "b"]) server.add(`posts-${channel}`, [{ id: `post:${channel}` }])
    const named = new LiveClient(
      {
        url: "http://server",
        views: async (_, params) => ({ view: `posts-${(params as { channel: string }).channel}`, ...server.token() })
      },
      world
    ) as unknown as Live<{ posts: { params: { channel: string }; row: Post } } & NamedTypes>
    const seen: Array<string> = []
    const [channel, setChannel] = createSignal("a")
    const dispose = createRoot((end) => {
      const state = createView(named, "posts", () => ({ channel: channel() }))
      createEffect(() => seen.push(`${state().status} ${state().rows.map((row) => (row as Post).id)}`))
      return end
    })
    await world.pass(10)
    setChannel("b")
    await world.pass(10)
    expect(seen.filter((each, n) => each !== seen[n - 1])).toEqual([
      "loading ",
      "live post:a",
      "loading ",
      "live post:b"
    ])
    dispose()
    await world.pass(11_000)
    expect(server.connections.size).toBe(0)
  })
})

describe("Svelte", () => {
  it("has a store that follows the view while it is subscribed to", async () => {
    const view = server.add("posts", posts(1, 2))
    const sum = derived(viewStore<Post>(live, "posts"), ({ rows }) => rows.reduce((all, { n }) => all + n, 0))
    const seen: Array<number> = []
    const stop = sum.subscribe((value) => void seen.push(value))
    await world.pass(10)
    server.change(view, posts(1, 2, 4))
    await world.pass(10)
    expect([seen.filter((each, n) => each !== seen[n - 1]), get(sum)]).toEqual([[0, 3, 7], 7])
    stop()
    await world.pass(11_000)
    expect(server.connections.size).toBe(0)
  })
})

describe("TanStack DB", () => {
  it("has a collection that is told of rows that changed, and no others", async () => {
    const view = server.add("posts", posts(1, 2, 3))
    const collection = createCollection(viewCollection<Post>({ live, view: "posts", getKey: ({ id }) => id }))
    const told: Array<string> = []
    const subscription = collection.subscribeChanges((changes) => {
      for (const { key, type } of changes) told.push(`${type} ${key}`)
    })
    await world.pass(10)
    expect([collection.status, collection.size]).toEqual(["ready", 3])
    told.length = 0
    server.change(view, [
      { id: "post:0", n: 1 },
      { id: "post:1", n: 9 },
      { id: "post:8", n: 8 }
    ])
    await world.pass(10)
    expect([told.sort(), collection.get("post:1")?.n]).toEqual([["delete post:2", "insert post:8", "update post:1"], 9])
    subscription.unsubscribe()
    await collection.cleanup()
    await world.pass(11_000)
    expect(server.connections.size).toBe(0)
  })
  it("says why when the view cannot be followed", async () => {
    server.accepts = () => false
    const collection = createCollection(viewCollection<Post>({ live, view: "posts", getKey: ({ id }) => id }))
    const ready = collection.preload().then(
      () => "ready",
      (error: Error) => error.message
    )
    await world.pass(1000)
    expect(await ready).toMatch(/the token has expired/)
    await collection.cleanup()
  })
})
