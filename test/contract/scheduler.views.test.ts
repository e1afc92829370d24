/**
 * What operators look at on the scheduler: `/views`, `/overview`, and what is asked of the SSP that has a view, with
 * every status.
 *
 * Against fake SSPs that remember what they were told, because the point of handing on is what goes along and what does
 * not.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Clock, Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { type Body, bodyOf, rawRequest, request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"

let node: Node
let a: FakeSsp
let b: FakeSsp
const idsOf = (body: Body): ReadonlyArray<unknown> => (body["views"] as ReadonlyArray<Body>).map(({ id }) => id)
const ownerOf = async (id: string): Promise<FakeSsp> => {
  const { views } = bodyOf(await node.get(`/views?search=${encodeURIComponent(id)}`)) as {
    readonly views: ReadonlyArray<{ readonly id: string; readonly owner: string }>
  }
  return views.find((view) => view.id === id)?.owner === "a" ? a : b
}

beforeAll(async () => {
  node = await Node.start({ callTimeoutMs: 1000 })
  ;[a, b] = await Promise.all([
    FakeSsp.start("a").then((ssp) => ssp.join(node)),
    FakeSsp.start("b").then((ssp) => ssp.join(node))
  ])
  await node.post(
    "/view/register",
    registration("incantation:one", "SELECT * FROM item WHERE n = $n", { params: { n: 1 }, format: "tree", ttl: "2m" })
  )
  await node.post("/view/register", registration("two", "SELECT * FROM item"))
  await node.post("/view/register", registration("a/b?c", "SELECT * FROM other", { clientId: "Anna" }))
  await node.post("/view/register", registration("..", "SELECT * FROM other"))
  await node.post("/ingest", [create("item:1"), create("item:2")])
})
afterAll(async () => {
  await Promise.all([a.close(), b.close()])
  await node.close()
})

describe("GET /views of the scheduler", () => {
  it("GET /views 200 by cost as the SSPs say, each view from its owner; one that says nothing leaves its views out", async () => {
    const owned = ((await node.get("/views")).json as { readonly views: ReadonlyArray<Body> }).views
    const costs = new Map(owned.map(({ id }, i) => [id, (i * 7) % 4]))
    const said = (total_cost: number, { id, owner: _, state: __, assigned_at: ___, ...view }: Body) => ({
      ...view,
      id,
      rows: 1,
      errors: 0,
      generation: 1,
      last_cost: 0,
      total_cost,
      streams: 0,
      incremental: true
    })
    // Each says that it has all of them, but those of another cost nothing there.
    for (const ssp of [a, b])
      ssp.behaviour = ({ path }) =>
        path.startsWith("/views?order=cost")
          ? {
              status: 200,
              body: {
                views: owned.map((view) => said(view["owner"] === ssp.id ? costs.get(view["id"])! : 99, view)),
                total: 4,
                next: null
              }
            }
          : undefined
    const found = async (words = ""): Promise<ReadonlyArray<readonly [unknown, unknown]>> =>
      ((await node.get(`/views?order=cost${words}`)).json as { readonly views: ReadonlyArray<Body> }).views.map(
        ({ id, total_cost }) => [id, total_cost]
      )
    const all = await found()
    expect(all).toEqual([...costs].sort(([, x], [, y]) => y - x))
    expect(await found("&limit=1")).toEqual(all.slice(0, 1))
    b.behaviour = () => undefined
    const ofA = owned.filter(({ owner }) => owner === "a").map(({ id }) => id)
    expect((await found()).map(([id]) => id)).toEqual(all.map(([id]) => id).filter((id) => ofA.includes(id)))
    a.behaviour = () => undefined
  })
  contract(
    () => node,
    [
      {
        name: "GET /views 200 in key order, with owners",
        ask: "GET /views",
        status: 200,
        check: (_, body) =>
          expect([idsOf(body), body["total"], body["next"]]).toEqual([
            ["..", "a/b?c", "incantation:one", "two"],
            4,
            null
          ])
      },
      {
        name: "GET /views 200 a view with everything that is known of it",
        ask: "GET /views?search=incantation",
        status: 200,
        is: {
          views: [
            {
              id: "incantation:one",
              query: "SELECT * FROM item WHERE n = $n",
              params: { n: 1 },
              format: "tree",
              client_id: "client",
              ttl_seconds: 120,
              last_active_at: expect.stringMatching(/^\d{4}-.*Z$/),
              owner: expect.stringMatching(/^[ab]$/),
              state: "placed",
              assigned_at: expect.any(Number)
            }
          ],
          total: 4,
          next: null
        }
      },
      {
        name: "GET /views 200 page by page",
        ask: "GET /views?limit=2&after=a%2Fb%3Fc",
        status: 200,
        check: (_, body) => expect([idsOf(body), body["next"]]).toEqual([["incantation:one", "two"], null])
      },
      {
        name: "GET /views 200 search by client in any case, and the next page's id",
        ask: "GET /views?limit=1&search=t",
        status: 200,
        check: (_, body) => expect([idsOf(body), body["next"]]).toEqual([[".."], ".."])
      },
      {
        name: "GET /views 200 of an SSP that there is not",
        ask: "GET /views?ssp=c",
        status: 200,
        is: { views: [], total: 4, next: null }
      },
      {
        name: "GET /views 400 INVALID_REQUEST a limit that is none",
        ask: "GET /views?limit=0",
        status: 400,
        code: "INVALID_REQUEST",
        check: (_, body) =>
          expect(faultsOf(body)).toEqual([{ path: "limit", reason: expect.stringContaining("from 1 to 500") }])
      }
    ]
  )
  it("GET /views 200 by SSP splits the list", async () => {
    const [ofA, ofB] = await Promise.all(
      ["a", "b"].map(async (ssp) => idsOf(bodyOf(await node.get(`/views?ssp=${ssp}`))))
    )
    expect([...ofA!, ...ofB!].sort()).toEqual(["..", "a/b?c", "incantation:one", "two"])
  })
})

describe("GET /overview of the scheduler", () => {
  const ssp = (id: string) => ({
    id,
    url: expect.stringMatching(/^http:/),
    state: "ready",
    state_seconds: expect.any(Number),
    heard_seconds: expect.any(Number),
    acked: 2,
    waiting: 0,
    in_flight: 0,
    failures: 0,
    late: false,
    views: 2,
    jobs: 0,
    cpu_usage: null,
    memory_usage: null,
    job_tables: null,
    tables: null
  })
  it("GET /overview 200 the cluster in one answer", async () => {
    await until("both have applied everything", () => [a, b].every(({ last }) => last === 2))
    expect((await node.get("/overview")).json).toEqual({
      id: "scheduler-test",
      version: "1.2.3",
      status: "ready",
      uptime_seconds: expect.any(Number),
      used: null,
      ingest: { bounds_ms: expect.any(Array), counts: expect.any(Array) },
      seq: 2,
      log: { first: expect.any(Number), events: 2, id: "log-of-the-test", epoch: expect.any(Number) },
      snapshot: null,
      checkpointing: false,
      clone: null,
      max_buffer_per_ssp: 10_000,
      ssps: [ssp("a"), ssp("b")],
      views: 4,
      views_waiting: 0,
      quarantined: [],
      warnings: [],
      jobs: 0,
      jobs_waiting: 0,
      job_tables: []
    })
  })
})

describe("what the SSP that has the view answers", () => {
  const routes = ["/view/:id", "/view/:id?format=tree", "/view/:id/stream", "/debug/view/:id"]
  const rows = routes.flatMap(
    (route): ReadonlyArray<Row> => [
      {
        name: `GET ${route} 404 VIEW_NOT_FOUND`,
        ask: `GET ${route.replace(":id", "none")}`,
        status: 404,
        code: "VIEW_NOT_FOUND"
      },
      {
        name: `GET ${route} 404 VIEW_NOT_FOUND for an id that would be a step of a path`,
        ask: `GET ${route.replace(":id", "%2e%2e")}`,
        status: 404
      }
    ]
  )
  contract(
    () => node,
    [
      ...rows,
      {
        name: "GET /view/:view_id 400 INVALID_REQUEST a format that is none",
        ask: "GET /view/two?format=x",
        status: 400,
        code: "INVALID_REQUEST"
      }
    ]
  )
  for (const route of routes) {
    it(`GET ${route} is asked of the owner with the caller's own Authorization, not with the scheduler's secret, and answered as it answers`, async () => {
      const id = "a/b?c"
      const owner = await ownerOf(id)
      const path = route.replace(":id", encodeURIComponent(id))
      owner.behaviour = ({ authorization, path: asked }) =>
        asked === path
          ? {
              status: authorization === "Bearer mine" ? 200 : 401,
              body: { code: "X", message: asked },
              headers: { "www-authenticate": "Bearer", "x-odd": "1" }
            }
          : undefined
      const [mine, none] = [await request(node.url, { path, token: "mine" }), await request(node.url, { path })]
      owner.behaviour = () => undefined
      expect([mine.status, mine.json, mine.headers["x-odd"]]).toEqual([200, { code: "X", message: path }, undefined])
      expect([none.status, none.headers["www-authenticate"]]).toEqual([401, "Bearer"])
      expect(owner.calls(path).map(({ authorization }) => authorization)).toEqual(["Bearer mine", undefined])
      expect(JSON.stringify(owner.calls(path))).not.toContain(secret)
    })
  }
  it("GET /view/:view_id 502 SSP_UNREACHABLE when the owner hangs up, redirects, or does not answer in time", async () => {
    const owner = await ownerOf("two")
    owner.behaviour = ({ path }) =>
      path === "/view/two" ? { status: 307, headers: { location: "http://127.0.0.1:1/" } } : undefined
    expectError(await send(node, { ask: "GET /view/two" }), 502, "SSP_UNREACHABLE")
    owner.behaviour = ({ path }) => (path === "/view/two" ? "never" : undefined)
    expectError(await send(node, { ask: "GET /view/two" }), 502, "SSP_UNREACHABLE")
    const hanging = send(node, { ask: "GET /view/two" })
    await until("it was asked again", () => owner.calls("/view/two").length >= 3)
    owner.release()
    expectError(await hanging, 502, "SSP_UNREACHABLE")
    owner.behaviour = () => undefined
  })
})

/** An SSP that streams what the test says, and knows who still listens. */
class Streaming {
  readonly open: Array<ServerResponse> = []
  closed = 0
  lastEventIds: Array<unknown> = []
  private readonly server: Server = createServer((message, response) => this.serve(message, response))

