/**
 * `GET /view/:view_id/stream` (D11) and the life of a view (D14): events, their ids, resuming, every reason to end.
 *
 * Why on a process of its own with a small buffer and a short sweep: so that falling out of the buffer and expiring are
 * events a test can wait for, without depending on how fast anything is.
 */
import { Schema } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { contract, send } from "../../kit/checks/contract.ts"
import { EventStream, type StreamEvent } from "../../kit/checks/EventStream.ts"
import { type Answer, type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door, secret, sleep, until } from "../../kit/processes/Door.ts"
import { streamEvents } from "../../src/protocol/streamEvents.ts"

let door: Door
const open: Array<EventStream> = []
beforeAll(async () => {
  door = await Door.start({ env: { SVC_STREAM_BUFFER: "5", TTL_CLEANUP_INTERVAL_SECS: "1" } })
})
afterEach(() => {
  for (const stream of open.splice(0)) stream.close()
})
afterAll(() => door.close())

const post = (path: string, body?: unknown): Promise<Answer> => send(door, { ask: `POST ${path}`, body })
const view = (id: string, surql: string, more: Body = {}): Promise<Answer> =>
  post("/view/register", registration(id, surql, more))
const follow = async (id: string, lastEventId?: string): Promise<EventStream> => {
  const stream = await EventStream.open(door.url, `/view/${encodeURIComponent(id)}/stream`, secret, lastEventId)
  open.push(stream)
  return stream
}
const numberOf = (id: string | undefined): number => Number(id?.slice(id.lastIndexOf(".") + 1))
const incarnationOf = (id: string | undefined): string => id?.slice(0, id.lastIndexOf(".")) ?? ""

