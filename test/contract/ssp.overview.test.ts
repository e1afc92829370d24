/**
 * What operators look at on the SSP: `/views` page by page and `/overview`, with every status.
 *
 * Against the real process, because what is counted (writes, latencies, streams) comes out of all of it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

let door: Door
const view = (key: string, surql: string, more: Body = {}): Promise<unknown> =>
  send(door, { ask: "POST /view/register", body: registration(key, surql, more) })
const idsOf = (body: Body): ReadonlyArray<unknown> => (body["views"] as ReadonlyArray<Body>).map(({ id }) => id)

beforeAll(async () => {
  door = await Door.start({ env: { SSP_ID: "me" } })
  await view("incantation:b", "SELECT * FROM item WHERE n = $n", {
    params: { n: 2 },
    format: "tree",
    ttl: "1h30m",
    clientId: "anna"
  })
  await view("c", "SELECT count() FROM item GROUP ALL")
  await view("a", "SELECT * FROM other")
  await view("incantation:incantation:x", "SELECT n / 0 AS n FROM item")
  await send(door, { ask: "POST /ingest", body: [1, 2, 2].map((n, i) => create(`item:${i}`, { n })) })
})
afterAll(() => door.close())

const limitRefused = (limit: string): Row => ({
  name: `GET /views 400 INVALID_REQUEST limit ${limit}`,
  ask: `GET /views?limit=${limit}`,
  status: 400,
  code: "INVALID_REQUEST",
  check: (_, body) =>
    expect(faultsOf(body)).toEqual([{ path: "limit", reason: "must be a whole number from 1 to 500" }])
})

describe("GET /views", () => {
  contract(
    () => door,
    [
      { name: "GET /views 401 without the secret", ask: "GET /views", token: null, status: 401, code: "UNAUTHORIZED" },
      {
        name: "GET /views 200 all of them in the order of their keys",
        ask: "GET /views",
        status: 200,
        check: (_, body) => {
          expect([idsOf(body), body["total"], body["next"]]).toEqual([
            ["a", "incantation:b", "c", "incantation:incantation:x"],
            4,
            null
          ])
        }
      },
      {
        name: "GET /views 200 with query, parameters, rows, costs and who follows",
        ask: "GET /views?after=a&limit=1",
        status: 200,
        is: {
          views: [
            {
              id: "incantation:b",
              query: "SELECT * FROM item WHERE n = $n",
              params: { n: 2 },
              format: "tree",
              client_id: "anna",
              ttl_seconds: 5400,
              last_active_at: expect.stringMatching(/^\d{4}-.*Z$/),
              rows: 2,
              errors: 0,
              generation: expect.any(Number),
              last_cost: expect.any(Number),
              total_cost: expect.any(Number),
              streams: 0,
              incremental: true
            }
          ],
          total: 4,
          next: "incantation:b"
        }
      },
      {
        name: "GET /views 200 D10 goes on behind an id in any of its forms",
        ask: "GET /views?after=_svc_query:b&limit=1",
        status: 200,
        check: (_, body) => expect([idsOf(body), body["next"]]).toEqual([["c"], "c"])
      },
      {
        name: "GET /views 200 the last page says so, also behind an id that looks like two",
        ask: "GET /views?after=incantation:incantation:x",
        status: 200,
        is: { views: [], total: 4, next: null }
      },
      {
        name: "GET /views 200 search looks into ids, clients and queries, in any case",
        ask: "GET /views?search=ANNA",
        status: 200,
        check: (_, body) => expect([idsOf(body), body["total"]]).toEqual([["incantation:b"], 4])
      },
      {
        name: "GET /views 200 search in the query",
        ask: "GET /views?search=group%20all&limit=1",
        status: 200,
        check: (_, body) => expect([idsOf(body), body["next"]]).toEqual([["c"], null])
      },
      {
        name: "GET /views 400 an order that there is not",
        ask: "GET /views?order=name",
        status: 400,
        code: "INVALID_REQUEST"
      },
      ...["0", "501", "x", "1.5"].map(limitRefused)
    ]
  )
  it("GET /views 200 by cost, what has cost most first", async () => {
    const listed = async (words: string) =>
      bodyOf(await send(door, { ask: `GET /views?${words}` }))["views"] as ReadonlyArray<{
        readonly id: string
        readonly total_cost: number
      }>
    const all = await listed("")
    const found = await listed("order=cost")
    expect(new Set(found.map(({ total_cost }) => total_cost)).size).toBeGreaterThan(1)
    expect(found.map(({ total_cost }) => total_cost)).toEqual(all.map((view) => view.total_cost).sort((x, y) => y - x))
    expect(await listed("order=cost&limit=2")).toEqual(found.slice(0, 2))
    expect((await listed("order=cost&search=ANNA")).map(({ id }) => id)).toEqual(["incantation:b"])
  })
  it("GET /views 200 page by page shows every view once", async () => {
    const seen: Array<unknown> = []
    for (let next: unknown = ""; next !== null; ) {
      const body: Body = bodyOf(
        await send(door, {
          ask: `GET /views?limit=1${next === "" ? "" : `&after=${encodeURIComponent(String(next))}`}`
        })
      )
      seen.push(...idsOf(body))
      next = body["next"]
      expect(seen.length).toBeLessThan(10)
    }
    expect(seen).toEqual(["a", "incantation:b", "c", "incantation:incantation:x"])
  })
})

describe("GET /overview", () => {
  const overview = async (): Promise<Body> => bodyOf(await send(door, { ask: "GET /overview" }))
  contract(
    () => door,
    [
      {
        name: "GET /overview 401 without the secret",
        ask: "GET /overview",
        token: null,
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "GET /overview 200 what there is",
        ask: "GET /overview",
        status: 200,
        is: {
          id: "me",
          version: expect.stringMatching(/^\d+\./),
          status: "ready",
          mode: "standalone",
          store: "memory:// (nothing is kept)",
          uptime_seconds: expect.any(Number),
          used: { cpu_seconds: expect.any(Number), memory_megabytes: expect.any(Number) },
          ingest: { bounds_ms: expect.any(Array), counts: expect.any(Array) },
          feed: null,
          writes: 3,
          seq: null,
          views: 4,
          max_views: 100_000,
          streams: 0,
          max_streams: 1000,
          records: 3,
          // Three records of one small number each: slot, id and place, a head, two fields, and the id's text.
          record_bytes: 3 * 144,
          tables: [{ table: "item", records: 3, bytes: 3 * 144 }],
          pending: { changes: 0, max_changes: 10_000, edges: 0, max_edges: 200_000 },
          quarantined: [],
          warnings: [],
          jobs: []
        }
      }
    ]
  )
  it("GET /overview 200 counts writes and answers, and only what was taken", async () => {
    const answers = (body: Body): number =>
      (body["ingest"] as { readonly counts: ReadonlyArray<number> }).counts.reduce((sum, n) => sum + n, 0)
    const before = await overview()
    await send(door, { ask: "POST /ingest", body: create("item:9", { n: 9 }) })
    await send(door, { ask: "POST /ingest", body: { op: "nonsense" } })
    const after = await overview()
    expect([Number(after["writes"]) - Number(before["writes"]), answers(after) - answers(before)]).toEqual([1, 1])
    const { bounds_ms, counts } = after["ingest"] as {
      readonly bounds_ms: ReadonlyArray<number>
      readonly counts: ReadonlyArray<number>
    }
    expect(counts.length).toBe(bounds_ms.length + 1)
  })
})
