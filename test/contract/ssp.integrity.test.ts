/**
 * The integrity endpoints of the SSP (D41), on a node that has no database: nodes of the tree, every status, and how a client descends.
 *
 * The hashes are computed here a second time from what was sent, because a tree that only agrees with itself proves nothing.
 */
import { blake3 } from "@noble/hashes/blake3.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, faultsOf, type Row, send } from "../kit/contract.ts"
import { Door } from "../kit/Door.ts"
import { bodyOf } from "../kit/http.ts"
import { create } from "../kit/registration.ts"

const hash = (text: string): string => Buffer.from(blake3(Buffer.from(text))).toString("hex")
const nothing = "0".repeat(64)

let door: Door
beforeAll(async () => {
  door = await Door.start()
  await send(door, { ask: "POST /ingest", body: [...Array.from({ length: 500 }, (_, i) => create(`item:${i}`, { n: i })), create("other:x", { a: "b", list: [1, 2] })] })
})
afterAll(() => door.close())

const get = async (query: string) => bodyOf(await send(door, { ask: `GET /integrity${query}` }))

const bad = (query: string, path: string): Row => ({
  name: `GET /integrity 400 INVALID_REQUEST for ${query}`, ask: `GET /integrity?table=item&${query}`, status: 400, code: "INVALID_REQUEST",
  check: (_, body) => expect(faultsOf(body).map((fault) => fault.path)).toEqual([path])
})

describe("D41 GET /integrity", () => {
  contract(() => door, [
    { name: "GET /integrity 200 D41 the roots of all tables", ask: "GET /integrity", status: 200, is: { seq: null, tables: ["item", "other"].map((table) => ({ table, hash: expect.stringMatching(/^[0-9a-f]{64}$/), count: table === "item" ? 500 : 1 })) } },
    { name: "GET /integrity 200 D41 a table that is not there has the root of nothing", ask: "GET /integrity?table=none", status: 200, is: { seq: null, table: "none", level: 0, index: 0, hash: nothing, count: 0, children: [] } },
    { name: "GET /integrity 200 D41 a bucket without records", ask: "GET /integrity?table=none&level=2&index=65535", status: 200, is: { seq: null, table: "none", level: 2, index: 65535, hash: nothing, count: 0, records: [] } },
    bad("level=3", "level"), bad("level=-1", "level"), bad("level=x", "level"), bad("index=1", "index"), bad("level=1&index=256", "index"), bad("level=2&index=65536", "index"), bad("level=2&index=1.5", "index"),
    { name: "POST /integrity 404 takes GET", ask: "POST /integrity", status: 404, code: "NOT_FOUND" }
  ])
  it("GET /integrity 200 D41 the one record of a table, from its leaf up to the root", async () => {
    const [high = 0, low = 0] = blake3(Buffer.from("other:x"))
    const leaf = hash('other:x\u0000{"a":"b","list":[1,2]}')
    const bucket = hash(leaf)
    expect(await get(`?table=other&level=2&index=${high * 256 + low}`)).toMatchObject({ hash: bucket, count: 1, records: [{ id: "other:x", hash: leaf, version: 1 }] })
    const inner = hash(Buffer.from([low]).toString("hex") + bucket)
    expect(await get(`?table=other&level=1&index=${high}`)).toMatchObject({ hash: inner, count: 1, children: [{ index: high * 256 + low, hash: bucket, count: 1 }] })
    expect(await get("?table=other")).toMatchObject({ level: 0, index: 0, hash: hash(Buffer.from([high]).toString("hex") + inner), count: 1 })
  })
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
    contract(() => door, [{ name: `${ask} 400 INVALID_REQUEST where there is none to compare with, naming STORE_ADDR`, ask, status: 400, code: "INVALID_REQUEST", check: (_, body) => expect(body["message"]).toContain("STORE_ADDR") }])
  }
})