describe("events", () => {
  it("GET /view/:view_id/stream 200 D11 text/event-stream: a snapshot as D8, then a delta per change that touched the view", async () => {
    await post("/ingest", create("s:1", { a: 1 }))
    await view("s", "SELECT * FROM s WHERE a > 0")
    const stream = await follow("s")
    expect(stream.headers["content-type"]).toMatch(/^text\/event-stream/)
    const registered = bodyOf(await send(door, { ask: "GET /view/s" }))
    const [snapshot] = await stream.atLeast(1)
    expect(snapshot).toEqual({ event: "snapshot", id: expect.stringMatching(/^.+\.\d+$/), data: registered })
    await post("/ingest", create("s:2", { a: 2 }))
    await post("/ingest", create("s:3", { a: -1 }))
    await post("/ingest", change("UPDATE", "s:1", { a: 5 }))
    await post("/ingest", change("UPDATE", "s:2", { a: -5 }))
    await post("/ingest", change("DELETE", "s:1"))
    const events = await stream.atLeast(5)
    const hash = expect.stringMatching(/\S/)
    const nothing = { seq: null, additions: [], updates: [], removals: [], subqueries: [], result_hash: hash }
    expect(events.slice(1).map((event) => [event.event, event.data])).toEqual([
      ["delta", { ...nothing, additions: [["s:2", 1]] }],
      ["delta", { ...nothing, updates: [["s:1", 2]] }],
      ["delta", { ...nothing, removals: ["s:2"] }],
      ["delta", { ...nothing, removals: ["s:1"] }]
    ])
    expect(events.map((event) => numberOf(event.id) - numberOf(snapshot?.id))).toEqual([0, 1, 2, 3, 4])
    expect(new Set(events.map((event) => incarnationOf(event.id))).size).toBe(1)
    expect(bodyOf(await send(door, { ask: "GET /view/s" }))["result_hash"]).toBe(events[4]?.data["result_hash"])
  })
  it("GET /view/:view_id/stream D5 D11 a change with seq is announced with it", async () => {
    await view("q", "SELECT * FROM q")
    const stream = await follow("q")
    await stream.atLeast(1)
    await post("/ingest", { ...create("q:1"), seq: 12, log_id: "l", epoch: 1 })
    expect((await stream.atLeast(2))[1]?.data).toMatchObject({ seq: 12, additions: [["q:1", 1]] })
  })
  it("GET /view/:view_id/stream D11 the rows of a subquery are told under their parent and alias", async () => {
    await post("/ingest", [create("pa:1", { n: 1 }), create("pa:2", { n: 2 })])
    await view("ch", "SELECT id, (SELECT id FROM ch WHERE of = $parent.n) AS chs FROM pa")
    const stream = await follow("ch")
    await stream.atLeast(1)
    await post("/ingest", create("ch:1", { of: 2 }))
    await post("/ingest", change("UPDATE", "ch:1", { of: 1 }))
    await post("/ingest", change("DELETE", "ch:1"))
    const events = await stream.atLeast(4)
    const child = (parent: string, op: string, version: unknown = expect.any(Number)) => ({
      alias: "chs",
      parent,
      id: "ch:1",
      version,
      op
    })
    expect(events[1]?.data).toMatchObject({
      additions: [],
      updates: [["pa:2", 1]],
      removals: [],
      subqueries: [child("pa:2", "add", 1)]
    })
    expect(events[2]?.data["updates"]).toHaveLength(2)
    expect(events[2]?.data["subqueries"]).toEqual(
      expect.arrayContaining([child("pa:2", "remove"), child("pa:1", "add", 2)])
    )
    expect(events[3]?.data).toMatchObject({ updates: [["pa:1", 1]], subqueries: [child("pa:1", "remove")] })
  })
  it("GET /view/:view_id/stream D11 a window announces what crosses its edges", async () => {
    await post(
      "/ingest",
      [1, 2, 3].map((n) => create(`w:${n}`, { n }))
    )
    await view("w", "SELECT * FROM w ORDER BY n LIMIT 2")
    const stream = await follow("w")
    await stream.atLeast(1)
    await post("/ingest", create("w:0", { n: 0 }))
    await post("/ingest", change("DELETE", "w:1"))
    const events = await stream.atLeast(3)
    expect(events[1]?.data).toMatchObject({ additions: [["w:0", 1]], removals: ["w:2"] })
    expect(events[2]?.data).toMatchObject({ additions: [["w:2", 1]], removals: ["w:1"] })
  })
})

describe("the schemas of the events", () => {
  const strictly = { onExcessProperty: "error" } as const
  const decodes = (format: keyof typeof streamEvents, { data, event }: StreamEvent): unknown =>
    event === "snapshot"
      ? Schema.decodeUnknownSync(streamEvents[format].snapshot as Schema.Schema<unknown>, strictly)(data)
      : event === "delta"
        ? Schema.decodeUnknownSync(streamEvents[format].delta as Schema.Schema<unknown>, strictly)(data)
        : Schema.decodeUnknownSync(streamEvents[format].end, strictly)(data)
  it.each(["flat", "tree", "streaming", "rows"])(
    "GET /view/:view_id/stream D11 D50 are what the server sends in format %s, and the documents have them",
    async (format) => {
      const table = `sch_${format}`
      await post("/ingest", [create(`${table}:1`, { n: 1 }), create(`${table}:2`, { n: "a" })])
      await view(table, `SELECT id, n * 2 AS m, (SELECT id FROM ${table} WHERE n = $parent.n) AS same FROM ${table}`)
      const stream = await EventStream.open(door.url, `/view/${table}/stream?format=${format}`, secret)
      open.push(stream)
      await stream.atLeast(1)
      await post("/ingest", create(`${table}:3`, { n: 1 }))
      await stream.atLeast(2)
      await post("/ingest", change("DELETE", `${table}:1`))
      await stream.atLeast(3)
      await post("/view/unregister", { id: table })
      const events = await stream.atLeast(4)
      expect(events.map(({ event }) => event)).toEqual(["snapshot", "delta", "delta", "end"])
      for (const event of events) decodes(format === "rows" ? "rows" : "entries", event)
      const { components } = bodyOf(await request(door.url, { path: "/openapi.json" })) as {
        components: { schemas: { [name: string]: unknown } }
      }
      for (const name of ["StreamDelta", "StreamRowsSnapshot", "StreamRowsDelta", "StreamEnd", "ViewResult"])
        expect(components.schemas).toHaveProperty(name)
    }
  )
})

