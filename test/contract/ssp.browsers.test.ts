/**
 * How browsers get at views (D49, D50): several views over one connection, tokens, touching.
 */
import { Schema } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { expectError, send } from "../../kit/checks/contract.ts"
import { endedGrantsOpenNothing } from "../../kit/checks/grants.ts"
import { type Answer, bodyOf, request } from "../../kit/checks/http.ts"
import { brief, eventsOf, follow as followAt, hangUp, heard, type Many, streamOf } from "../../kit/checks/manyStream.ts"
import { ticketsOpenOneStream } from "../../kit/checks/tickets.ts"
import { unseenRowsAreNotTold } from "../../kit/checks/unseen.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, sleep, until } from "../../kit/processes/Door.ts"
import { connect } from "../../src/client.ts"
import { defineViews } from "../../src/views.ts"

const hashed = "only-known-by-its-hash"
const reader = "reads-and-no-more-0123456789abcdef"
const registrar = "registers-and-no-more-0123456789ab"
const page = "https://app.example"
let door: Door
const closing: Array<() => void> = []
beforeAll(async () => {
  door = await Door.start({
    env: {
      SVC_STREAM_VIEWS: "3",
      SVC_VIEW_TOKEN_TTL: "60",
      SVC_BROWSER_ORIGINS: page,
      TTL_CLEANUP_INTERVAL_SECS: "1",
      SVC_AUTH_SECRETS: `reader read ${reader}\nregistrar register ${registrar}`
    }
  })
  for (const [n, table] of ["a", "b", "c"].entries()) {
    await post("/ingest", create(`${table}:1`, { n }))
    await post("/view/register", registration(table, `SELECT * FROM ${table}`))
  }
})
afterEach(() => {
  hangUp()
  for (const close of closing.splice(0)) close()
})
afterAll(() => door.close())

const post = (path: string, body: unknown, token = secret): Promise<Answer> =>
  send(door, { ask: `POST ${path}`, body, token })
const tokenFor = async (views: ReadonlyArray<string>, more: object = {}): Promise<string> =>
  String(bodyOf(await post("/view/token", { views, ...more }))["token"])

const follow = (body: object, token?: string, path?: string): Promise<Many> => followAt(door.url, body, token, path)

describe("several views over one connection", () => {
  it("POST /stream 200 D50 each view at its place, refusals too; added and dropped while it goes on", async () => {
    const many = await follow({ views: [{ view: "a" }, { view: "gone" }, { view: "b" }] })
    expect([many.status, many.headers["content-type"]]).toEqual([200, "text/event-stream"])
    const begun = ["- open", "0 snapshot", "1 refusedVIEW_NOT_FOUND", "2 snapshot"]
    await heard(many, begun)
    const changed = await post(`/stream/${streamOf(many)}`, { add: [{ view: "c" }], drop: [0, 1, 7] })
    expect([changed.status, changed.json]).toEqual([200, { places: [3] }])
    await post("/ingest", create("a:2", { n: 2 }))
    await post("/ingest", create("b:2", { n: 2 }))
    await post("/ingest", create("c:2", { n: 2 }))
    await heard(many, [...begun, "3 snapshot", "2 delta", "3 delta"])
    expect(eventsOf(many)[5]?.data["insert"]).toEqual([[1, { id: "b:2", n: 2 }]])
  })
  it("POST /stream D50 goes on behind the event that a view is asked to go on from", async () => {
    const first = await follow({ views: [{ view: "a" }] })
    await heard(first, ["- open", "0 snapshot"])
    const after = /^id: (.*)$/m.exec(first.text)?.[1]
    await post("/ingest", create("a:3", { n: 3 }))
    const again = await follow({ views: [{ view: "a", after }, { view: "a" }] })
    await heard(again, ["- open", "0 delta", "1 snapshot"])
  })
  it("POST /stream D50 a target with an empty query is answered with the same bytes", async () => {
    const asked = { views: [{ view: "a" }, { view: "gone" }, { view: "c" }], format: "tree" }
    const both = [await follow(asked), await follow(asked, secret, "/stream?")]
    for (const many of both) await heard(many, ["- open", "0 snapshot", "1 refusedVIEW_NOT_FOUND", "2 snapshot"])
    await post("/ingest", [create("a:4", { n: 4 }), create("c:4", { n: 4 })])
    await until("deltas", () => both.every(({ text }) => text.split("delta").length === 3))
    const [bare, queried] = both.map((many) => ({ ...many, text: many.text.replace(streamOf(many), "?") }))
    expect({ ...queried, headers: { ...queried!.headers, vary: undefined } }).toEqual({
      ...bare,
      headers: { ...bare!.headers, vary: undefined }
    })
    for (const wrong of [{}, { views: [{}] }, { views: "a" }, { views: [], format: "wide" }]) {
      const [one, other] = [await post("/stream", wrong), await post("/stream?", wrong)]
      expectError(one, 400, "INVALID_REQUEST")
      expect(other.text).toBe(one.text)
    }
  })
  it("POST /stream 400 more views than SVC_STREAM_VIEWS; POST /stream/:stream_id 400, 404", async () => {
    const four = ["a", "b", "c", "a"].map((view) => ({ view }))
    expect(expectError(await post("/stream", { views: four }), 400, "INVALID_REQUEST")["message"]).toMatch(
      /views would make 4 views of one stream, the limit is 3 \(setting SVC_STREAM_VIEWS\)/
    )
    const many = await follow({ views: four.slice(1) })
    await heard(many, ["- open", "0 snapshot", "1 snapshot", "2 snapshot"])
    const path = `/stream/${streamOf(many)}`
    expectError(await post(path, { add: [{ view: "a" }] }), 400, "INVALID_REQUEST")
    expectError(await post(path, { add: [{ view: "a" }], drop: [99] }), 400, "INVALID_REQUEST")
    expect((await post(path, { add: [{ view: "a" }], drop: [1] })).json).toEqual({ places: [3] })
    expectError(await post("/stream/0123", { drop: [0] }), 404, "STREAM_NOT_FOUND")
    expectError(await post(path, { drop: [-1] }), 400, "INVALID_REQUEST")
    hangUp()
    await until("the stream is forgotten", async () => (await post(path, {})).status === 404)
  })
})