  async start(on: Node): Promise<this> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done))
    const address = this.server.address()
    await on.post("/ssp/register", {
      ssp_id: "s",
      url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
      batch: true
    })
    await until("it is ready", async () => (await on.get("/health")).status === 200)
    return this
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise<void>((done) => this.server.close(() => done()))
  }

  private serve(message: IncomingMessage, response: ServerResponse): void {
    message.resume()
    if (message.url?.endsWith("/stream") !== true)
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(`{"status":"${message.url === "/health" ? "ready" : "ok"}"}`)
    if (message.method === "HEAD") return void response.writeHead(200, { "content-type": "text/event-stream" }).end()
    this.lastEventIds.push(message.headers["last-event-id"])
    this.open.push(response)
    response.on("close", () => this.closed++)
    response
      .writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" })
      .write("event: snapshot\ndata: 1\n\n")
  }
}

/** Follows the stream through the scheduler; what has come so far, and how to hang up. */
const follow = async (on: Node, headers: Record<string, string> = {}) => {
  const abort = new AbortController()
  const response = await fetch(`${on.url}/view/v/stream`, { signal: abort.signal, headers })
  const seen = {
    text: "",
    ended: false,
    status: response.status,
    type: response.headers.get("content-type"),
    hangUp: () => abort.abort()
  }
  const read = async (): Promise<void> => {
    for await (const chunk of response.body!) seen.text += Buffer.from(chunk).toString()
  }
  void read()
    .catch(() => undefined)
    .finally(() => {
      seen.ended = true
    })
  return seen
}