describe("resuming", () => {
  it("GET /view/:view_id/stream D11 Last-Event-ID resumes without loss while the deltas are buffered, else a snapshot", async () => {
    await view("r", "SELECT * FROM r")
    const first = await follow("r")
    const [snapshot] = await first.atLeast(1)
    for (const n of [1, 2, 3, 4, 5]) await post("/ingest", create(`r:${n}`))
    const all = [...(await first.atLeast(6))]
    const resumed = await follow("r", all[2]?.id)
    expect(await resumed.atLeast(3)).toEqual(all.slice(3))
    const whole = await follow("r", snapshot?.id)
    expect(await whole.atLeast(5)).toEqual(all.slice(1))
    for (const n of [6, 7, 8]) await post("/ingest", create(`r:${n}`))
    const late = await follow("r", snapshot?.id)
    const [fresh] = await late.atLeast(1)
    expect(fresh?.event).toBe("snapshot")
    expect(numberOf(fresh?.id)).toBe(numberOf(snapshot?.id) + 8)
    expect((fresh?.data["result_data"] as ReadonlyArray<unknown>).length).toBe(8)
  })
  it("GET /view/:view_id/stream D11 a stream that is resumed with nothing to tell answers its headers and a comment at once", async () => {
    await view("quiet", "SELECT * FROM quiet")
    const first = await follow("quiet")
    const [snapshot] = await first.atLeast(1)
    const resumed = await Promise.race([
      follow("quiet", snapshot?.id),
      sleep(10_000).then(() => "nothing within 10 s, and the heartbeat comes after 15")
    ])
    expect(resumed).toBeInstanceOf(EventStream)
    await post("/ingest", create("quiet:1"))
    expect((await (resumed as EventStream).atLeast(1)).map(({ event }) => event)).toEqual(["delta"])
  })
  it("GET /view/:view_id/stream D11 an unknown incarnation or an id that is none gives a snapshot", async () => {
    await view("i", "SELECT * FROM i")
    for (const id of ["nobody.0", "", "garbage", "1.2.3", "-1", "9999999999999999999999.1"]) {
      const stream = await follow("i", id)
      expect((await stream.atLeast(1))[0]?.event).toBe("snapshot")
      stream.close()
    }
  })
})

describe("endings", () => {
  const endOf = async (stream: EventStream): Promise<unknown> =>
    (await stream.find("an end", (event) => event.event === "end")).data
  it("GET /view/:view_id/stream D11 ends with unregistered, replaced, reset, and the stream closes", async () => {
    await view("e", "SELECT * FROM e")
    const unregistered = await follow("e")
    await unregistered.atLeast(1)
    await post("/view/unregister", { id: "e" })
    expect(await endOf(unregistered)).toEqual({ reason: "unregistered" })
    await view("e", "SELECT * FROM e")
    const replaced = await follow("e")
    await replaced.atLeast(1)
    await view("e", "SELECT * FROM e WHERE a = 1")
    expect(await endOf(replaced)).toEqual({ reason: "replaced" })
    const reset = await follow("e")
    await reset.atLeast(1)
    expect(incarnationOf(reset.events[0]?.id)).not.toBe(incarnationOf(replaced.events[0]?.id))
    await post("/reset")
    expect(await endOf(reset)).toEqual({ reason: "reset" })
    for (const stream of [unregistered, replaced, reset]) await until("the stream is closed", () => stream.ended)
  })
  it("GET /view/:view_id/stream D9 D11 registering the same view again does not end its stream", async () => {
    await view("same", "SELECT * FROM same")
    const stream = await follow("same")
    await stream.atLeast(1)
    await view("same", "SELECT * FROM same", { ttl: "2h" })
    await post("/ingest", create("same:1"))
    expect((await stream.atLeast(2)).map((event) => event.event)).toEqual(["snapshot", "delta"])
  })
  it("GET /view/:view_id/stream D11 ends with shutdown when the process stops", async () => {
    const own = await Door.start()
    try {
      await send(own, { ask: "POST /view/register", body: registration("v", "SELECT * FROM t") })
      const stream = await EventStream.open(own.url, "/view/v/stream", secret)
      await stream.atLeast(1)
      const exit = own.stop()
      expect(await endOf(stream)).toEqual({ reason: "shutdown" })
      expect(await exit).toEqual({ code: 0, signal: null })
    } finally {
      await own.close()
    }
  })
})