describe("tokens", () => {
  it("POST /view/token 200 D49 opens reading, streaming and touching of its views and nothing else", async () => {
    const given = bodyOf(await post("/view/token", { views: ["a", "later"], subject: "user:ann" }))
    expect(given).toEqual({ token: expect.stringMatching(/^svc1\.[\w-]+\.[\w-]+$/), expires_in_ms: 60_000 })
    const token = String(given["token"])
    const get = (path: string) => request(door.url, { method: "GET", path, token })
    expect((await get("/view/a")).status).toBe(200)
    expectError(await get("/view/b"), 401, "UNAUTHORIZED")
    expectError(await get("/view/later"), 404, "VIEW_NOT_FOUND")
    for (const path of ["/views", "/debug/view/a", "/overview", "/metrics", "/integrity"])
      expectError(await get(path), 401, "UNAUTHORIZED")
    for (const path of ["/ingest", "/view/register", "/view/unregister", "/view/token", "/view/token/revoke", "/reset"])
      expectError(await post(path, { views: ["a"], subject: "x" }, token), 401, "UNAUTHORIZED")
    expect((await post("/view/touch", { views: ["a", "b", "later"] }, token)).json).toEqual({ touched: ["a"] })
    const many = await follow(
      { views: [{ view: "a" }, { view: "b" }, { view: "b", token: await tokenFor(["b"]) }] },
      token
    )
    await heard(many, ["- open", "0 snapshot", "1 refusedUNAUTHORIZED", "2 snapshot"])
    expect(door.logs).not.toContain(token)
  })
  it("POST /stream D49 a place ends when its token expires, and not when it is renewed", async () => {
    const token = await tokenFor(["a", "b"], { ttl_ms: 1_500 })
    const many = await follow({ views: [{ view: "a" }, { view: "b" }] }, token)
    await heard(many, ["- open", "0 snapshot", "1 snapshot"])
    const path = `/stream/${streamOf(many)}`
    expectError(await post(path, { renew: [[1, await tokenFor(["a"])]] }, token), 401, "UNAUTHORIZED")
    expect((await post(path, { renew: [[1, await tokenFor(["b"])]] }, token)).status).toBe(200)
    await heard(many, ["- open", "0 snapshot", "1 snapshot", "0 endunauthorized"])
    await sleep(1_100)
    expectError(await request(door.url, { method: "GET", path: "/view/a", token }), 401, "UNAUTHORIZED")
    expect(brief(many)).toHaveLength(4)
  })
  it("POST /view/token/revoke 200 D49 tokens given so far open nothing; streams end; those given later open", async () => {
    const [token, others] = [await tokenFor(["a"], { subject: "bob" }), await tokenFor(["a"], { subject: "ann" })]
    const many = await follow({ views: [{ view: "a" }, { view: "a", token: others }] }, token)
    await heard(many, ["- open", "0 snapshot", "1 snapshot"])
    expect((await post("/view/token/revoke", { subject: "bob" })).status).toBe(200)
    await heard(many, ["- open", "0 snapshot", "1 snapshot", "0 endrevoked"])
    expectError(await post("/stream", { views: [] }, token), 401, "UNAUTHORIZED")
    await until(
      "the next millisecond",
      async () => (await post("/stream/x", {}, await tokenFor(["a"], { subject: "bob" }))).status === 404
    )
  })
  it("POST /view/token 400 403 D49 too many views, ids too long, no secret that signs", async () => {
    expectError(await post("/view/token", { views: ["1", "2", "3", "4"] }), 400, "INVALID_REQUEST")
    expectError(await post("/view/token", { views: ["x".repeat(9_000)] }), 400, "INVALID_REQUEST")
    expectError(await post("/view/token", { views: [] }), 400, "INVALID_REQUEST")
    const { hashOf } = await import("../../src/core/access/scopedSecrets.ts")
    const other = await Door.start({
      env: { SVC_AUTH_SECRET: undefined, SVC_AUTH_SECRETS: `app read sha256:${hashOf(hashed)}` }
    })
    try {
      const refused = await send(other, { ask: "POST /view/token", body: { views: ["a"] }, token: hashed })
      expectError(refused, 403, "FORBIDDEN")
      // A token of a service with another secret.
      const foreign = await request(other.url, { method: "GET", path: "/view/a", token: await tokenFor(["a"]) })
      expectError(foreign, 401, "UNAUTHORIZED")
    } finally {
      await other.close()
    }
  })
  it("GET /view/:view_id/stream?ticket= 200 D49 a ticket opens one stream of its view, once, and nothing else", async () => {
    await ticketsOpenOneStream(door.url, post)
  })
  it("POST /stream/:stream_id D49 a grant that has ended opens nothing again; each addition is judged by its own bearer", async () => {
    await endedGrantsOpenNothing(door.url, post, [registrar])
  })
  it("GET /view/:view_id D72 rows that are left out are told by kind, without ids and values, but to the scope admin", async () => {
    await unseenRowsAreNotTold(door.url, post, [reader])
  })
  it("GET /view/:view_id/stream D49 ends when the token expires", async () => {
    const token = await tokenFor(["a"], { ttl_ms: 1_000 })
    const answer = await fetch(`${door.url}/view/a/stream`, { headers: { authorization: `Bearer ${token}` } })
    expect(await answer.text()).toMatch(/event: snapshot[\s\S]*event: end\ndata: \{"reason":"unauthorized"\}\n\n$/)
  })
})

