/**
 * `POST /ingest` of the scheduler: every status of its row in the specification, and what D3, D4, D5, D7 and D26 add to
 * it.
 *
 * Over the real server and the real pipeline; disks that fail are fakes, because they must fail on demand.
 */
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, type Row } from "../../kit/checks/contract.ts"
import type { Answer, Body } from "../../kit/checks/http.ts"
import { bad, without } from "../../kit/data/ingestRows.ts"
import { change, create } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { noFaults, silentUpstream, stores } from "../scheduler/faultyStores.ts"
import { inMemory, Node } from "../scheduler/node.ts"

let node: Node
beforeAll(async () => {
  node = await Node.start({ env: { SVC_MAX_BODY_BYTES: "4096" } })
})
afterAll(() => node.close())

const answers = { seq: expect.any(Number), delivered: 0 }
const rows = async (table: string): Promise<unknown> =>
  (await node.post("/proxy/query", { query: `SELECT *, _svc_rv FROM ${table}` })).json

describe("accepted", () => {
  contract(
    () => node,
    [
      {
        name: "POST /ingest 200 D7 answers seq and delivered and nothing else",
        ask: "POST /ingest",
        body: create("ok:1", { a: 1 }),
        status: 200,
        is: { seq: 1, delivered: 0 }
      },
      {
        name: "POST /ingest 200 UPDATE, DELETE of the unknown, any letter case (D3)",
        ask: "POST /ingest",
        body: [change("update", "ok:2", { a: 2 }), change("DeLeTe", "ok:99")],
        status: 200,
        is: { seq: 3, delivered: 0 }
      },
      {
        name: "POST /ingest 200 D5 an array is answered once, with the last seq",
        ask: "POST /ingest",
        body: [create("ok:5"), create("ok:6")],
        status: 200,
        is: { seq: 5, delivered: 0 }
      },
      {
        name: "POST /ingest 200 without a bearer",
        ask: "POST /ingest",
        body: create("ok:7"),
        token: null,
        status: 200,
        is: answers
      },
      {
        name: "POST /ingest 200 D17 keys __proto__, constructor and prototype are data",
        ask: "POST /ingest",
        body: '{"table":"proto","op":"CREATE","id":"proto:1","record":{"__proto__":{"x":1},"constructor":2}}',
        status: 200,
        is: answers
      },
      {
        name: "POST /ingest 200 seq, log_id and epoch of another log are not believed",
        ask: "POST /ingest",
        body: { ...create("ok:8"), seq: 99, log_id: "x", epoch: 7 },
        status: 200,
        is: answers
      }
    ]
  )
  it("POST /ingest 200 D17 and they come back as they were", async () =>
    expect(JSON.stringify(await rows("proto"))).toBe(
      '[{"__proto__":{"x":1},"_svc_rv":1,"constructor":2,"id":"proto:1"}]'
    ))
  it("D4 versions are decided here: from 1, one more per change of content, kept over deletion, stale ones dropped", async () => {
    const version = async (...changes: ReadonlyArray<Body>): Promise<unknown> => {
      await node.post("/ingest", changes)
      return ((await rows("ver")) as ReadonlyArray<Body>)[0]?.["_svc_rv"]
    }
    expect(await version(create("ver:1", { a: 1 }))).toBe(1)
    expect(await version(change("UPDATE", "ver:1", { a: 2 }), change("UPDATE", "ver:1", { a: 2 }))).toBe(2)
    expect(await version(change("UPDATE", "ver:1", { a: 3, _svc_rv: 40 }))).toBe(40)
    const head = node.pool.state().log.head
    expect((await node.post("/ingest", change("UPDATE", "ver:1", { a: 4, _svc_rv: 39 }))).json).toEqual({
      seq: head,
      delivered: 0
    })
    expect(await rows("ver")).toEqual([{ id: "ver:1", a: 3, _svc_rv: 40 }])
    expect(await version(change("DELETE", "ver:1"))).toBeUndefined()
    expect(await version(create("ver:1", { a: 1 }))).toBe(41)
  })
  it("D66 numbers are kept as the SSPs get them", async () => {
    const given = `{"big":987654321987654321,"float":987654321987654321.0,"zero":-0}`
    await node.post("/ingest", `{"table":"num","op":"CREATE","id":"num:1","record":${given}}`)
    const answer = await node.post("/proxy/query", { query: "SELECT VALUE [big, float, zero] FROM num" })
    expect(answer.text).toBe("[[987654321987654321,987654321987654300.0,0]]")
  })
  it("POST /ingest 400 D66 a number that nothing can hold is named, and nothing of the body is taken", async () => {
    const body = '[{"table":"huge","op":"CREATE","id":"huge:1","record":{}},{"record":{"n":[1e400]}}]'
    const answer = await node.post("/ingest", body)
    expect(faultsOf(expectError(answer, 400, "INVALID_REQUEST"))).toEqual([
      { path: "[1].record.n[0]", reason: "is 1e400, which neither a 64-bit integer nor a float can hold" }
    ])
    expect(await rows("huge")).toEqual([])
  })
})

