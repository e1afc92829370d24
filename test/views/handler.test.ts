/**
 * The handler of named views: who gets what, what is refused and how, and that no secret leaves it. The service behind
 * it is a fake; `test/client/fakeServer.ts` stands for it where a client follows what it is given.
 */
import { beforeEach, describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { Followed, LiveClient } from "../../src/client/live.ts"
import { type HandlerOptions, makeHandler, type ViewsHandler } from "../../src/views/handler.ts"
import { Holdings } from "../../src/views/holdings.ts"
import { defineViews } from "../../src/views.ts"
import { FakeServer, refusal } from "../client/fakeServer.ts"
import { VirtualWorld } from "../client/virtualWorld.ts"
import { type User, views } from "./types.ts"

const secret = "the-root-secret"
const users: { readonly [cookie: string]: User } = {
  "session=ann": { id: "ann", channels: ["a", "b", "c"] },
  "session=bob": { id: "bob", channels: ["a"] }
}

interface Call {
  readonly path: string
  readonly body: { readonly [name: string]: unknown }
  readonly init: RequestInit
}

let calls: Array<Call>
let said: Array<string>
let now: number
let upstream: (path: string) => Response | Promise<Response>
beforeEach(() => {
  calls = []
  said = []
  now = 1_000_000
  upstream = (path) =>
    Response.json(path === "/view/token" ? { token: "t.1", expires_in_ms: 300_000 } : { result_data: [] })
})

const handlerOf = (options: Partial<HandlerOptions<User>> = {}): ViewsHandler =>
  makeHandler(
    views.declarations,
    {
      url: "http://service/",
      secret,
      authenticate: (request) => users[request.headers.get("cookie") ?? ""],
      ...options
    },
    {
      fetch: async (address, init) => {
        const path = address.slice("http://service".length)
        calls.push({ path, init, body: JSON.parse(String(init.body)) as Call["body"] })
        return upstream(path)
      },
      now: () => now,
      say: (line) => void said.push(line)
    }
  )

const request = (body: unknown, headers: { readonly [name: string]: string } = {}, method = "POST"): Request =>
  new Request("http://app/views", {
    method,
    headers: { "content-type": "application/json", cookie: "session=ann", ...headers },
    ...(method === "POST" ? { body: typeof body === "string" ? body : JSON.stringify(body) } : {})
  })

interface Answered {
  readonly status: number
  readonly body: { readonly [name: string]: unknown }
  readonly headers: Headers
}

const ask = async (handler: ViewsHandler, given: Request): Promise<Answered> => {
  const answer = await handler(given)
  const text = await answer.text()
  return { status: answer.status, body: text === "" ? {} : JSON.parse(text), headers: answer.headers }
}
const posts = (channel = "a") => ({ view: "posts", params: { channel } })

describe("a view that is asked for", () => {
  it("is registered with the secret, then a token for it alone is answered", async () => {
    const { body, headers, status } = await ask(handlerOf({ publicUrl: "https://live.example.com" }), request(posts()))
    const [registered, token] = calls
    const id = String(registered?.body["id"])
    expect(id).toMatch(/^incantation:posts-[0-9a-f]{40}$/)
    expect([status, body, headers.get("cache-control")]).toEqual([
      200,
      { view: id, token: "t.1", expires_in_ms: 300_000, url: "https://live.example.com" },
      "no-store"
    ])
    expect(calls.map(({ path }) => path)).toEqual(["/view/register", "/view/token"])
    expect(registered?.body).toMatchObject({ params: { channel: "a", since: null }, ttl: "900s", format: "tree" })
    expect(token?.body).toMatchObject({ views: [id], ttl_ms: 300_000 })
    for (const { init } of calls)
      expect([new Headers(init.headers).get("authorization"), init.redirect]).toEqual([`Bearer ${secret}`, "error"])
    expect(JSON.stringify(calls.map(({ body }) => body))).not.toContain('"ann"')
  })
  it("has one id for one query with the same values, whichever user asks, and another for others", async () => {
    const handler = handlerOf()
    const idOf = async (body: object, cookie = "session=ann") =>
      (await ask(handler, request(body, { cookie }))).body["view"]
    const id = await idOf(posts())
    expect(await idOf(posts(), "session=bob")).toBe(id)
    expect(await idOf(posts("b"))).not.toBe(id)
    const mine = { view: "mine", params: {} }
    expect(await idOf(mine)).not.toBe(await idOf(mine, "session=bob"))
  })
  it("D66 has its integers of 64 bits with all their digits, and another id for each", async () => {
    const handler = handlerOf()
    const digits = ["987654321987654321", "987654321987654322"]
    const ids = await Promise.all(
      digits.map(async (n) => (await ask(handler, request({ view: "numbered", params: { n } }))).body["view"])
    )
    expect(new Set(ids).size).toBe(2)
    const bodies = calls.filter(({ path }) => path === "/view/register").map(({ init }) => String(init.body))
    expect(bodies.map((body) => /"params":\{"n":(\d+)\}/.exec(body)?.[1]).sort()).toEqual(digits)
    const { body, status } = await ask(handler, request('{"view":"numbered","params":{"n":1e400}}'))
    expect([status, body["details"]]).toEqual([
      400,
      [{ path: "params.n", reason: "is 1e400, which neither a 64-bit integer nor a float can hold" }]
    ])
  })
  it("is asked for with the secret of the moment", async () => {
    let current = "one"
    const handler = handlerOf({ secret: () => current })
    await ask(handler, request(posts()))
    current = "two"
    await ask(handler, request(posts()))
    expect(calls.map(({ init }) => new Headers(init.headers).get("authorization"))).toEqual(
      ["one", "one", "two", "two"].map((text) => `Bearer ${text}`)
    )
  })
  it("is followed by a client, from the name to the rows, and renewed in time", async () => {
    const world = new VirtualWorld(rng(1))
    const server = new FakeServer(world, rng(2))
    server.tokenMs = 300_000
    upstream = (path) => {
      if (path === "/view/token") return Response.json(server.token())
      const id = String(calls.at(-1)?.body["id"])
      if (!server.views.has(id)) server.add(id, [{ id: "post:1" }])
      return Response.json({})
    }
    const handler = handlerOf()
    const serve = world.answer
    world.answer = (address, init) =>
      address === "http://app/views" ? handler(request(String(init.body))) : serve(address, init)
    const live = new LiveClient({ url: "http://server", views: "http://app/views" }, world)
    const view = new Followed(live.view("posts", { channel: "a" }))
    const statuses = new Set<string>()
    view.subscribe(() => statuses.add(view.status))
    for (let minute = 0; minute < 20; minute++) {
      await world.pass(60_000)
      server.expire()
    }
    expect([view.rows, view.status, [...statuses], server.expiries]).toEqual([
      [{ id: "post:1" }],
      "live",
      ["loading", "live"],
      0
    ])
    const refused = new Followed(live.view("posts", { channel: "z" }))
    await world.pass(100)
    expect([refused.status, refused.error?.code]).toEqual(["error", "FORBIDDEN"])
  })
})

describe("a request is refused, with a reason, before the service is asked", () => {
  const cases: { readonly [what: string]: readonly [Request | (() => Request), number, string, RegExp] } = {
    "without a user": [() => request(posts(), { cookie: "" }), 401, "UNAUTHORIZED", /knows no user/],
    "for what the user may not have": [() => request(posts("z")), 403, "FORBIDDEN", /may not have the view posts/],
    "for no view": [() => request({ view: "constructor" }), 404, "VIEW_NOT_FOUND", /no view "constructor"/],
    "with params that do not fit": [
      () => request({ view: "posts", params: { channel: 1 } }),
      400,
      "INVALID_REQUEST",
      /^params\.channel: Expected string/
    ],
    "without params that are needed": [
      () => request({ view: "posts" }),
      400,
      "INVALID_REQUEST",
      /^params\.channel: is missing/
    ],
    "without a name": [() => request({}), 400, "INVALID_REQUEST", /^view: /],
    "with a body that is cut": [() => request('{"view":"pos'), 400, "INVALID_REQUEST", /no JSON/],
    "with a body that is null": [() => request("null"), 400, "INVALID_REQUEST", /Expected/],
    "with a body that is too long": [
      () => request({ ...posts(), more: "x".repeat(16_384) }),
      413,
      "PAYLOAD_TOO_LARGE",
      /16384 bytes \(option `maxBodyBytes`\)/
    ],
    "as a form sends it": [
      () => request(posts(), { "content-type": "text/plain; application/json" }),
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /application\/json/
    ],
    "with another method": [() => request(undefined, {}, "GET"), 405, "NOT_FOUND", /POST/],
    "from a page of another origin": [
      () => request(posts(), { origin: "https://evil.example" }),
      403,
      "FORBIDDEN",
      /https:\/\/evil\.example may not ask .*`origins`/
    ],
    "from a page of another site, by what its browser says": [
      () => request(posts(), { "sec-fetch-site": "cross-site" }),
      403,
      "FORBIDDEN",
      /another origin/
    ],
    "from a page of the same site that is not the origin": [
      () => request(posts(), { origin: "https://evil.app", "sec-fetch-site": "same-site" }),
      403,
      "FORBIDDEN",
      /evil/
    ],
    "from a page in a frame without an origin": [() => request(posts(), { origin: "null" }), 403, "FORBIDDEN", /null/]
  }
  for (const [what, [given, status, code, reason]] of Object.entries(cases))
    it(`${what}: ${status} ${code}`, async () => {
      const answer = await ask(handlerOf(), typeof given === "function" ? given() : given)
      expect([answer.status, answer.body["code"]]).toEqual([status, code])
      expect(answer.body["message"]).toMatch(reason)
      expect([calls, said, answer.headers.get("access-control-allow-origin")]).toEqual([[], [], null])
    })
  it("but not from the handler's own pages, behind a proxy too, nor from what is no browser", async () => {
    for (const headers of [
      {},
      { origin: "http://app" },
      { origin: "https://app.example.com", "sec-fetch-site": "same-origin" }
    ])
      expect((await ask(handlerOf(), request(posts(), headers as { readonly [name: string]: string }))).status).toBe(
        200
      )
  })
  it("nor from pages of a listed origin, whose browsers are told so, and those of no other", async () => {
    const handler = handlerOf({ origins: ["https://app.example.com"] })
    const origin = "https://app.example.com"
    for (const method of ["OPTIONS", "POST"]) {
      const answer = await ask(handler, request(posts(), { origin, "sec-fetch-site": "cross-site" }, method))
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([
        method === "POST" ? 200 : 204,
        origin
      ])
      expect(answer.headers.get("access-control-allow-credentials")).toBe("true")
    }
    const other = await ask(handler, request(undefined, { origin: `${origin}.evil` }, "OPTIONS"))
    expect([other.headers.get("access-control-allow-origin"), other.headers.get("vary")]).toEqual([null, "origin"])
  })
})

describe("limits", () => {
  it("a user has so many views at a time, a view that is asked for again counts once, and time gives places back", async () => {
    const handler = handlerOf({ viewsPerUser: 2 })
    const statusOf = async (channel: string) => (await ask(handler, request(posts(channel)))).status
    expect([await statusOf("a"), await statusOf("b"), await statusOf("a")]).toEqual([200, 200, 200])
    const full = await ask(handler, request(posts("c")))
    expect([full.status, full.body["code"], full.headers.get("retry-after")]).toEqual([429, "RATE_LIMITED", "900"])
    expect(full.body["message"]).toBe("a user has at most 2 views at a time (option `viewsPerUser`)")
    expect((await ask(handler, request(posts("a"), { cookie: "session=bob" }))).status).toBe(200)
    now += 900_000
    expect(await statusOf("c")).toBe(200)
  })
  it("a view that the service refused takes no place", async () => {
    const handler = handlerOf({ viewsPerUser: 1 })
    const good = upstream
    upstream = () => refusal(503, "OVERLOADED", "full")
    expect((await ask(handler, request(posts("a")))).status).toBe(503)
    upstream = good
    expect((await ask(handler, request(posts("b")))).status).toBe(200)
  })
  it("users are counted up to a limit, and forgotten when their views are over", () => {
    const holdings = new Holdings({ viewsPerUser: 5, users: 2 })
    holdings.hold("a", "v", 0, 10)
    holdings.hold("b", "v", 0, 20)
    expect(holdings.hold("c", "v", 5, 30)).toMatchObject({ full: "users" })
    expect(holdings.hold("a", "w", 5, 40)).toHaveProperty("undo")
    expect(holdings.hold("c", "v", 25, 30)).toHaveProperty("undo")
    expect(holdings.users).toBe(2)
  })
})

describe("what the service answers", () => {
  const cases: { readonly [what: string]: readonly [Response | Error, number, string] } = {
    "the secret is wrong": [refusal(401, "UNAUTHORIZED", "the bearer secret is wrong"), 502, "SSP_UNREACHABLE"],
    "the query is wrong": [
      refusal(400, "INVALID_QUERY", `no ${secret.length} SELECT password FROM user`),
      400,
      "INVALID_QUERY"
    ],
    "it is set aside": [refusal(409, "VIEW_QUARANTINED", "ended processes"), 409, "VIEW_QUARANTINED"],
    "it is not ready": [refusal(503, "SSP_NOT_READY", "wait", { "retry-after": "3" }), 503, "SSP_NOT_READY"],
    "something between is full": [new Response("busy", { status: 503 }), 503, "OVERLOADED"],
    "it cannot be reached": [new Error("ECONNREFUSED 10.0.0.1"), 502, "SSP_UNREACHABLE"]
  }
  for (const [what, [given, status, code]] of Object.entries(cases))
    it(`${what}: ${status} ${code} for the page, the whole reason for the operator`, async () => {
      upstream = () => (given instanceof Error ? Promise.reject(given) : given.clone())
      const answer = await ask(handlerOf(), request(posts()))
      expect([answer.status, answer.body["code"], said.length]).toEqual([status, code, 1])
      expect(JSON.stringify(answer.body)).not.toMatch(/SELECT|10\.0\.0\.1|service\/|secret is wrong/)
      expect(answer.headers.get("retry-after")).toBe(code === "SSP_NOT_READY" ? "3" : null)
      expect(said.join()).not.toContain(secret)
    })
  it("a service without tokens is named, and so is a mistake of the application's", async () => {
    upstream = () => Response.json({})
    expect((await ask(handlerOf(), request(posts()))).status).toBe(502)
    expect(said.join()).toMatch(/answers no token; is the service too old/)
    const failing = handlerOf({ authenticate: () => Promise.reject(new Error("the session store is down")) })
    const answer = await ask(failing, request(posts()))
    expect([answer.status, answer.body["code"]]).toEqual([500, "INTERNAL"])
    expect(said.join()).toMatch(/the session store is down/)
    expect(JSON.stringify(answer.body)).not.toMatch(/session store/)
  })
})

describe("a declaration", () => {
  it("is refused where a name could be no part of an id", () => {
    const { mine } = views.declarations
    expect(() => defineViews({ "a b": mine as never })).toThrow('"a b" is no name of a view')
  })
})
