/**
 * What a client does when things are as they should be, and what it says when they are not: requests, states, and the
 * one line on the console.
 */
import { beforeEach, describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { Followed, LiveClient, type Options } from "../../src/client/live.ts"
import { FakeServer, refusal } from "./fakeServer.ts"
import { VirtualWorld } from "./virtualWorld.ts"

let world: VirtualWorld
let server: FakeServer
beforeEach(() => {
  world = new VirtualWorld(rng(5))
  server = new FakeServer(world, rng(6))
})

const client = (options: Partial<Options> = {}): LiveClient =>
  new LiveClient({ url: "http://server", token: async () => server.token(), ...options }, world)

const follow = (live: LiveClient, view: string, params?: object): Followed<{ id: string; n?: number }> =>
  new Followed(live.view(view, params))

/** What a view says, in short. */
const said = ({ error, rows, status }: Followed<unknown>) => [status, error?.code, rows.length]

const rows = (...ids: ReadonlyArray<string>) => ids.map((id) => ({ id }))

describe("a view that is followed", () => {
  it("loads, is live, and follows; one request carries all that are followed in one go", async () => {
    const a = server.add("a", rows("x"))
    server.add("b", rows("y", "z"))
    const live = client()
    const views = [follow(live, "a"), follow(live, "b"), follow(live, "a")]
    expect(views.map(said)).toEqual(Array(3).fill(["loading", undefined, 0]))
    await world.pass(1)
    expect(views.map(said)).toEqual([
      ["live", undefined, 1],
      ["live", undefined, 2],
      ["live", undefined, 1]
    ])
    expect(server.requests).toEqual(["/stream"])
    expect(views[0]!.rows).toBe(views[2]!.rows)
    server.change(a, rows("x", "w"))
    await world.settle()
    expect(views[0]!.rows).toEqual(rows("x", "w"))
  })
  it("is added to a stream that runs and dropped from it, after the grace and not before", async () => {
    for (const id of ["a", "b"]) server.add(id, rows(id))
    const live = client({ graceMs: 5000 })
    follow(live, "a")
    await world.pass(1)
    const b = follow(live, "b")
    await world.pass(1)
    expect([said(b), server.requests]).toEqual([
      ["live", undefined, 1],
      ["/stream", "/stream/s1"]
    ])
    b.dispose()
    b.dispose()
    await world.pass(4000)
    const again = follow(live, "b")
    expect(said(again)).toEqual(["live", undefined, 1])
    await world.pass(4000)
    again.dispose()
    expect(server.requests.length).toBe(2)
    await world.pass(6000)
    expect(server.requests).toEqual(["/stream", "/stream/s1", "/stream/s1"])
    expect([...server.connections].map(({ places }) => places.map(({ isOver }) => isOver))).toEqual([[false, true]])
  })
  it("is one for all that ask for it, forgotten after the grace where none holds it, and followed once one does", async () => {
    server.add("a", rows("x"))
    const live = client({ graceMs: 5000 })
    const [unheld, other] = [live.view("a"), live.view("b")]
    expect(live.view("a")).toBe(unheld)
    await world.pass(6000)
    expect(live.view("b")).not.toBe(other)
    unheld.hold()
    await world.pass(1)
    expect([unheld.state.status, unheld.state.rows]).toEqual(["live", rows("x")])
    expect(live.view("a")).toBe(unheld)
    await world.pass(6000)
    expect(unheld.state.status).toBe("live")
    expect(server.requests).toEqual(["/stream"])
  })
  it("has its grace from when it was asked for last", async () => {
    server.add("a", rows("x"))
    const live = client({ graceMs: 5000 })
    const unheld = live.view("a")
    await world.pass(4000)
    expect(live.view("a")).toBe(unheld)
    await world.pass(4000)
    const release = unheld.hold()
    expect(live.view("a")).toBe(unheld)
    await world.pass(6000)
    release()
    await world.pass(4000)
    expect(live.view("a").state).toMatchObject({ status: "live", rows: rows("x") })
    await world.pass(4000)
    expect([live.view("a") === unheld, server.requests]).toEqual([true, ["/stream"]])
    await world.pass(6000)
    expect([live.view("a") === unheld, server.connections.size]).toEqual([false, 0])
  })
  it("keeps no program from ending while it was only asked for, and does while it is followed", async () => {
    server.add("a")
    const before = world.holding
    const view = client().view("a")
    expect(world.holding).toBe(before)
    const release = view.hold()
    await world.pass(1)
    expect(world.holding).toBeGreaterThan(before)
    release()
    await world.pass(11_000)
    expect(world.holding).toBe(before)
  })
  it("is let go with the connection, timers and all, when nothing follows any more", async () => {
    server.add("a")
    const live = client()
    const a = follow(live, "a")
    await world.pass(1)
    expect(server.connections.size).toBe(1)
    a.dispose()
    await world.pass(11_000)
    expect([server.connections.size, world.pending]).toEqual([0, 1])
  })
  it("resumes after a break with what it has, and is stale with a reason meanwhile", async () => {
    const a = server.add("a", rows("x"))
    const live = client()
    const view = follow(live, "a")
    await world.pass(1)
    const before = view.rows
    server.cut()
    await world.settle()
    expect(said(view)).toEqual(["stale", "CUT", 1])
    await world.pass(1000)
    expect([said(view), view.rows === before]).toEqual([["live", undefined, 1], true])
    server.cut()
    server.change(a, rows("x", "y"))
    await world.pass(1000)
    expect(view.rows).toEqual(rows("x", "y"))
    expect(view.rows[0]).toBe(before[0])
  })
  it("is told by listeners once for each piece of the stream, and a listener that throws stops no other", async () => {
    const a = server.add("a", rows("x"))
    const view = follow(client(), "a")
    await world.pass(1)
    const told: Array<number> = []
    view.subscribe(() => {
      throw new Error("a mistake of the page")
    })
    const stop = view.subscribe(() => void told.push(view.rows.length))
    server.change(a, rows("x", "y"))
    await world.settle()
    expect(told).toEqual([2])
    await expect(world.pass(1)).rejects.toThrow("a mistake of the page")
    stop()
    server.change(a, [])
    await world.settle()
    expect(told).toEqual([2])
  })
  it("is a list of states for `for await`, the newest ones, until it is disposed of", async () => {
    const a = server.add("a", rows("x"))
    const view = follow(client(), "a")
    const seen: Array<number> = []
    const reading = (async () => {
      for await (const { rows, status } of view) {
        if (status === "live") seen.push(rows.length)
        await world.settle()
      }
    })()
    await world.pass(1)
    server.change(a, rows("x", "y"))
    server.change(a, rows("x", "y", "z"))
    for (let n = 0; n < 3; n++) await world.settle()
    expect(seen).toEqual([1, 3])
    view[Symbol.dispose]()
    await reading
  })
  it("gives the same state until something changes, and the same rows when only the status does", async () => {
    server.add("a", rows("x"))
    const view = follow(client(), "a")
    await world.pass(1)
    const { state } = view
    expect(view.state).toBe(state)
    server.cut()
    await world.settle()
    expect([view.state === state, view.rows === state.rows]).toEqual([false, true])
  })
  it("goes over a second connection where the first has as many views as the server takes", async () => {
    for (const id of ["a", "b", "c"]) server.add(id, rows(id))
    const live = client({ viewsPerStream: 2 })
    const views = ["a", "b", "c"].map((id) => follow(live, id))
    await world.pass(1)
    expect(views.map(said)).toEqual(Array(3).fill(["live", undefined, 1]))
    expect(server.requests).toEqual(["/stream", "/stream"])
  })
  it("has its time renewed while it is looked at, all of one token in one request", async () => {
    for (const id of ["a", "b"]) server.add(id)
    server.tokenMs = 3_600_000
    const asked: Array<unknown> = []
    server.refuse = (path, body) => {
      if (path === "/view/touch") asked.push(body["views"])
      return undefined
    }
    const live = client()
    const [a, b] = [follow(live, "a"), follow(live, "b")]
    await world.pass(61_000)
    expect(asked).toEqual([["a", "b"]])
    a.dispose()
    await world.pass(60_000)
    expect(asked).toEqual([["a", "b"], ["b"]])
    b.dispose()
    await world.pass(300_000)
    expect(asked.length).toBe(2)
  })
})

describe("tokens", () => {
  it("are asked for once for all views of a moment, and renewed before they expire, without a gap", async () => {
    const a = server.add("a", rows("x"))
    server.add("b")
    const asked: Array<ReadonlyArray<string>> = []
    const live = client({ token: async (views) => (asked.push(views), server.token()) })
    const views = [follow(live, "a"), follow(live, "b")]
    let statuses = ""
    views[0]!.subscribe(() => (statuses += views[0]!.status + " "))
    for (let minute = 0; minute < 10; minute++)
      for (let second = 0; second < 60; second++) {
        await world.pass(1000)
        server.expire()
        if (second === 30) server.change(a, rows(`x${minute}`))
      }
    expect([server.expiries, statuses.split(" ").filter((status) => status === "stale")]).toEqual([0, []])
    expect(views[0]!.rows).toEqual(rows("x9"))
    expect(asked[0]).toEqual(["a", "b"])
    expect(asked.length).toBeGreaterThan(10)
    expect(server.requests.filter((path) => path === "/stream")).toEqual(["/stream"])
  })
  it("without a lifetime are renewed when they are refused, and what was shown goes on", async () => {
    const a = server.add("a", rows("x"))
    const live = client({ token: async () => server.token().token })
    const view = follow(live, "a")
    await world.pass(61_000)
    server.expire()
    server.change(a, rows("x", "y"))
    await world.pass(100)
    expect([server.expiries, said(view)]).toEqual([1, ["live", undefined, 2]])
  })
  it("that expired while a page slept are asked for anew when it wakes", async () => {
    server.add("a", rows("x"))
    server.add("b", rows("y"))
    let isAwake = true
    const live = client({ token: async () => (isAwake ? server.token() : Promise.reject(new Error("asleep"))) })
    const views = [follow(live, "a"), follow(live, "b")]
    await world.pass(1)
    isAwake = false
    server.refuse = () => refusal(503, "OVERLOADED", "asleep")
    server.cut()
    await world.pass(600_000)
    expect(said(views[0]!)).toEqual(["stale", "OVERLOADED", 1])
    isAwake = true
    server.refuse = () => undefined
    world.wake()
    await world.pass(5000)
    expect(views.map(said)).toEqual(Array(2).fill(["live", undefined, 1]))
    expect(world.said).toEqual([])
  })
  it("that come after the view's stream has ended open no stream without it, and the view goes on with them", async () => {
    const a = server.add("a", rows("x"))
    let give = (): void => undefined
    let isSlow = false
    // The second one is slow, the third fails.
    const live = client({
      token: async () => {
        if (isSlow && server.expiries > 0) throw new Error("not now")
        if (isSlow) await new Promise<void>((done) => (give = done))
        return server.token()
      }
    })
    const view = follow(live, "a")
    const bodies: Array<string> = []
    const { answer } = world
    world.answer = (address, init) => {
      if (address.endsWith("/stream")) bodies.push(String(init.body))
      return answer(address, init)
    }
    await world.pass(1)
    isSlow = true
    await world.pass(server.tokenMs)
    server.expire()
    server.change(a, rows("x", "y"))
    await world.pass(1)
    expect([server.expiries, said(view)]).toEqual([1, ["stale", "TOKEN", 1]])
    give()
    await world.pass(1)
    isSlow = false
    await world.pass(60_000)
    expect(said(view)).toEqual(["live", undefined, 2])
    expect(bodies.filter((body) => body.includes('"views":[]'))).toEqual([])
  })
  it("that the server does not accept are an error after one more, said in one line, and nothing is asked again", async () => {
    for (const id of ["a", "b"]) server.add(id)
    server.accepts = () => false
    const live = client()
    const views = [follow(live, "a"), follow(live, "b")]
    await world.pass(600_000)
    expect(views.map(said)).toEqual(Array(2).fill(["error", "UNAUTHORIZED", 0]))
    expect(views[0]!.error?.message).toBe("the token has expired")
    expect(server.requests.filter((path) => path === "/stream").length).toBe(2)
    expect(world.said.length).toBe(2)
    server.accepts = () => true
    views[0]!.retry()
    await world.pass(10)
    expect(said(views[0]!)).toEqual(["live", undefined, 0])
  })
  it("that the application does not give are an error; a function that fails is asked again, later and later", async () => {
    server.add("a")
    const none = follow(client({ token: async () => undefined }), "a")
    let calls = 0
    const failing = follow(client({ token: async () => Promise.reject(new Error(`no way ${++calls}`)) }), "a")
    await world.pass(60_000)
    expect([said(none), said(failing)]).toEqual([
      ["error", "TOKEN", 0],
      ["loading", "TOKEN", 0]
    ])
    expect(failing.error?.message).toBe(`the application's \`token\` failed: no way ${calls}`)
    expect(calls).toBeGreaterThan(3)
    expect(calls).toBeLessThan(12)
    expect(world.said.length).toBe(1)
  })
  it("do not depend on what the machine's clock says", async () => {
    // The client's own clock is the world's, which begins at 0; the server's could be any.
    server.add("a", rows("x"))
    const view = follow(client(), "a")
    await world.pass(200_000)
    server.expire()
    expect([server.expiries, said(view)]).toEqual([0, ["live", undefined, 1]])
  })
})