describe("GET /view/:view_id/stream through the scheduler", () => {
  let own: Node
  let ssp: Streaming
  beforeAll(async () => {
    own = await Node.start()
    ssp = await new Streaming().start(own)
    await own.post("/view/register", registration("v", "SELECT * FROM item"))
  })
  afterAll(async () => {
    await ssp.close()
    await own.close()
  })
  const latest = (): ServerResponse => ssp.open.at(-1)!

  it("GET /view/:view_id/stream 200 D11 every event comes at once, Last-Event-ID goes along, and a client that hangs up frees the SSP's stream", async () => {
    const before = ssp.closed
    const seen = await follow(own, { "last-event-id": "x.5" })
    expect([seen.status, seen.type, ssp.lastEventIds.at(-1)]).toEqual([200, "text/event-stream", "x.5"])
    for (let n = 1; n <= 3; n++) {
      latest().write(`event: delta\ndata: ${n}\n\n`)
      await until(`delta ${n} is here while the stream goes on`, () =>
        seen.text.endsWith(`event: delta\ndata: ${n}\n\n`)
      )
    }
    seen.hangUp()
    await until("the SSP's stream is closed", () => ssp.closed === before + 1)
  })
  it("GET /view/:view_id/stream 200 ends when the SSP ends it, and when the SSP is cut off", async () => {
    const first = await follow(own)
    latest().end("event: end\ndata: {}\n\n")
    await until("it has ended", () => first.ended)
    expect(first.text).toBe("event: snapshot\ndata: 1\n\nevent: end\ndata: {}\n\n")
    const second = await follow(own)
    await until("it has begun", () => second.text !== "")
    latest().destroy()
    await until("it has ended", () => second.ended)
  })
  it("GET /view/:view_id/stream 200 D11 resumed at a real SSP with nothing to tell answers before the call's time-out, and goes on", async () => {
    const scheduler = await Node.start({ callTimeoutMs: 5000 })
    const door = await Door.start({
      env: { SCHEDULER_URL: scheduler.url, SSP_ID: "real", HEARTBEAT_INTERVAL_MS: "200" }
    })
    try {
      await until("the SSP is ready", async () => (await scheduler.get("/health")).status === 200)
      await scheduler.post("/view/register", registration("v", "SELECT * FROM item"))
      const first = await EventStream.open(scheduler.url, "/view/v/stream", secret)
      const [snapshot] = await first.atLeast(1)
      first.close()
      const resumed = await EventStream.open(scheduler.url, "/view/v/stream", secret, snapshot?.id)
      await scheduler.post("/ingest", create("item:9"))
      expect((await resumed.atLeast(1)).map(({ event }) => event)).toEqual(["delta"])
      resumed.close()
    } finally {
      await door.close()
      await scheduler.close()
    }
  })
  it("GET /view/:view_id/stream 200 HEAD is asked as HEAD and does not hang", async () => {
    const answer = await rawRequest(own.port, "HEAD /view/v/stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    expect([answer?.status, answer?.text]).toEqual([200, ""])
  })
  it("GET /view/:view_id/stream 200 D11 ends with `shutdown` when the scheduler stops; GET /view/:view_id 503 NO_SSP_AVAILABLE while no SSP has the view", async () => {
    const other = await Node.start()
    const streaming = await new Streaming().start(other)
    await other.post("/view/register", registration("v", "SELECT * FROM item"))
    const seen = await follow(other)
    await until("it has begun", () => seen.text !== "")
    await other.post("/ssp/deregister", { ssp_id: "s" })
    expectError(await send(other, { ask: "GET /view/v" }), 503, "NO_SSP_AVAILABLE")
    expect(seen.ended).toBe(false)
    await other.close()
    await until("it has ended", () => seen.ended)
    expect(seen.text).toMatch(/event: end\ndata: \{"reason":"shutdown"\}\n\n$/)
    await streaming.close()
  })
})

describe("POST /view/register of the scheduler", () => {
  const told = (id: string): number =>
    [a, b].flatMap((ssp) => ssp.calls("/view/register")).filter(({ json }) => (json as Body)["id"] === id).length
  it("POST /view/register 200 D63 what changes nothing is answered from what is known, and no SSP is asked", async () => {
    // However slow the machine, it is said again at once.
    const soon = { params: { n: 1 }, lastActiveAt: "2100-01-01T00:00:00Z" }
    const body = registration("repeated", "SELECT * FROM other", soon)
    const first = await node.post("/view/register", body)
    for (const path of ["/view/register", "/view/register?"]) {
      const again = await node.post(path, body)
      expect([again.status, again.text]).toEqual([200, first.text])
    }
    expect(told("repeated")).toBe(1)
    for (const more of [{ clientId: "other" }, { ttl: "2h" }, { params: null }, { format: "tree" }]) {
      const before = told("repeated")
      expect((await node.post("/view/register", { ...body, ...more })).status).toBe(200)
      expect(told("repeated"), JSON.stringify(more)).toBe(before + 1)
    }
    expect(faultsOf(bodyOf(await node.post("/view/register", { ...body, ttl: "soon" })))).toMatchObject([
      { path: "ttl" }
    ])
    await node.post("/view/unregister", { id: "repeated" })
    const before = told("repeated")
    await node.post("/view/register", body)
    expect(told("repeated")).toBe(before + 1)
    await node.post("/view/unregister", { id: "repeated" })
  })
  it("POST /view/register 200 D63 D73 what changes nothing is known by whatever the time of day is", async () => {
    // The time of day, which a test sets, is rounded otherwise at every other look.
    const real = Clock.make()
    let setMs = 0
    let looks = 0
    const millis = () => real.unsafeCurrentTimeMillis() + setMs + (looks++ % 2)
    const clock: Clock.Clock = Object.assign(Object.create(real), {
      unsafeCurrentTimeMillis: millis,
      currentTimeMillis: Effect.sync(millis)
    })
    const scheduler = await Node.start({ clock })
    const ssp = await FakeSsp.start("s")
    try {
      await ssp.join(scheduler)
      const calls = () => ssp.calls("/view/register").length
      for (const hours of [0, 1, -1]) {
        setMs = hours * 3_600_000
        const id = `set${hours}`
        const body = registration(id, "SELECT * FROM other", { lastActiveAt: "2100-01-01T00:00:00Z" })
        await scheduler.post("/view/register", body)
        const before = calls()
        for (const path of Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? "/view/register" : "/view/register?")))
          await scheduler.post(path, body)
        expect(calls(), `${hours} h`).toBe(before)
      }
    } finally {
      await ssp.close()
      await scheduler.close()
    }
  })
  it("POST /view/register 200 D63 of those that come together one is carried out", async () => {
    const body = registration("together", "SELECT * FROM other", { lastActiveAt: "2100-01-01T00:00:00Z" })
    const paths = Array.from({ length: 16 }, (_, n) => (n % 4 === 0 ? "/view/register?" : "/view/register"))
    const answers = await Promise.all(paths.map((path) => node.post(path, body)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]!.status).toBe(200)
    expect(told("together")).toBe(1)
    await node.post("/view/unregister", { id: "together" })
  })
})
