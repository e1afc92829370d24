/**
 * `GET /integrity` of the scheduler (D41): every status, the same answers as an SSP's, and no secret asked for.
 *
 * The hashes are computed here a second time from what was sent.
 */
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { leafToRoot, nothing, sample } from "../../kit/checks/integrityTree.ts"
import { create } from "../../kit/data/registration.ts"
import { type Faults, noFaults, silentUpstream, stores } from "../scheduler/faultyStores.ts"
import { inMemory, Node } from "../scheduler/node.ts"

describe("D41 GET /integrity of the scheduler", () => {
  let node: Node
  let faults: Faults
  beforeAll(async () => {
    faults = noFaults()
    node = await Node.start({ stores: stores(faults) })
    await node.post("/ingest", sample)
  })
  afterAll(() => node.close())
  const get = async (query: string) => bodyOf(await send(node, { ask: `GET /integrity${query}`, token: null }))
  const bad = (query: string, path: string): Row => ({
    name: `GET /integrity 400 INVALID_REQUEST for ${query}`,
    ask: `GET /integrity?table=item&${query}`,
    token: null,
    status: 400,
    code: "INVALID_REQUEST",
    check: (_, body) => expect(faultsOf(body).map((fault) => fault.path)).toEqual([path])
  })
  contract(
    () => node,
    [
      {
        name: "GET /integrity 200 D41 the roots of all tables at their position",
        ask: "GET /integrity",
        token: null,
        status: 200,
        is: {
          seq: 501,
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
        token: null,
        status: 200,
        is: { seq: 501, table: "none", level: 0, index: 0, hash: nothing, count: 0, children: [] }
      },
      {
        name: "GET /integrity 200 D41 a bucket without records",
        ask: "GET /integrity?table=none&level=2&index=65535",
        token: null,
        status: 200,
        is: { seq: 501, table: "none", level: 2, index: 65535, hash: nothing, count: 0, records: [] }
      },
      bad("level=3", "level"),
      bad("level=x", "level"),
      bad("index=1", "index"),
      bad("level=1&index=256", "index"),
      bad("level=2&index=65536", "index"),
      { name: "POST /integrity 404 takes GET", ask: "POST /integrity", token: null, status: 404, code: "NOT_FOUND" }
    ]
  )
  it("GET /integrity 200 D41 the one record of a table, from its leaf up to the root", () => leafToRoot(get))
  it("GET /integrity 200 D41 a change shows in the root at its position, and going back takes it back; a deletion too", async () => {
    const { hash: before } = await get("?table=item")
    await node.post("/ingest", create("item:7", { n: -7 }))
    expect(await get("?table=item")).toMatchObject({
      seq: 502,
      count: 500,
      hash: expect.not.stringMatching(String(before))
    })
    await node.post("/ingest", [create("item:7", { n: 7 }), create("item:new", {})])
    await node.post("/ingest", { ...create("item:new", {}), op: "DELETE" })
    const root = await get("?table=item")
    expect(root).toMatchObject({ seq: 505, count: 500, hash: before })
    expect(
      (root["children"] as ReadonlyArray<{ readonly count: number }>).reduce((sum, { count }) => sum + count, 0)
    ).toBe(500)
  })
  it("GET /integrity 500 REPLICA_FAILED when the replica cannot be read, and right again afterwards", async () => {
    const { hash: before } = await get("?table=item")
    await node.post("/ingest", create("item:8", { n: -8 }))
    faults.bucket = "failed"
    expect(await send(node, { ask: "GET /integrity?table=item", token: null })).toMatchObject({
      status: 500,
      json: { code: "REPLICA_FAILED" }
    })
    faults.bucket = undefined
    expect((await get("?table=item"))["hash"]).not.toBe(before)
  })
})

describe("D41 GET /integrity while the scheduler clones", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start({ stores: Layer.merge(inMemory, silentUpstream) })
  })
  afterAll(() => node.close())
  contract(
    () => node,
    [
      {
        name: "GET /integrity 503 SCHEDULER_CLONING",
        ask: "GET /integrity",
        token: null,
        status: 503,
        code: "SCHEDULER_CLONING"
      }
    ]
  )
})
