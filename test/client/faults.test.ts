/**
 * Bad input of every kind, each with a status and a reason that a developer understands, no endless asking where it is
 * pointless, and at most one line on the console.
 */
import { beforeEach, describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { Followed, LiveClient, type Options } from "../../src/client/live.ts"
import { connect } from "../../src/client.ts"
import { FakeServer, refusal } from "./fakeServer.ts"
import { VirtualWorld } from "./virtualWorld.ts"

let world: VirtualWorld
let server: FakeServer
beforeEach(() => {
  world = new VirtualWorld(rng(7))
  server = new FakeServer(world, rng(8))
})

const follow = (view: string, options: Partial<Options> = {}, params?: object): Followed<unknown> =>
  new Followed(
    new LiveClient({ url: "http://server", token: async () => server.token(), ...options }, world).view(view, params)
  )

const asked = (path = "/stream"): number => server.requests.filter((each) => each === path).length

interface Case {
  /** What answers `POST /stream`, or what the network does. */
  readonly answer: () => Response | Promise<Response>
  readonly status: string
  readonly code: string
  readonly says: RegExp
  /** Requests within ten minutes: at least and at most. */
  readonly asks: readonly [number, number]
}

const cases: { readonly [what: string]: Case } = {
  "a server that is too old": {
    answer: () => refusal(404, "NOT_FOUND", "no such route"),
    status: "error",
    code: "TOO_OLD",
    says: /http:\/\/server\/stream answers 404: the server is too old/,
    asks: [1, 1]
  },
  "a web server that answers its page for everything": {
    answer: () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
    status: "error",
    code: "NOT_A_STREAM",
    says: /answers text\/html, not an event stream/,
    asks: [1, 1]
  },
  "an origin that is not let in": {
    answer: () => refusal(403, "FORBIDDEN", "origin http://page is not in SVC_BROWSER_ORIGINS"),
    status: "error",
    code: "FORBIDDEN",
    says: /SVC_BROWSER_ORIGINS/,
    asks: [1, 1]
  },
  "a server that is not there": {
    answer: () => Promise.reject(new TypeError("fetch failed")),
    status: "loading",
    code: "UNREACHABLE",
    says: /cannot be reached: fetch failed.*SVC_BROWSER_ORIGINS/,
    asks: [15, 40]
  },
  "a server that has too much to do": {
    answer: () => refusal(503, "OVERLOADED", "too many streams", { "retry-after": "60" }),
    status: "loading",
    code: "OVERLOADED",
    says: /too many streams/,
    asks: [9, 11]
  },
  "a gateway that answers for a server that is away": {
    answer: () => new Response("Bad Gateway", { status: 502 }),
    status: "loading",
    code: "NOT_A_STREAM",
    says: /answers 502, not as the service does/,
    asks: [15, 40]
  },
  "a connection that is accepted and never answered": {
    answer: () => new Promise<Response>(() => {}),
    status: "loading",
    code: "SILENT",
    says: /nothing was heard of http:\/\/server for \d+ s/,
    asks: [5, 12]
  },
  "a body that ends before anything came": {
    answer: () => new Response("", { headers: { "content-type": "text/event-stream" } }),
    status: "loading",
    code: "CUT",
    says: /has ended/,
    asks: [15, 40]
  },
  "a body that is no JSON": {
    answer: () => new Response("event: open\ndata: <html>\n\n", { headers: { "content-type": "text/event-stream" } }),
    status: "loading",
    code: "MISFIT",
    says: /sent "<html>", which is no JSON/,
    asks: [15, 40]
  }
}

describe("an answer that is", () => {
  for (const [what, { answer, asks, code, says, status }] of Object.entries(cases))
    it(`${what}: status ${status}, ${code}`, async () => {
      let requests = 0
      const real = world.answer
      world.answer = (address, init) =>
        address.endsWith("/stream") ? (requests++, Promise.resolve().then(answer)) : real(address, init)
      const view = follow("a")
      await world.pass(600_000)
      expect([view.status, view.error?.code, view.rows]).toEqual([status, code, []])
      expect(view.error?.message).toMatch(says)
      expect(requests).toBeGreaterThanOrEqual(asks[0])
      expect(requests).toBeLessThanOrEqual(asks[1])
      expect(world.said).toEqual(status === "error" ? [expect.stringMatching(says)] : [])
    })
})

describe("a view", () => {
  it("that is not there is an error that says what to do, asked for once", async () => {
    const view = follow("nothing")
    await world.pass(600_000)
    expect([view.status, view.error]).toEqual([
      "error",
      {
        code: "VIEW_NOT_FOUND",
        message: expect.stringMatching(/no view nothing\. It must be registered.*POST \/view\/register/)
      }
    ])
    expect([asked(), world.said.length]).toEqual([1, 1])
  })
  for (const [reason, code] of Object.entries({
    expired: "ENDED",
    revoked: "ENDED",
    quarantined: "ENDED",
    tooLarge: "ENDED"
  }))
    it(`that ends as ${reason} keeps its rows, is an error, and is not asked for again by itself`, async () => {
      const a = server.add("a", [{ id: "x" }])
      const view = follow("a")
      await world.pass(1)
      server.end(a, reason)
      await world.pass(600_000)
      expect([view.status, view.error?.code, view.rows]).toEqual(["error", code, [{ id: "x" }]])
      expect(view.error?.message).toContain(reason)
      expect(world.said.length).toBe(1)
      view.retry()
      await world.pass(100)
      expect(view.status).toBe("live")
    })
  it("that ends again and again is asked for later and later", async () => {
    const a = server.add("a", [{ id: "x" }])
    const view = follow("a")
    await world.pass(1)
    let ends = 0
    const stop = view.subscribe(() => {
      if (view.status === "live") ends++, world.after(0, () => server.end(a, "failed"))
    })
    server.end(a, "failed")
    await world.pass(600_000)
    stop()
    expect(ends).toBeGreaterThan(10)
    expect(ends).toBeLessThan(40)
  })
  it("whose deltas do not fit asks for a snapshot, later and later, and shows no half of them", async () => {
    server.add("a", [{ id: "x" }])
    const view = follow("a")
    await world.pass(1)
    const { rows } = view
    const wrong = (): void => {
      for (const { send } of server.connections)
        send('view: 0\nevent: delta\nid: 1.5\ndata: {"remove":[0],"update":[[7,{"id":"y"}]]}\n\n')
    }
    wrong()
    await world.settle()
    expect([view.status, view.error?.code, view.rows === rows]).toEqual(["stale", "MISFIT", true])
    await world.pass(10)
    expect([view.status, view.rows === rows]).toEqual(["live", true])
    view.subscribe(() => {
      if (view.status === "live") world.after(0, wrongEverywhere)
    })
    const wrongEverywhere = (): void => {
      for (const { places, send } of server.connections)
        for (const [place, { isOver }] of places.entries())
          if (!isOver) send(`view: ${place}\nevent: delta\nid: 1.5\ndata: {"update":[[7,1]]}\n\n`)
    }
    wrongEverywhere()
    await world.pass(600_000)
    expect(view.rows).toBe(rows)
    expect(asked()).toBeGreaterThan(10)
    expect(asked()).toBeLessThan(40)
  })
  it("whose snapshots do not fit is an error after some attempts", async () => {
    server.add("a", [{ id: "x" }])
    const broken = (text: string): string => text.replaceAll('"rows":', '"no":')
    server.pieces = (bytes) => [new TextEncoder().encode(broken(new TextDecoder().decode(bytes)))]
    const view = follow("a")
    await world.pass(600_000)
    expect([view.status, view.error?.code]).toEqual(["error", "MISFIT"])
    expect(world.said.length).toBe(1)
  })
  it("of a connection that goes silent is stale, and goes on over another", async () => {
    const a = server.add("a", [{ id: "x" }])
    const view = follow("a")
    await world.pass(1)
    // Held by a proxy that has lost the server: neither bytes nor an end.
    server.connections.clear()
    server.change(a, [])
    await world.pass(70_000)
    expect([view.status, view.rows, asked()]).toEqual(["live", [], 2])
  })
  it("of a page that wakes does not wait for the silence to be long", async () => {
    const a = server.add("a", [{ id: "x" }])
    const view = follow("a")
    await world.pass(1)
    server.connections.clear()
    server.change(a, [])
    await world.pass(21_000)
    expect(view.rows.length).toBe(1)
    world.wake()
    await world.pass(1)
    expect([view.status, view.rows]).toEqual(["live", []])
  })
})

describe("a named view", () => {
  const handler = (answer: (body: { view: string; params: object }) => Response) => {
    const real = world.answer
    const bodies: Array<{ view: string; params: object }> = []
    world.answer = async (address, init) => {
      if (address !== "/live") return real(address, init)
      bodies.push(JSON.parse(String(init.body)) as { view: string; params: object })
      return answer(bodies.at(-1)!)
    }
    return bodies
  }
  it("is asked for with its params, followed where the answer says, and registered again when it is gone", async () => {
    const bodies = handler(() => {
      if (!server.views.has("posts:1")) server.add("posts:1", [{ id: "x" }])
      return Response.json({ view: "posts:1", url: "http://server", ...server.token() })
    })
    const live = new LiveClient({ views: "/live" }, world)
    const view = new Followed(live.view("posts", { b: 1, a: { d: 1, c: 2 } }))
    const same = new Followed(live.view("posts", { a: { c: 2, d: 1 }, b: 1 }))
    await world.pass(1)
    expect([view.status, view.rows, view.rows === same.rows]).toEqual(["live", [{ id: "x" }], true])
    expect(bodies).toEqual([{ view: "posts", params: { b: 1, a: { d: 1, c: 2 } } }])
    const gone = server.views.get("posts:1")!
    server.views.delete("posts:1")
    server.end(gone, "expired")
    await world.pass(100)
    expect([view.status, bodies.length]).toEqual(["live", 2])
  })
  for (const [status, code] of [
    [400, "INVALID_PARAMS"],
    [401, "UNAUTHORIZED"],
    [404, "VIEW_NOT_FOUND"]
  ] as const)
    it(`that the handler refuses with ${status} is an error with what it says`, async () => {
      const bodies = handler(() => refusal(status, code, "posts.channel: expected a text"))
      const view = follow("posts", { views: "/live" }, {})
      await world.pass(600_000)
      expect([view.status, view.error, bodies.length]).toEqual([
        "error",
        { code, message: "posts.channel: expected a text" },
        1
      ])
    })
  it("whose handler answers something else says so; one that is away is asked again", async () => {
    handler(() => Response.json({ ok: true }))
    const wrong = follow("posts", { views: "/live" }, {})
    await world.pass(10)
    expect(wrong.error?.message).toBe("/live answers no view; is it a handler of named views?")
    handler(() => new Response("", { status: 503 }))
    const away = follow("posts", { views: "/live" }, {})
    await world.pass(10_000)
    expect([away.status, away.error?.message]).toEqual(["loading", "/live answers 503, not as the service does"])
  })
})

describe("options that make no sense", () => {
  it("are refused at once", () => {
    expect(() => connect({})).toThrow("connect needs `url`")
    expect(() => connect({ url: "http://server" }).view("posts", {})).toThrow("needs the option `views`")
    const live = connect({ url: "http://server" })
    live.close()
    expect(() => live.follow("a")).toThrow("the live client is closed")
  })
})
