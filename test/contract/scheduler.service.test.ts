/**
 * The endpoints of the scheduler but `/ingest`: every status of their rows in the specification, their bodies, and
 * malformed ones.
 *
 * SSPs are fakes on real sockets; what they were told is part of the contract too.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultAt, type Row, send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"

const ok = { status: "ok" }
const bad = (ask: string, name: string, body: unknown, path: string): Row => ({
  name: `${ask} 400 INVALID_REQUEST ${name}`,
  ask,
  body,
  status: 400,
  code: "INVALID_REQUEST",
  check: faultAt(path)
})
/** Each field of a good body missing or of another type. */
const spoiled = (ask: string, good: Body, fields: ReadonlyArray<string>): ReadonlyArray<Row> =>
  fields.flatMap((field) => [
    bad(ask, `no ${field}`, Object.fromEntries(Object.entries(good).filter(([name]) => name !== field)), field),
    ...[5, true, []]
      .filter((value) => typeof value !== typeof good[field] || Array.isArray(value))
      .map((value) => bad(ask, `${field} is ${JSON.stringify(value)}`, { ...good, [field]: value }, field))
  ])

describe("a scheduler without SSPs", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_SCHEDULER_SSP_URL_ALLOW: "127.0.0.1,169.254.169.254,*.inside.example" } })
  })
  afterAll(() => node.close())
  const ssp = { ssp_id: "a", url: "http://127.0.0.1:1" }
  const beat = { ssp_id: "a", timestamp: 1, views: 0 }
  const view = registration("incantation:v", "SELECT * FROM t")
  const job = { job_id: "job:1", table: "job", payload: { path: "/x", body: {} } }
  contract(
    () => node,
    [
      { name: "GET /health 503 {status: unavailable}", ask: "GET /health", status: 503, is: { status: "unavailable" } },
      {
        name: "GET /info 200 one scheduler entry",
        ask: "GET /info",
        status: 200,
        is: [{ entity: "scheduler", id: "scheduler-test", status: "ready", views: 0 }]
      },
      {
        name: "GET /metrics 200 D34",
        ask: "GET /metrics",
        status: 200,
        is: {
          scheduler: {
            total_ssps: 0,
            ready_ssps: 0,
            total_queries: 0,
            running_jobs: 0,
            uptime_seconds: expect.any(Number)
          },
          ssps: []
        }
      },
      { name: "GET /readyz 200 D34", ask: "GET /readyz", status: 200, is: ok },
      { name: "GET /livez 200 D34", ask: "GET /livez", status: 200, is: ok },
      {
        name: "GET /progress 200 D34",
        ask: "GET /progress",
        status: 200,
        is: { state: "ready", seq: 0, tasks: [], clone: null, ssps: [] }
      },
      {
        name: "POST /view/register 503 NO_SSP_AVAILABLE",
        ask: "POST /view/register",
        body: view,
        status: 503,
        code: "NO_SSP_AVAILABLE"
      },
      {
        name: "POST /query/register 503 NO_SSP_AVAILABLE D33",
        ask: "POST /query/register",
        body: { query_id: "q", view_plan: "SELECT * FROM t" },
        status: 503,
        code: "NO_SSP_AVAILABLE"
      },
      {
        name: "POST /job/dispatch 503 NO_SSP_AVAILABLE",
        ask: "POST /job/dispatch",
        body: job,
        status: 503,
        code: "NO_SSP_AVAILABLE"
      },
      {
        name: "POST /view/unregister 404 VIEW_NOT_FOUND D16",
        ask: "POST /view/unregister",
        body: { id: "incantation:v" },
        status: 404,
        code: "VIEW_NOT_FOUND"
      },
      {
        name: "POST /view/unregister 404 a bare prefix names no view",
        ask: "POST /view/unregister",
        body: { id: "incantation:" },
        status: 404,
        code: "VIEW_NOT_FOUND"
      },
      {
        name: "POST /ssp/heartbeat 404 SSP_NOT_REGISTERED",
        ask: "POST /ssp/heartbeat",
        body: beat,
        status: 404,
        code: "SSP_NOT_REGISTERED"
      },
      {
        name: "POST /ssp/deregister 200 D31 for an unknown one too",
        ask: "POST /ssp/deregister",
        body: { ssp_id: "a" },
        status: 200,
        is: ok
      },
      {
        name: "POST /job/result 200 D36 for an unknown job",
        ask: "POST /job/result",
        body: { job_id: "job:9", status: "completed" },
        status: 200,
        is: ok
      },
      ...["POST /proxy/signin", "POST /proxy/use"].flatMap((ask) =>
        [undefined, "{", "", { user: "x" }, []].map(
          (body): Row => ({ name: `${ask} 200 D28 to ${JSON.stringify(body)}`, ask, body, status: 200, is: ok })
        )
      ),
      bad("POST /ssp/register", "empty ssp_id", { ...ssp, ssp_id: "" }, "ssp_id"),
      ...spoiled("POST /ssp/register", ssp, ["ssp_id", "url"]),
      ...["ftp://127.0.0.1", "127.0.0.1:1", "http://", "http://user:pass@127.0.0.1", "http://127.0.0.1/?q"].map((url) =>
        bad("POST /ssp/register", `url is ${url}`, { ...ssp, url }, "url")
      ),
      bad("POST /ssp/register", "D15 a host that is not listed", { ...ssp, url: "http://127.0.0.2:1" }, "url"),
      bad(
        "POST /ssp/register",
        "D15 a metadata address, listed or not",
        { ...ssp, url: "http://169.254.169.254" },
        "url"
      ),
      ...spoiled("POST /ssp/heartbeat", beat, ["ssp_id", "timestamp", "views"]),
      bad("POST /ssp/heartbeat", "views is -1", { ...beat, views: -1 }, "views"),
      ...spoiled("POST /ssp/deregister", { ssp_id: "a" }, ["ssp_id"]),
      ...spoiled("POST /view/register", view, ["id", "surql", "clientId", "ttl"]),
      bad("POST /view/register", "D14 ttl is no duration", { ...view, ttl: "soon" }, "ttl"),
      bad("POST /view/register", "D14 lastActiveAt is no time", { ...view, lastActiveAt: "now" }, "lastActiveAt"),
      bad("POST /view/register", "D8 an unknown format", { ...view, format: "xml" }, "format"),
      bad("POST /view/register", "D10 a bare prefix", { ...view, id: "incantation:" }, "id"),
      ...spoiled("POST /view/unregister", { id: "v" }, ["id"]),
      ...spoiled("POST /job/dispatch", job, ["job_id", "table", "payload"]),
      bad("POST /job/dispatch", "no payload.path", { ...job, payload: { body: {} } }, "payload.path"),
      ...spoiled("POST /job/result", { job_id: "job:1", status: "completed" }, ["job_id", "status"]),
      bad("POST /job/result", "an unknown status", { job_id: "job:1", status: "success" }, "status"),
      ...spoiled("POST /query/register", { query_id: "q", view_plan: "SELECT * FROM t" }, ["query_id", "view_plan"]),
      bad(
        "POST /query/register",
        "D33 a plan with a fault",
        { query_id: "q", view_plan: { surql: "SELECT * FROM t", format: "xml" } },
        "view_plan.format"
      ),
      ...spoiled("POST /proxy/query", { query: "RETURN 1" }, ["query"]),
      bad("POST /proxy/query", "params is a list", { query: "RETURN 1", params: [] }, "params"),
      {
        name: "GET /ssp/register 404 NOT_FOUND names the method",
        ask: "GET /ssp/register",
        status: 404,
        code: "NOT_FOUND",
        check: (answer) => expect(answer.headers.allow).toBe("POST")
      },
      { name: "GET /nowhere 404 NOT_FOUND", ask: "GET /nowhere", status: 404, code: "NOT_FOUND" },
      {
        name: "GET /openapi.json 200",
        ask: "GET /openapi.json",
        status: 200,
        check: (answer) => expect(answer.text).not.toMatch(/HttpApiDecodeError/)
      }
    ]
  )

  const posts = [
    "/ingest",
    "/proxy/query",
    "/view/register",
    "/view/unregister",
    "/query/register",
    "/ssp/register",
    "/ssp/heartbeat",
    "/ssp/deregister",
    "/job/dispatch",
    "/job/result"
  ]
  for (const path of posts) {
    it(`POST ${path} 400 or 413 to every body that is malformed, never 5xx`, async () => {
      const deep = `${'{"a":'.repeat(70)}1${"}".repeat(70)}`
      for (const body of [
        "{",
        "",
        " ",
        "null",
        "5",
        '"x"',
        "[]",
        "[[]]",
        "{}x",
        deep,
        new Uint8Array([0x22, 0xff, 0x22]),
        '{"__proto__":{"ssp_id":"a"}}'
      ]) {
        expectError(await send(node, { ask: `POST ${path}`, body, token: null }), 400, "INVALID_REQUEST")
      }
      expectError(
        await send(node, { ask: `POST ${path}`, body: `"${"x".repeat(2_100_000)}"`, token: null }),
        413,
        "PAYLOAD_TOO_LARGE"
      )
    })
  }
})