describe("refused", () => {
  contract(
    () => node,
    [
      bad("a body that is no JSON", "{not json", ""),
      bad("an empty body", "", ""),
      bad("null", "null", ""),
      bad("D5 an empty array", [], ""),
      bad("an empty object", {}, "table"),
      ...["table", "op", "id", "record"].map((key) => bad(`no ${key}`, without(key), key)),
      ...["table", "op", "id", "record"].flatMap((key) =>
        [5, null, true, []].map((value) =>
          bad(`${key} is ${JSON.stringify(value)}`, { ...create("x:1"), [key]: value }, key)
        )
      ),
      ...["UPSERT", ""].map((op) =>
        bad(`D6 op is ${JSON.stringify(op)}`, { ...create("x:1"), op }, "op", "INVALID_OPERATION")
      ),
      ...["x", "x:", "", "y:1"].map((id) => bad(`D3 id is ${JSON.stringify(id)}`, { ...create("x:1"), id }, "id")),
      ...[-1, 1.5, "3"].map((version) =>
        bad(`D4 _svc_rv is ${JSON.stringify(version)}`, create("x:1", { _svc_rv: version }), "_svc_rv")
      ),
      bad("D5 one malformed element refuses the array and is named", [create("x:1"), { table: "x" }], "1"),
      {
        name: "POST /ingest 413 PAYLOAD_TOO_LARGE D17",
        ask: "POST /ingest",
        body: create("x:1", { text: "x".repeat(5000) }),
        status: 413,
        code: "PAYLOAD_TOO_LARGE"
      },
      {
        name: "GET /ingest 404 NOT_FOUND names the method it takes",
        ask: "GET /ingest",
        status: 404,
        code: "NOT_FOUND",
        check: (answer) => expect(answer.headers.allow).toBe("POST")
      }
    ]
  )
  it("POST /ingest 400 D5 takes nothing of a refused array", async () => expect(await rows("x")).toEqual([]))
})

describe("a target with a query", () => {
  const ask = "POST /ingest?query"
  contract(
    () => node,
    [
      {
        name: "POST /ingest 200 with a query: the same answer",
        ask,
        body: [create("declared:1", { a: 1 }), create("declared:2")],
        status: 200,
        is: answers
      },
      {
        name: "POST /ingest 400 with a query: INVALID_REQUEST",
        ask,
        body: { ...create("x:1"), id: "y:1" },
        status: 400,
        code: "INVALID_REQUEST"
      },
      {
        name: "POST /ingest 400 with a query: INVALID_OPERATION",
        ask,
        body: { ...create("x:1"), op: "PUT" },
        status: 400,
        code: "INVALID_OPERATION"
      },
      {
        name: "POST /ingest 413 with a query: PAYLOAD_TOO_LARGE",
        ask,
        body: create("x:1", { text: "x".repeat(5000) }),
        status: 413,
        code: "PAYLOAD_TOO_LARGE"
      }
    ]
  )
  it("POST /ingest 200 with a query: taken in order", async () =>
    expect(await rows("declared")).toEqual([
      { id: "declared:1", a: 1, _svc_rv: 1 },
      { id: "declared:2", _svc_rv: 1 }
    ]))
})

