/**
 * `POST /ingest` of the SSP: every status of its row in the specification, and what D1, D3, D4, D5 and D7 add to it.
 *
 * Why against the process: the routes may be served by something else than the contract, and the contract
 * holds for whatever answers.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, send } from "../../kit/checks/contract.ts"
import { type Answer, type Body, bodyOf } from "../../kit/checks/http.ts"
import { bad, without } from "../../kit/data/ingestRows.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start()
})
afterAll(() => door.close())

const ok = { views_affected: 0, edges_updated: 0 }
const ingest = (body: unknown): Promise<Answer> => send(door, { ask: "POST /ingest", body })
const rowsOf = async (id: string, surql: string): Promise<ReadonlyArray<Body>> =>
  bodyOf(await send(door, { ask: "POST /view/register", body: registration(id, surql, { format: "tree" }) }))[
    "result_data"
  ] as ReadonlyArray<Body>
const versionOf = async (table: string): Promise<unknown> =>
  bodyOf(await send(door, { ask: "POST /view/register", body: registration(`v-${table}`, `SELECT * FROM ${table}`) }))[
    "result_data"
  ]

describe("accepted", () => {
  contract(
    () => door,
    [
      {
        name: "POST /ingest 200 D7 CREATE answers the two counts and nothing else",
        ask: "POST /ingest",
        body: create("ok:1", { a: 1 }),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 UPDATE",
        ask: "POST /ingest",
        body: change("UPDATE", "ok:1", { a: 2 }),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D3 UPDATE of an unknown id",
        ask: "POST /ingest",
        body: change("UPDATE", "ok:2", { a: 2 }),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D3 CREATE of an existing id",
        ask: "POST /ingest",
        body: create("ok:1", { b: 1 }),
        status: 200,
        is: ok
      },
      { name: "POST /ingest 200 DELETE", ask: "POST /ingest", body: change("DELETE", "ok:1"), status: 200, is: ok },
      {
        name: "POST /ingest 200 D3 DELETE of an unknown id",
        ask: "POST /ingest",
        body: change("DELETE", "ok:99"),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D3 op in lower case",
        ask: "POST /ingest",
        body: change("create", "ok:3"),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D3 op in mixed case",
        ask: "POST /ingest",
        body: change("DeLeTe", "ok:3"),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 record.id that agrees with id",
        ask: "POST /ingest",
        body: create("ok:4", { id: "ok:4" }),
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D5 an array of changes is answered once",
        ask: "POST /ingest",
        body: [create("ok:5"), create("ok:6")],
        status: 200,
        is: ok
      },
      {
        name: "POST /ingest 200 D17 keys __proto__, constructor and prototype are data",
        ask: "POST /ingest",
        body: '{"table":"proto","op":"CREATE","id":"proto:1","record":{"__proto__":{"x":1},"constructor":2,"prototype":3}}',
        status: 200,
        is: ok
      }
    ]
  )

  it("POST /ingest 200 D17 and they come back as they were", async () => {
    const row = (await rowsOf("proto", "SELECT * FROM proto"))[0] ?? {}
    expect(
      Object.entries(row)
        .map(([key, value]) => [key, JSON.stringify(value)])
        .sort()
    ).toEqual([
      ["__proto__", '{"x":1}'],
      ["constructor", "2"],
      ["id", '"proto:1"'],
      ["prototype", "3"]
    ])
  })
  it("D7 views_affected counts registered view ids, edges_updated the rows that changed in them", async () => {
    for (const id of ["c1", "c2"])
      await send(door, { ask: "POST /view/register", body: registration(id, "SELECT * FROM counted WHERE a = 1") })
    await send(door, { ask: "POST /view/register", body: registration("c3", "SELECT * FROM counted WHERE a = 2") })
    expect((await ingest(create("counted:1", { a: 1 }))).json).toEqual({ views_affected: 2, edges_updated: 2 })
    expect((await ingest(create("counted:1", { a: 3 }))).json).toEqual({ views_affected: 2, edges_updated: 2 })
    expect((await ingest([create("counted:1", { a: 1 }), create("counted:2", { a: 2 })])).json).toEqual({
      views_affected: 3,
      edges_updated: 3
    })
  })
  it("D7 of an array views_affected counts the different views, edges_updated is the sum over its changes", async () => {
    await send(door, { ask: "POST /view/register", body: registration("once", "SELECT * FROM once") })
    expect(
      (await ingest([create("once:1", { n: 1 }), create("once:2", { n: 1 }), change("UPDATE", "once:1", { n: 2 })]))
        .json
    ).toEqual({ views_affected: 1, edges_updated: 3 })
    await send(door, { ask: "POST /view/register", body: registration("twice", "SELECT * FROM once") })
    expect((await ingest([change("DELETE", "once:1"), change("DELETE", "once:2")])).json).toEqual({
      views_affected: 2,
      edges_updated: 4
    })
  })
})

describe("refused", () => {
  contract(
    () => door,
    [
      bad("a body that is no JSON", "{not json", ""),
      bad("an empty body", "", ""),
      bad("null", "null", ""),
      bad("a number", "5", ""),
      bad("a string", '"x"', ""),
      bad("JSON and more", `${JSON.stringify(create("x:1"))} x`, ""),
      bad("D5 an empty array", [], ""),
      bad("an empty object", {}, "table"),
      ...["table", "op", "id", "record"].map((key) => bad(`no ${key}`, without(key), key)),
      ...["table", "op", "id"].flatMap((key) =>
        [5, null, true, [], {}].map((value) =>
          bad(`${key} is ${JSON.stringify(value)}`, { ...create("x:1"), [key]: value }, key)
        )
      ),
      ...[5, null, "text", true, []].map((value) =>
        bad(`record is ${JSON.stringify(value)}`, { ...create("x:1"), record: value }, "record")
      ),
      bad("D3 no record for DELETE", { table: "x", op: "DELETE", id: "x:1" }, "record"),
      ...["UPSERT", "", "CREATED", "create "].map((op) =>
        bad(`D6 op is ${JSON.stringify(op)}`, { ...create("x:1"), op }, "op", "INVALID_OPERATION")
      ),
      ...["x", "x:", ":1", "", "y:1", "x 1"].map((id) =>
        bad(`D3 id is ${JSON.stringify(id)}`, { ...create("x:1"), id }, "id")
      ),
      bad("D3 record.id is another id", create("x:1", { id: "x:2" }), "record.id"),
      bad("an empty table", { ...create("x:1"), table: "" }, "table"),
      ...[-1, 1.5, "3", null, true].map((version) =>
        bad(`D4 _svc_rv is ${JSON.stringify(version)}`, create("x:1", { _svc_rv: version }), "_svc_rv")
      ),
      bad(
        "D5 one malformed element refuses the array and is named",
        [create("x:1"), create("x:2"), { table: "x" }],
        "2"
      ),
      bad("D5 an array in an array", [[create("x:1")]], "0"),
      bad(
        "D57 what a database defines, which a scheduler alone says",
        [create("x:1"), create("_svc_definitions:database", { seq: 1 })],
        "[1].table"
      ),
      bad("D5 an unknown op in an array", [create("x:1"), { ...create("x:2"), op: "PUT" }], "1", "INVALID_OPERATION")
    ]
  )

  it("POST /ingest 400 INVALID_REQUEST D6 names every fault, one entry each", async () => {
    const body = expectError(await ingest({ table: 5, op: "CREATE", record: [] }), 400, "INVALID_REQUEST")
    expect(new Set(faultsOf(body).map((fault) => fault.path))).toEqual(new Set(["table", "id", "record"]))
  })
  it("POST /ingest 400 D5 applies nothing of a refused array", async () => {
    expect(await rowsOf("x", "SELECT * FROM x")).toEqual([])
  })
})

describe("what a change means", () => {
  it("D3 CREATE and UPDATE replace the whole record, DELETE removes it", async () => {
    await ingest(create("rep:1", { a: 1, b: { c: 2 } }))
    await ingest(change("UPDATE", "rep:1", { b: { d: 3 } }))
    expect(await rowsOf("rep", "SELECT * FROM rep")).toEqual([{ id: "rep:1", b: { d: 3 } }])
    await ingest(change("DELETE", "rep:1", { a: 1 }))
    expect(await rowsOf("rep", "SELECT * FROM rep")).toEqual([])
  })
  it("D3 re-delivery of the same change is harmless", async () => {
    await ingest(create("again:1", { a: 1 }))
    await ingest(create("again:1", { a: 1 }))
    expect(await versionOf("again")).toEqual([["again:1", 1]])
  })
  it("D4 the version starts at 1, grows by one with each change of content, and never falls back", async () => {
    await ingest(create("ver:1", { a: 1 }))
    expect(await versionOf("ver")).toEqual([["ver:1", 1]])
    await ingest(change("UPDATE", "ver:1", { a: 2 }))
    await ingest(change("UPDATE", "ver:1", { a: 2 }))
    await ingest(change("UPDATE", "ver:1", { a: 3 }))
    expect(await versionOf("ver")).toEqual([["ver:1", 3]])
    await ingest(change("DELETE", "ver:1"))
    await ingest(create("ver:1", { a: 1 }))
    const [[, version]] = (await versionOf("ver")) as [[string, number]]
    expect(version).toBeGreaterThan(3)
  })
  it("D4 _svc_rv is the version, is no content, and an older one is dropped", async () => {
    await ingest(create("rv:1", { a: 1, _svc_rv: 41 }))
    expect(await versionOf("rv")).toEqual([["rv:1", 41]])
    expect((await ingest(change("UPDATE", "rv:1", { a: 2, _svc_rv: 40 }))).json).toEqual({
      views_affected: 0,
      edges_updated: 0
    })
    expect(await rowsOf("rv-rows", "SELECT * FROM rv")).toEqual([{ id: "rv:1", a: 1 }])
    await ingest(change("UPDATE", "rv:1", { a: 3 }))
    expect(await versionOf("rv")).toEqual([["rv:1", 42]])
  })
  it("D1 a complete RFC 3339 date-time becomes a datetime (D2: shown in UTC), other strings stay as they are", async () => {
    await ingest(
      create("typed:1", {
        at: "2024-05-01T12:00:00+02:00",
        day: "2024-05-01",
        text: "at 2024-05-01T12:00:00Z",
        link: "user:1",
        n: null
      })
    )
    expect(await rowsOf("typed", "SELECT * FROM typed WHERE at = d'2024-05-01T10:00:00Z'")).toEqual([
      {
        id: "typed:1",
        at: "2024-05-01T10:00:00Z",
        day: "2024-05-01",
        text: "at 2024-05-01T12:00:00Z",
        link: "user:1",
        n: null
      }
    ])
  })
  it("D1 a string table:key equals a record id with the same text", async () => {
    await ingest([create("post:1", { author: "user:1" }), create("post:2", { author: "user:2" })])
    expect(await rowsOf("link", "SELECT * FROM post WHERE author = user:1")).toEqual([
      { id: "post:1", author: "user:1" }
    ])
  })
  it("D2 rows come in record-key order without ORDER BY: numbers by value, before strings", async () => {
    await ingest(["10", "9", "b", "a", "2"].map((key) => create(`keys:${key}`)))
    expect((await rowsOf("keys", "SELECT * FROM keys")).map((row) => row["id"])).toEqual([
      "keys:2",
      "keys:9",
      "keys:10",
      "keys:a",
      "keys:b"
    ])
  })
})

describe("D5 seq, epoch and log_id", () => {
  let own: Door
  beforeAll(async () => {
    own = await Door.start()
  })
  afterAll(() => own.close())
  const at = (seq: number, more: Body = {}): Promise<Answer> =>
    send(own, {
      ask: "POST /ingest",
      body: { ...create(`seq:${seq}`, { seq }), seq, log_id: "log-a", epoch: 2, ...more }
    })

  it("D5 POST /ingest 200 once and in order, 409 SEQUENCE_GAP with what is expected, 409 STALE_EPOCH", async () => {
    expect((await at(7)).status).toBe(200)
    expect((await at(8)).status).toBe(200)
    expect((await at(8, { record: { other: true } })).json).toEqual({ views_affected: 0, edges_updated: 0 })
    expect(expectError(await at(10), 409, "SEQUENCE_GAP")["details"]).toMatchObject({ expected: 9 })
    expectError(await at(9, { epoch: 1 }), 409, "STALE_EPOCH")
    expectError(await at(9, { log_id: "log-b" }), 409, "STALE_EPOCH")
    expect((await at(9, { epoch: 3 })).status).toBe(200)
    const rows = await send(own, {
      ask: "POST /view/register",
      body: registration("s", "SELECT * FROM seq", { format: "tree" })
    })
    expect(bodyOf(rows)["result_data"]).toEqual([7, 8, 9].map((seq) => ({ id: `seq:${seq}`, seq })))
  })
  it("D5 POST /ingest 409 SEQUENCE_GAP of an array names the first seq that is not applied, which is one of the array where the gap is inside it", async () => {
    const array = (...seqs: ReadonlyArray<number>): Promise<Answer> =>
      send(own, {
        ask: "POST /ingest",
        body: seqs.map((seq) => ({ ...create(`seq:${seq}`, { seq }), seq, log_id: "log-a", epoch: 3 }))
      })
    expect(expectError(await array(10, 12), 409, "SEQUENCE_GAP")["details"]).toEqual({ expected: 10 })
    expect(expectError(await array(9, 10, 11, 13), 409, "SEQUENCE_GAP")["details"]).toEqual({ expected: 10 })
    expect((await array(9, 10, 11)).status).toBe(200)
    expect(expectError(await array(13), 409, "SEQUENCE_GAP")["details"]).toEqual({ expected: 12 })
  })
  it("D5 POST /ingest 409 SEQUENCE_GAP of the very first array names its first seq, and a standalone SSP takes it then", async () => {
    const fresh = await Door.start()
    const array = (...seqs: ReadonlyArray<number>): Promise<Answer> =>
      send(fresh, { ask: "POST /ingest", body: seqs.map((seq) => ({ ...create(`seq:${seq}`, { seq }), seq })) })
    try {
      expect(expectError(await array(5, 7), 409, "SEQUENCE_GAP")["details"]).toEqual({ expected: 5 })
      expect((await array(5, 6, 7)).status).toBe(200)
    } finally {
      await fresh.close()
    }
  })
  it("D5 POST /ingest 200 a change without seq is applied as it comes", async () => {
    expect((await send(own, { ask: "POST /ingest", body: create("loose:1") })).status).toBe(200)
  })
})