describe("a scheduler with SSPs", () => {
  let node: Node
  let a: FakeSsp
  let b: FakeSsp
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE: "321" } })
    a = await (await FakeSsp.start("a")).join(node)
    b = await (await FakeSsp.start("b")).join(node)
  })
  afterAll(async () => {
    await node.close()
    await a.close()
    await b.close()
  })
  const view = (id: string, more: Body = {}): Body => registration(id, "SELECT * FROM t", more)

  it("POST /ssp/register 202 answers snapshot_seq, and as extensions registration, log_id, epoch, its time-out and how many records to ask for at once", async () => {
    const own = await FakeSsp.start("registers")
    expect(bodyOf(await own.register(node))).toEqual({
      snapshot_seq: 0,
      registration: expect.any(Number),
      ...{ log_id: node.pool.identity.logId, epoch: 1 },
      heartbeat_timeout_ms: 60_000,
      bootstrap_chunk_size: 321
    })
    expect((await node.post("/ssp/deregister", { ssp_id: "registers" })).json).toEqual(ok)
    expect(await own.beat(node)).toMatchObject({ status: 404 })
    await own.close()
  })
  it("POST /ssp/register 409 SSP_FENCED: of two processes with one id the newer wins, and the older is told", async () => {
    const [older, newer] = [await FakeSsp.start("twice"), await FakeSsp.start("twice")]
    await older.register(node, { incarnation: "1" })
    expect((await newer.register(node, { incarnation: "2" })).status).toBe(202)
    expectError(await older.beat(node, { incarnation: "1" }), 409, "SSP_FENCED")
    expectError(await older.register(node, { incarnation: "1" }), 409, "SSP_FENCED")
    expect((await newer.beat(node, { incarnation: "2" })).status).toBe(200)
    await node.post("/ssp/deregister", { ssp_id: "twice", incarnation: "2" })
    await Promise.all([older.close(), newer.close()])
  })
  it("POST /view/register 200 answers the assignment; the SSP gets the registration as it came, with its assignment", async () => {
    const answer = await node.post("/view/register", view("incantation:one", { params: { a: 1 }, format: null }))
    expect([answer.status, answer.json]).toEqual([
      200,
      { query_id: "incantation:one", ssp_id: "a", assigned_at: expect.any(Number) }
    ])
    expect(a.calls("/view/register").at(-1)?.json).toEqual({
      ...view("incantation:one", { params: { a: 1 }, format: null }),
      idleMs: expect.any(Number),
      assignment: expect.any(Number)
    })
  })
  it("POST /view/register 200 D31 an id again keeps its SSP; D32 the next goes where fewer are", async () => {
    expect(bodyOf(await node.post("/view/register", view("one")))["ssp_id"]).toBe("a")
    expect(bodyOf(await node.post("/view/register", view("two")))["ssp_id"]).toBe("b")
    expect(a.calls("/view/register")).toHaveLength(2)
  })
  it("POST /view/register 400 D31 the SSP's refusal is passed on, and the view is not assigned", async () => {
    const refusal = { code: "INVALID_QUERY", message: "expected FROM", details: { line: 1, column: 8 } }
    for (const ssp of [a, b])
      ssp.behaviour = ({ path }) => (path === "/view/register" ? { status: 400, body: refusal } : undefined)
    expect(await node.post("/view/register", view("refused"))).toMatchObject({ status: 400, json: refusal })
    for (const ssp of [a, b])
      ssp.behaviour = ({ path }) =>
        path === "/view/register" ? { status: 400, body: { error: "their own words" } } : undefined
    expectError(
      await node.post("/query/register", { query_id: "refused", view_plan: "SELECT * FROM t" }),
      400,
      "INVALID_REQUEST"
    )
    for (const ssp of [a, b]) ssp.behaviour = () => undefined
    expectError(await node.post("/view/unregister", { id: "refused" }), 404, "VIEW_NOT_FOUND")
  })
  it("POST /view/register 200 D31 an SSP that does not answer is skipped; 503 NO_SSP_AVAILABLE when none is left", async () => {
    b.behaviour = ({ path }) => (path === "/view/register" ? { status: 503 } : undefined)
    expect(bodyOf(await node.post("/view/register", view("skipped")))["ssp_id"]).toBe("a")
    a.behaviour = b.behaviour
    expectError(await node.post("/view/register", view("nobody")), 503, "NO_SSP_AVAILABLE")
    for (const ssp of [a, b]) ssp.behaviour = () => undefined
  })
  it("POST /query/register 200 D33 answers id and address of the SSP, with the defaults of a plan", async () => {
    const answer = bodyOf(await node.post("/query/register", { query_id: "plan", view_plan: "SELECT * FROM t" }))
    expect(answer).toEqual({ ssp_id: "b", ssp_url: b.url })
    expect(b.calls("/view/register").at(-1)?.json).toMatchObject({
      id: "plan",
      clientId: "plan",
      ttl: "1h",
      surql: "SELECT * FROM t"
    })
    expect(
      (
        await node.post("/query/register", {
          query_id: "plan",
          view_plan: { surql: "SELECT * FROM t", ttl: "5m", clientId: "me" }
        })
      ).status
    ).toBe(200)
    expect(b.calls("/view/register").at(-1)?.json).toMatchObject({ id: "plan", clientId: "me", ttl: "5m" })
  })
  it("POST /view/unregister 200 D10 under any of its names, and the SSP is told", async () => {
    expect((await node.post("/view/unregister", { id: "_svc_query:one" })).json).toEqual(ok)
    await until("the SSP is told", () =>
      [...a.calls("/view/unregister"), ...b.calls("/view/unregister")].some(
        (told) => (told.json as Body)["id"] === "incantation:one"
      )
    )
    expectError(await node.post("/view/unregister", { id: "one" }), 404, "VIEW_NOT_FOUND")
  })
  it("POST /job/dispatch 200 answers the id of the SSP with the fewest jobs, the same for the same job", async () => {
    const dispatch = async (job: string): Promise<unknown> =>
      (await node.post("/job/dispatch", { job_id: job, table: "job", payload: { path: "/x", body: {} } })).json
    expect([await dispatch("job:1"), await dispatch("job:2"), await dispatch("job:1")]).toEqual(["a", "b", "a"])
    expect(bodyOf(await node.get("/metrics"))["scheduler"]).toMatchObject({ running_jobs: 2 })
    for (const [job, status] of [
      ["job:1", "failed"],
      ["job:2", "running"]
    ])
      await node.post("/job/result", { job_id: job, status, error: status === "failed" ? "no" : null })
    expect(bodyOf(await node.get("/metrics"))["scheduler"]).toMatchObject({ running_jobs: 1 })
  })
  it("GET /health 200, GET /info and GET /metrics 200 show every SSP", async () => {
    await a.beat(node, { views: 7, cpu_usage: 12.5, memory_usage: 100 })
    expect(await node.get("/health")).toMatchObject({ status: 200, json: { status: "healthy" } })
    const entries = (await node.get("/info")).json as ReadonlyArray<Body>
    expect(entries.map((entry) => [entry["entity"], entry["id"], entry["status"]])).toEqual([
      ["scheduler", "scheduler-test", "ready"],
      ["ssp", "a", "ready"],
      ["ssp", "b", "ready"]
    ])
    const figures = bodyOf(await node.get("/metrics"))
    expect(figures["scheduler"]).toMatchObject({ total_ssps: 2, ready_ssps: 2, total_queries: 3 })
    expect((figures["ssps"] as ReadonlyArray<Body>)[0]).toEqual({
      id: "a",
      query_count: 1,
      views: 7,
      cpu_usage: 12.5,
      memory_usage: 100,
      last_heartbeat_seconds_ago: 0
    })
  })
})