describe("pages of other origins", () => {
  it("D49 SVC_BROWSER_ORIGINS opens reading and following of views and nothing else", async () => {
    const preflight = (path: string, origin = page) =>
      request(door.url, { method: "OPTIONS", path, headers: { origin, "access-control-request-method": "POST" } })
    for (const path of ["/stream", "/stream/12", "/view/a", "/view/a/stream", "/view/touch"])
      expect([path, (await preflight(path)).headers["access-control-allow-origin"]]).toEqual([path, page])
    for (const path of ["/view/token", "/view/register", "/ingest", "/reset", "/views", "/view/token/revoke"])
      expect([path, (await preflight(path)).headers["access-control-allow-origin"]]).toEqual([path, undefined])
    expect((await preflight("/stream", "https://evil.example")).headers["access-control-allow-origin"]).toBeUndefined()
  })
})

describe("the client", () => {
  it("D49 D50 follows views with a token: what the service has, step by step; a view lives while it is looked at", async () => {
    await post("/view/register", registration("short", "SELECT * FROM a ORDER BY n DESC LIMIT 2", { ttl: "2s" }))
    const live = connect({
      url: door.url,
      token: async (views) => bodyOf(await post("/view/token", { views, ttl_ms: 3_000 })) as never,
      touchEveryMs: 500
    })
    closing.push(() => live.close())
    const short = live.follow<{ readonly n: number }>("short")
    await until("live", () => short.status === "live")
    for (let n = 10; n < 14; n++) {
      await post("/ingest", create(`a:${n}`, { n }))
      await until(
        `${n} is shown`,
        () => short.rows.map((row) => row.n).join() === [n, n === 10 ? short.rows[1]?.n : n - 1].join()
      )
      await sleep(700)
    }
    expect([short.status, (await send(door, { ask: "GET /view/short" })).status]).toEqual(["live", 200])
    short.dispose()
    live.close()
    await until("it lapses", async () => (await send(door, { ask: "GET /view/short" })).status === 404)
  })
  it("D49 follows a named view that the application's handler registers, as its user, and no other", async () => {
    const views = defineViews({
      mine: {
        params: Schema.Struct({ least: Schema.Number }),
        query: ({ least }, user: { readonly id: string }) => ({
          surql: "SELECT * FROM task WHERE owner = $owner AND n >= $least",
          params: { owner: user.id, least }
        })
      }
    })
    const route = views.handler({ url: door.url, secret, publicUrl: door.url, authenticate: () => ({ id: "ann" }) })
    const live = connect({
      views: async (view, params) => {
        const asked = new Request("http://app.test/views", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ view, params })
        })
        const answer = await route(asked)
        expect(answer.status).toBe(200)
        return (await answer.json()) as never
      }
    })
    closing.push(() => live.close())
    const mine = live.follow("mine", { least: 2 })
    await until(`live: ${JSON.stringify(mine.error)}`, () => mine.status === "live")
    await post("/ingest", [
      create("task:1", { owner: "ann", n: 1 }),
      create("task:2", { owner: "ann", n: 2 }),
      create("task:3", { owner: "bob", n: 3 })
    ])
    await until("the row", () => mine.rows.length > 0)
    expect(mine.rows).toEqual([{ id: "task:2", owner: "ann", n: 2 }])
  })
})