describe("POST /ingest 500 REPLICA_FAILED", () => {
  const faults = noFaults()
  let own: Node
  let ssp: FakeSsp
  beforeAll(async () => {
    // An SSP that answers late on a busy machine is not counted as delivered, so answers wait for it here.
    own = await Node.start({
      stores: stores(faults),
      env: { SVC_MAX_PENDING_CHANGES: "2", SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000" }
    })
    ssp = await (await FakeSsp.start("a")).join(own)
  })
  afterAll(async () => {
    await own.close()
    await ssp.close()
  })
  const ingest = (id: string): Promise<Answer> => own.post("/ingest", create(id))

  it("D26 the log is full: nothing is delivered, nothing is lost, and it goes on by itself", async () => {
    faults.wal = "full"
    expect(expectError(await ingest("a:1"), 500, "REPLICA_FAILED")["message"]).toContain("no space left")
    expect(ssp.calls("/ingest")).toEqual([])
    faults.wal = undefined
    expect((await ingest("a:1")).json).toEqual({ seq: 1, delivered: 1 })
  })
  it("D26 the replica fails before the log: the same", async () => {
    faults.read = "failed"
    expectError(await ingest("a:2"), 500, "REPLICA_FAILED")
    faults.read = undefined
    expect((await ingest("a:2")).json).toEqual({ seq: 2, delivered: 1 })
  })
  it("D26 the replica fails behind the log: nothing is delivered until it has what is logged, then all of it in order", async () => {
    faults.commit = "full"
    expectError(await ingest("a:3"), 500, "REPLICA_FAILED")
    expectError(await ingest("a:4"), 500, "REPLICA_FAILED")
    expectError(await own.post("/ingest?declared", create("a:4")), 500, "REPLICA_FAILED")
    expect(ssp.applied).toEqual([1, 2])
    faults.commit = undefined
    await until("the replica has caught up by itself", () => ssp.last === 3)
    expect((await ingest("a:5")).json).toEqual({ seq: 4, delivered: 1 })
    expect(ssp.applied).toEqual([1, 2, 3, 4])
    const ids = (await own.post("/proxy/query", { query: "SELECT VALUE id FROM a" })).json
    expect(ids).toEqual(["a:1", "a:2", "a:3", "a:5"])
  })
  it("POST /ingest 503 OVERLOADED with Retry-After when too many changes wait for the log", async () => {
    let release = (): void => {}
    faults.hold = new Promise((done) => {
      release = done
    })
    const first = ingest("b:1")
    await until("the first is with the log", async () => own.pool.state().log.head === 4)
    const waiting: Array<Promise<Answer>> = [ingest("b:2"), ingest("b:3"), ingest("b:4"), ingest("b:5"), ingest("b:6")]
    const refused = await Promise.any(
      waiting.map(async (each) => {
        const answer = await each
        return answer.status === 503 ? answer : Promise.reject(new Error(String(answer.status)))
      })
    )
    expectError(refused, 503, "OVERLOADED")
    expect(refused.headers["retry-after"]).toBe("1")
    faults.hold = undefined
    release()
    const statuses = (await Promise.all([first, ...waiting])).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
  })
})

describe("a scheduler that has not cloned its database yet", () => {
  let own: Node
  beforeAll(async () => {
    own = await Node.start({ stores: Layer.merge(inMemory, silentUpstream) })
  })
  afterAll(() => own.close())
  const cloning = (ask: string, body: unknown, what = ""): Row => ({
    name: `${ask} 503 SCHEDULER_CLONING${what}`,
    ask,
    body,
    status: 503,
    code: "SCHEDULER_CLONING"
  })
  contract(
    () => own,
    [
      cloning("POST /ingest", create("a:1")),
      cloning("POST /ingest", "{", " D6 before the body is looked at"),
      cloning("POST /ingest?query", "{", " D6 with a query too"),
      cloning("POST /ssp/register", { ssp_id: "a", url: "http://127.0.0.1:1" }, " D25"),
      cloning("POST /proxy/query", { query: "SELECT * FROM a" }, " D25"),
      cloning("GET /readyz", undefined),
      { name: "GET /livez 200 D34 while it clones", ask: "GET /livez", status: 200, is: { status: "ok" } },
      {
        name: "GET /info 200 D30 shows cloning",
        ask: "GET /info",
        status: 200,
        is: [{ entity: "scheduler", id: "scheduler-test", status: "cloning", views: 0 }]
      },
      {
        name: "GET /health 503 {status: unavailable} while it clones",
        ask: "GET /health",
        status: 503,
        is: { status: "unavailable" }
      },
      {
        name: "GET /progress 200 D34 shows cloning",
        ask: "GET /progress",
        status: 200,
        check: (_, body) => expect(body["state"]).toBe("cloning")
      },
      {
        name: "POST /view/register 503 NO_SSP_AVAILABLE while it clones",
        ask: "POST /view/register",
        body: { id: "v", surql: "SELECT * FROM a", clientId: "c", ttl: "1h" },
        status: 503,
        code: "NO_SSP_AVAILABLE"
      }
    ]
  )
})