describe("POST /proxy/query", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_QUERY_ROWS: "2" } })
    await node.post("/ingest", [create("t:1", { a: 1 }), create("t:2", { a: 2 })])
  })
  afterAll(() => node.close())
  const query = (name: string, text: string, status: number, more: Partial<Row>): Row => ({
    name: `POST /proxy/query ${status} ${name}`,
    ask: "POST /proxy/query",
    body: { query: text },
    status,
    ...more
  })
  contract(
    () => node,
    [
      query("D28 several statements answer an array of values", "RETURN 1; SELECT VALUE a FROM t", 200, {
        is: [1, [1, 2]]
      }),
      query("D28 a missing table answers []", "SELECT * FROM nothing", 200, { is: [] }),
      query("D28 INFO FOR DB", "INFO FOR DB", 200, {
        check: (_, body) => expect(Object.keys(body["tables"] as Body)).toEqual(["t"])
      }),
      {
        name: "POST /proxy/query 200 D20 params",
        ask: "POST /proxy/query",
        body: { query: "SELECT VALUE a FROM t WHERE a > $x", params: { x: 1 } },
        status: 200,
        is: [2]
      },
      query("INVALID_QUERY with line and column", "SELECT *\nFRM t", 400, {
        code: "INVALID_QUERY",
        check: (_, body) => expect(body["details"]).toEqual({ line: 2, column: 1 })
      }),
      query("INVALID_QUERY D28 for what writes", "CREATE t:3", 400, { code: "INVALID_QUERY" }),
      query("QUERY_FAILED D2a", "RETURN 1 + NONE", 500, { code: "QUERY_FAILED" })
    ]
  )
  it("POST /proxy/query 200 D28 rows, with _svc_rv (D4) where it is named, and the position they were read at (D20)", async () => {
    const answer = await node.post("/proxy/query", { query: "SELECT *, _svc_rv FROM t; SELECT * FROM t" })
    expect([answer.headers["svc-snapshot-seq"], answer.json]).toEqual([
      "2",
      [
        [
          { id: "t:1", a: 1, _svc_rv: 1 },
          { id: "t:2", a: 2, _svc_rv: 1 }
        ],
        [
          { id: "t:1", a: 1 },
          { id: "t:2", a: 2 }
        ]
      ]
    ])
  })
  it("POST /proxy/query 500 QUERY_FAILED D28 names the limit of rows", async () => {
    await node.post("/ingest", create("t:3"))
    expect(
      expectError(await node.post("/proxy/query", { query: "SELECT * FROM t" }), 500, "QUERY_FAILED")["message"]
    ).toContain("SVC_QUERY_ROWS")
  })
})
