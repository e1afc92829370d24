/**
 * How browsers get at the views of a cluster through its scheduler (D49, D50): one address, whichever SSP has a view, and
 * no more than a pause when that SSP goes.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { expectError } from "../../kit/checks/contract.ts"
import { endedGrantsOpenNothing } from "../../kit/checks/grants.ts"
import { type Answer, bodyOf, request } from "../../kit/checks/http.ts"
import { brief, eventsOf, follow as followAt, hangUp, heard, type Many, streamOf } from "../../kit/checks/manyStream.ts"
import { ticketsOpenOneStream } from "../../kit/checks/tickets.ts"
import { unseenRowsAreNotTold } from "../../kit/checks/unseen.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { secret, sleep, until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"
import { connect } from "../../src/client.ts"

const page = "https://app.example"
let cluster: ProcessCluster
let url: string
const closing: Array<() => void> = []
beforeAll(async () => {
  // The first SSP lets in one view on a connection, fewer than the scheduler's clients may have.
  cluster = await ProcessCluster.start(
    2,
    {
      SVC_STREAM_VIEWS: "3",
      SVC_VIEW_TOKEN_TTL: "60",
      SVC_BROWSER_ORIGINS: page,
      SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "300"
    },
    (id) => (id === "ssp-1" ? { SVC_STREAM_VIEWS: "1" } : { SVC_STREAM_VIEWS: "100" })
  )
  url = cluster.scheduler.url
  await add("a", 0)
  await add("b", 1)
  // An SSP whose heartbeats are late on a busy machine is given none until it is back; then one of two views moves.
  await until("views are at both SSPs", async () => (await ownerOf("a")) !== (await ownerOf("b")))
  await add("c", 2)
})
const add = async (table: string, n: number): Promise<void> => {
  await post("/ingest", create(`${table}:1`, { n }))
  await post("/view/register", registration(table, `SELECT * FROM ${table} ORDER BY n DESC LIMIT 3`))
}
afterEach(() => {
  hangUp()
  for (const close of closing.splice(0)) close()
})
afterAll(() => cluster?.close())

const post = (path: string, body: unknown, token = secret): Promise<Answer> =>
  request(url, { method: "POST", path, body, token })
const tokenFor = async (views: ReadonlyArray<string>, more: object = {}): Promise<string> =>
  String(bodyOf(await post("/view/token", { views, ...more }))["token"])
const follow = (body: object, token?: string, path?: string): Promise<Many> => followAt(url, body, token, path)

const ownerOf = async (view: string): Promise<Process> => {
  const { views } = bodyOf(await request(url, { path: "/views", token: secret })) as unknown as {
    readonly views: ReadonlyArray<{ readonly id: string; readonly owner: string | null }>
  }
  const ssp = views.find(({ id }) => id === view)?.owner
  return cluster.ssps.find(({ name }) => name === ssp)!
}

describe("several views over one connection", () => {
  it("POST /stream 200 D50 each view at its place, wherever it is; refusals too; added and dropped meanwhile", async () => {
    const many = await follow({ views: [{ view: "a" }, { view: "gone" }, { view: "b" }] })
    expect([many.status, many.headers["content-type"]]).toEqual([200, "text/event-stream"])
    await until("begun", () => brief(many).length === 4)
    expect(brief(many).toSorted()).toEqual(["- open", "0 snapshot", "1 refusedVIEW_NOT_FOUND", "2 snapshot"])
    const begun = brief(many)
    const changed = await post(`/stream/${streamOf(many)}`, { add: [{ view: "c" }], drop: [0, 1, 7] })
    expect([changed.status, changed.json]).toEqual([200, { places: [3] }])
    await heard(many, [...begun, "3 snapshot"])
    for (const table of ["a", "b", "c"]) await post("/ingest", create(`${table}:2`, { n: 12 }))
    await until("deltas", () => brief(many).length === 7)
    expect(brief(many).slice(5).toSorted()).toEqual(["2 delta", "3 delta"])
    expect(eventsOf(many).find(({ event, view }) => event === "delta" && view === 2)?.data["insert"]).toEqual([
      [0, { id: "b:2", n: 12 }]
    ])
  })
  it("POST /stream D50 goes on behind the event that a view is asked to go on from", async () => {
    const first = await follow({ views: [{ view: "a" }] })
    await heard(first, ["- open", "0 snapshot"])
    const after = /^id: (.*)$/m.exec(first.text)?.[1]
    await post("/ingest", create("a:3", { n: 13 }))
    const again = await follow({ views: [{ view: "a", after }] })
    await heard(again, ["- open", "0 delta"])
  })
  it("POST /stream D50 a target with an empty query is served the same events", async () => {
    const asked = { views: [{ view: "a" }, { view: "gone" }], format: "tree" }
    const both = [await follow(asked), await follow(asked, secret, "/stream?")]
    for (const many of both) await until("both", () => brief(many).length === 3)
    const [bare, queried] = both.map((many) =>
      eventsOf(many)
        .slice(1)
        .toSorted((a, b) => a.view! - b.view!)
    )
    expect(queried).toEqual(bare)
    for (const wrong of [{}, { views: [{}] }, { views: [], format: "wide" }]) {
      const [one, other] = [await post("/stream", wrong), await post("/stream?", wrong)]
      expectError(one, 400, "INVALID_REQUEST")
      expect(other.text).toBe(one.text)
    }
  })
  it("POST /stream 400 401; POST /stream/:stream_id 404: too many views, a wrong secret, no stream", async () => {
    const four = ["a", "b", "c", "a"].map((view) => ({ view }))
    expectError(await post("/stream", { views: four }), 400, "INVALID_REQUEST")
    for (const path of ["/stream", "/stream?", "/stream/1", "/view/token", "/view/touch", "/view/token/revoke"])
      expectError(await post(path, {}, "another secret"), 401, "UNAUTHORIZED")
    expectError(await post("/stream/0123", { drop: [0] }), 404, "STREAM_NOT_FOUND")
  })
  it("D50 a client that leaves leaves nothing behind at the SSPs", async () => {
    const followers = async (): Promise<number> => {
      const all = await Promise.all(
        cluster.ssps.map(({ url: each }) => request(each, { path: "/views", token: secret }))
      )
      return all
        .flatMap((answer) => bodyOf(answer)["views"] as ReadonlyArray<{ readonly streams: number }>)
        .reduce((sum, each) => sum + each.streams, 0)
    }
    hangUp()
    await until("none follows", async () => (await followers()) === 0)
    const many = await follow({ views: [{ view: "a" }, { view: "b" }, { view: "c" }] })
    await until("begun", () => brief(many).length === 4)
    expect(await followers()).toBe(3)
    await post(`/stream/${streamOf(many)}`, { drop: [1] })
    await until("two follow", async () => (await followers()) === 2)
    hangUp()
    await until("none follows", async () => (await followers()) === 0)
  })
})

describe("a view's result", () => {
  it("GET /view/:view_id 200 304 D11 read together with other clients as alone, and as its SSP answers", async () => {
    const owner = await ownerOf("a")
    const get = (at: string, path: string, headers: { readonly [name: string]: string } = {}) =>
      request(at, { path, token: secret, headers })
    for (const query of ["", "?format=tree"]) {
      const asked = query === "" ? "/view/a?" : `/view/a${query}&`
      const [shared, alone, own] = [
        await get(url, `/view/a${query}`),
        await get(url, asked),
        await get(owner.url, `/view/a${query}`)
      ]
      const seen = ({ headers, status, text }: Answer) => [status, text, headers["etag"], headers["cache-control"]]
      expect(seen(shared)).toEqual(seen(own))
      expect(seen(alone)).toEqual(seen(own))
      expect(shared.headers["content-length"]).toBe(String(Buffer.byteLength(shared.text)))
      const again = { "if-none-match": String(shared.headers["etag"]) }
      expect([(await get(url, `/view/a${query}`, again)).status, (await get(url, asked, again)).status]).toEqual([
        304, 304
      ])
    }
    expectError(await get(url, "/view/gone"), 404, "VIEW_NOT_FOUND")
    expectError(await request(url, { path: "/view/a", token: "another secret" }), 401, "UNAUTHORIZED")
  })
})

describe("tokens", () => {
  it("POST /view/token 200 D49 opens reading, streaming and touching of its views", async () => {
    const token = await tokenFor(["a", "later"], { subject: "user:ann" })
    const get = (path: string) => request(url, { path, token })
    expect((await get("/view/a")).status).toBe(200)
    expectError(await get("/view/b"), 401, "UNAUTHORIZED")
    expectError(await get("/view/b/stream"), 401, "UNAUTHORIZED")
    expectError(await get("/view/later"), 404, "VIEW_NOT_FOUND")
    for (const path of ["/view/token", "/view/token/revoke"])
      expectError(await post(path, { views: ["a"], subject: "x" }, token), 401, "UNAUTHORIZED")
    expect((await post("/view/touch", { views: ["a", "b", "later"] }, token)).json).toEqual({ touched: ["a"] })
    const many = await follow(
      { views: [{ view: "a" }, { view: "b" }, { view: "b", token: await tokenFor(["b"]) }] },
      token
    )
    await until("three", () => brief(many).length === 4)
    expect(brief(many).toSorted()).toEqual(["- open", "0 snapshot", "1 refusedUNAUTHORIZED", "2 snapshot"])
    for (const { logs } of cluster.all) expect(logs).not.toContain(token)
  })
  it("D49 streams end when the token expires or its subject is revoked", async () => {
    const short = await tokenFor(["a"], { ttl_ms: 1_500 })
    const [many, one] = [
      await follow({ views: [{ view: "a" }, { view: "b", token: await tokenFor(["b"], { subject: "bob" }) }] }, short),
      fetch(`${url}/view/a/stream`, { headers: { authorization: `Bearer ${short}` } }).then((answer) => answer.text())
    ]
    await until("both", () => brief(many).length === 3)
    expect((await post("/view/token/revoke", { subject: "bob" })).status).toBe(200)
    await until("ends", () => brief(many).length === 5)
    expect(brief(many).slice(3)).toEqual(["1 endrevoked", "0 endunauthorized"])
    expect(await one).toMatch(/event: snapshot[\s\S]*event: end\ndata: \{"reason":"unauthorized"\}\n\n$/)
  })
  it("GET /view/:view_id/stream?ticket= 200 D49 a ticket opens one stream of its view, once, and nothing else", async () => {
    await ticketsOpenOneStream(url, post)
  })
  it("POST /stream/:stream_id D49 a grant that has ended opens nothing again; each addition is judged by its own bearer", async () => {
    await endedGrantsOpenNothing(url, post, [])
  })
  it("GET /view/:view_id D72 rows that are left out are told by kind, without ids and values, but to the scope admin", async () => {
    await unseenRowsAreNotTold(url, post, [])
  })
  it("POST /view/touch 200 D14 a view lives on as long as it is touched, at the scheduler and its SSP", async () => {
    await post("/view/register", registration("short", "SELECT * FROM a", { ttl: "6s" }))
    const isThere = async () => (await request(url, { path: "/view/short", token: secret })).status === 200
    // Longer than its time, with most of it to spare between two touches.
    for (let n = 0; n < 5; n++) {
      await sleep(1500)
      expect((await post("/view/touch", { views: ["short"] })).json).toEqual({ touched: ["short"] })
    }
    expect(await isThere()).toBe(true)
    await until("it lapses", async () => !(await isThere()))
    expect((await post("/view/touch", { views: ["short"] })).json).toEqual({ touched: [] })
  })
  it("D49 SVC_BROWSER_ORIGINS opens reading and following of views and nothing else", async () => {
    const preflight = (path: string, origin = page) =>
      request(url, { method: "OPTIONS", path, headers: { origin, "access-control-request-method": "POST" } })
    const allowed = async (path: string, origin?: string) =>
      (await preflight(path, origin)).headers["access-control-allow-origin"]
    for (const path of ["/stream", "/stream/12", "/view/a", "/view/a/stream", "/view/touch"])
      expect([path, await allowed(path)]).toEqual([path, page])
    for (const path of ["/view/token", "/view/register", "/ingest", "/views", "/query/register", "/ssp/register"])
      expect([path, await allowed(path)]).toEqual([path, undefined])
    expect(await allowed("/stream", "https://evil.example")).toBeUndefined()
  })
})

describe("a view that moves", () => {
  /** A client follows view `a` while `blow` strikes its SSP and values go on coming. */
  const survives = async (blow: (owner: Process) => Promise<void>): Promise<void> => {
    const owner = await ownerOf("a")
    const many = await follow({ views: [{ view: "a" }] })
    const live = connect({ url, token: (views) => tokenFor(views) })
    closing.push(() => live.close())
    const a = live.follow<{ readonly n: number }>("a")
    const shown: Array<number> = []
    const faults = new Set<string>()
    a.subscribe(() => {
      if (a.status === "live" && a.rows[0] !== undefined && a.rows[0].n !== shown[shown.length - 1])
        shown.push(a.rows[0].n)
      if (a.error !== undefined) faults.add(a.error.message)
    })
    await until(`live: ${a.status} ${a.error?.message}`, () => a.status === "live" && brief(many).length === 2)
    const first = a.rows[0]!.n
    let n = first
    const next = () => post("/ingest", change("UPDATE", "a:1", { n: ++n }))
    for (let k = 0; k < 3; k++) await next()
    const struck = blow(owner)
    for (let k = 0; k < 20; k++) {
      await next()
      await sleep(100)
    }
    await struck
    await until("it has moved", async () => (await ownerOf("a"))?.name !== owner.name, 30_000)
    await next()
    await until(`the last value ${n}: ${shown} ${[...faults]}`, () => shown[shown.length - 1] === n, 30_000)
    // Each value once, in order: those of the pause may be missing, since a snapshot shows the last.
    expect(shown).toEqual([...new Set(shown)].toSorted((x, y) => x - y))
    expect([...faults]).toEqual([])
    expect(brief(many).filter((event) => /end|refused/.test(event))).toEqual([])
  }
  it("D50 its SSP killed: a pause, and nothing missed or doubled", async () => {
    await survives((owner) => owner.kill())
    const gone = cluster.ssps.find(({ door }) => door === undefined)!
    await gone.start()
    await cluster.settled()
  })
  it("D50 its SSP stopped in its tracks: followed elsewhere as soon as the scheduler has moved it", async () => {
    await survives((owner) => owner.pause(6_000))
    await cluster.settled()
  })
  it("D50 its SSP stopped by its operator: it goes on elsewhere", async () => {
    await survives(async (owner) => void (await owner.stop()))
  })
})
