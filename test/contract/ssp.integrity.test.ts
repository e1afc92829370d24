/**
 * The integrity endpoints of the SSP (D41), on a node that has no database: nodes of the tree, every status, and how a
 * client descends.
 *
 * The hashes are computed here a second time from what was sent, because a tree that only agrees with itself proves
 * nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { leafToRoot, nothing, sample } from "../../kit/checks/integrityTree.ts"
import { create } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start()
  await send(door, { ask: "POST /ingest", body: sample })
})
afterAll(() => door.close())

const get = async (query: string) => bodyOf(await send(door, { ask: `GET /integrity${query}` }))

const bad = (query: string, path: string): Row => ({
  name: `GET /integrity 400 INVALID_REQUEST for ${query}`,
  ask: `GET /integrity?table=item&${query}`,
  status: 400,
  code: "INVALID_REQUEST",
  check: (_, body) => expect(faultsOf(body).map((fault) => fault.path)).toEqual([path])
})

describe("D41 GET /integrity", () => {
  contract(
    () => door,
    [
      {
        name: "GET /integrity 200 D41 the roots of all tables",
        ask: "GET /integrity",
        status: 200,
        is: {
          seq: null,
          tables: ["item", "other"].map((table) => ({
            table,
            hash: expect.stringMatching(/^[0-9a-f]{64}$/),
            count: table === "item" ? 500 : 1
          }))
        }
      },
      {
        name: "GET /integrity 200 D41 a table that is not there has the root of nothing",
        ask: "GET /integrity?table=none",
        status: 200,
        is: { seq: null, table: "none", level: 0, index: 0, hash: nothing, count: 0, children: [] }
      },
      {
        name: "GET /integrity 200 D41 a bucket without records",
        ask: "GET /integrity?table=none&level=2&index=65535",
        status: 200,
        is: { seq: null, table: "none", level: 2, index: 65535, hash: nothing, count: 0, records: [] }
      },
      bad("level=3", "level"),
      bad("level=-1", "level"),
      bad("level=x", "level"),
      bad("index=1", "index"),
      bad("level=1&index=256", "index"),
      bad("level=2&index=65536", "index"),
      bad("level=2&index=1.5", "index"),
      { name: "POST /integrity 404 takes GET", ask: "POST /integrity", status: 404, code: "NOT_FOUND" }
    ]
  )
  it("GET /integrity 200 D41 the one record of a table, from its leaf up to the root", () => leafToRoot(get))
  it("GET /integrity 200 D41 a change shows in the root, and going back takes it back; every record is below it", async () => {
    const { hash: before } = await get("?table=item")
    await send(door, { ask: "POST /ingest", body: create("item:7", { n: -7 }) })
    expect((await get("?table=item"))["hash"]).not.toBe(before)
    await send(door, { ask: "POST /ingest", body: create("item:7", { n: 7 }) })
    const root = await get("?table=item")
    expect(root["hash"]).toBe(before)
    const children = root["children"] as ReadonlyArray<{ readonly index: number; readonly count: number }>
    expect(children.reduce((sum, { count }) => sum + count, 0)).toBe(500)
  })
})

describe("D41 without a database", () => {
  for (const ask of ["GET /integrity/compare", "GET /integrity/compare?table=item", "POST /reconcile"]) {
    contract(
      () => door,
      [
        {
          name: `${ask} 400 INVALID_REQUEST where there is none to compare with, naming STORE_ADDR`,
          ask,
          status: 400,
          code: "INVALID_REQUEST",
          check: (_, body) => expect(body["message"]).toContain("STORE_ADDR")
        }
      ]
    )
  }
})