// They mostly wait for a sweep, so they run side by side; what is open is closed after each test, so the stream is its
// own.
describe.concurrent("D14 time to live", () => {
  it("D14 a view expires when lastActiveAt + ttl has passed, its stream ends with expired, others stay", async ({
    onTestFinished
  }) => {
    await view("stays", "SELECT * FROM ttl", { ttl: "1h" })
    await view("short", "SELECT * FROM ttl", { ttl: "1s" })
    const stream = await EventStream.open(door.url, "/view/short/stream", secret)
    onTestFinished(() => stream.close())
    expect((await stream.find("an end", (event) => event.event === "end")).data).toEqual({ reason: "expired" })
    expect((await send(door, { ask: "GET /view/short" })).status).toBe(404)
    expect((await send(door, { ask: "GET /view/stays" })).status).toBe(200)
  })
  it("D14 a registration already past its time goes with the next cleanup", async () => {
    await view("past", "SELECT * FROM ttl", { ttl: "1h", lastActiveAt: "2001-01-01T00:00:00Z" })
    await until("the view is gone", async () => (await send(door, { ask: "GET /view/past" })).status === 404)
  })
  it("D9 D14 registering again with a later lastActiveAt keeps the view alive past its first end", async () => {
    await view("kept", "SELECT * FROM ttl", {
      ttl: "1h",
      lastActiveAt: new Date(Date.now() - 3_600_000 + 2_000).toISOString()
    })
    expect((await view("kept", "SELECT * FROM ttl", { ttl: "1h" })).status).toBe(200)
    await view("witness", "SELECT * FROM ttl", {
      ttl: "1h",
      lastActiveAt: new Date(Date.now() - 3_600_000 + 2_500).toISOString()
    })
    await until(
      "a view with a later end has expired",
      async () => (await send(door, { ask: "GET /view/witness" })).status === 404
    )
    expect((await send(door, { ask: "GET /view/kept" })).status).toBe(200)
  })
})

describe("requests", () => {
  contract(
    () => door,
    [
      {
        name: "GET /view/:view_id/stream 401 UNAUTHORIZED",
        ask: "GET /view/s/stream",
        token: "wrong",
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "GET /view/:view_id/stream 404 VIEW_NOT_FOUND",
        ask: "GET /view/nobody/stream",
        status: 404,
        code: "VIEW_NOT_FOUND"
      }
    ]
  )
  it("a reader that hangs up does not disturb the others", async () => {
    await view("h", "SELECT * FROM h")
    const gone = await follow("h")
    const stays = await follow("h")
    await Promise.all([gone.atLeast(1), stays.atLeast(1)])
    gone.close()
    await post("/ingest", create("h:1"))
    expect((await stays.atLeast(2))[1]?.data).toMatchObject({ additions: [["h:1", 1]] })
    expect((await request(door.url, { path: "/health" })).status).toBe(200)
  })
})
