/**
 * `POST /view/register`, `POST /view/unregister`, `GET /view/:id` and `GET /debug/view/:id` of the SSP, row by row.
 *
 * Why results are looked at and not only statuses: the specification leaves the shapes to D8-D10 and D13, and a client
 * lives on exactly these shapes.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { type Answer, type Body, bodyOf } from "../../kit/checks/http.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door, removeFolder, secret, temporaryFolder } from "../../kit/processes/Door.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start()
  await send(door, {
    ask: "POST /ingest",
    body: [
      create("person:1", { name: "Ann", age: 30, x: null }),
      create("person:2", { name: "Bo" }),
      create("person:3", { name: "Cy", age: 20 })
    ]
  })
})
afterAll(() => door.close())

const register = (id: string, surql: string, more: Body = {}): Promise<Answer> =>
  send(door, { ask: "POST /view/register", body: registration(id, surql, more) })
const result = async (id: string, surql: string, more: Body = {}): Promise<unknown> =>
  bodyOf(await register(id, surql, { format: "tree", ...more }))["result_data"]
const all = "SELECT * FROM person"
const flat = [
  ["person:1", 1],
  ["person:2", 1],
  ["person:3", 1]
]
const answerShape = (format: string) => ({
  query_id: expect.any(String),
  format,
  result_hash: expect.stringMatching(/\S/),
  content_generation: 1,
  result_data: expect.any(Array)
})

describe("POST /view/register accepted", () => {
  const good = (name: string, more: Body, is: Body): Row => ({
    name: `POST /view/register 200 ${name}`,
    ask: "POST /view/register",
    body: registration("r", all, { ...more, id: name }),
    status: 200,
    check: (_, body) => expect(body).toEqual({ ...answerShape("flat"), query_id: name, ...is })
  })
  contract(
    () => door,
    [
      good("D8 flat is the default: record ids and versions in result order", {}, { result_data: flat }),
      good("D8 format null is flat", { format: null }, { result_data: flat }),
      good("D8 format flat", { format: "flat" }, { result_data: flat }),
      good("D8 format streaming", { format: "streaming" }, { format: "streaming", result_data: flat }),
      good(
        "D8 D2 format tree gives the rows: NONE left out, NULL as null",
        { format: "tree" },
        {
          format: "tree",
          result_data: [
            { id: "person:1", name: "Ann", age: 30, x: null },
            { id: "person:2", name: "Bo" },
            { id: "person:3", name: "Cy", age: 20 }
          ]
        }
      ),
      good("params null", { params: null }, { result_data: flat }),
      good(
        "params an object",
        { params: { a: 1, user: { name: "Bo" } }, surql: "SELECT * FROM person WHERE name = $user.name" },
        { result_data: [["person:2", 1]] }
      ),
      good("lastActiveAt as ISO 8601", { lastActiveAt: "2099-01-01T00:00:00Z" }, { result_data: flat }),
      good(
        "lastActiveAt with fraction and offset",
        { lastActiveAt: "2099-01-01T00:00:00.123+02:00" },
        { result_data: flat }
      ),
      good(
        "D14 a registration that is already past its time",
        { lastActiveAt: "2001-01-01T00:00:00Z" },
        { result_data: flat }
      ),
      good(
        "D8 rows that are no records have keys of their own",
        { surql: "SELECT age, count() AS n FROM person WHERE age != NONE GROUP BY age" },
        {
          result_data: [
            ["[20]", 1],
            ["[30]", 1]
          ]
        }
      ),
      good(
        "D8 groups as tree",
        { surql: "SELECT age, count() AS n FROM person WHERE age != NONE GROUP BY age", format: "tree" },
        {
          format: "tree",
          result_data: [
            { age: 20, n: 1 },
            { age: 30, n: 1 }
          ]
        }
      ),
      good(
        "GROUP ALL",
        { surql: "SELECT count() AS n FROM person GROUP ALL", format: "tree" },
        { format: "tree", result_data: [{ n: 3 }] }
      ),
      good(
        "D2 FROM ONLY answers the object",
        { surql: "SELECT name FROM ONLY person:1", format: "tree" },
        { format: "tree", result_data: { name: "Ann" } }
      ),
      good(
        "D2 FROM ONLY of nobody answers null",
        { surql: "SELECT name FROM ONLY person:nobody", format: "tree" },
        { format: "tree", result_data: null }
      ),
      good("a table nobody has seen gives no rows", { surql: "SELECT * FROM nobody" }, { result_data: [] }),
      ...["30s", "10m", "1h30m", "1d", "2w", "1y", "500ms", "5us", "5µs", "5ns", "1h2m3s"].map((ttl) =>
        good(`D14 ttl ${ttl}`, { ttl }, { result_data: flat })
      ),
      {
        name: "POST /view/register 200 D21 with assignment, which the scheduler sends, that it is there and no rows",
        ask: "POST /view/register",
        body: registration("placed", all, { assignment: 1, format: "tree" }),
        status: 200,
        check: (_, body) =>
          expect(body).toEqual({
            query_id: "placed",
            format: "tree",
            result_hash: expect.stringMatching(/\S/),
            content_generation: 1,
            tables: ["person"]
          })
      }
    ]
  )
})

const bad = (name: string, body: unknown, path: string): Row => ({
  name: `POST /view/register 400 INVALID_REQUEST ${name}`,
  ask: "POST /view/register",
  body,
  status: 400,
  code: "INVALID_REQUEST",
  check: (_, answer) =>
    expect(
      faultsOf(answer)
        .map((fault) => fault.path)
        .join(" ")
    ).toContain(path)
})
const query = (name: string, surql: string, at?: Body): Row => ({
  name: `POST /view/register 400 INVALID_QUERY ${name}`,
  ask: "POST /view/register",
  body: registration("q", surql),
  status: 400,
  code: "INVALID_QUERY",
  check: (_, body) => expect(body["details"]).toEqual(at ?? { line: expect.any(Number), column: expect.any(Number) })
})

describe("POST /view/register refused: L6 what is not supported is refused, never ignored", () => {
  const whole = registration("r", all)
  const without = (key: string): Body => Object.fromEntries(Object.entries(whole).filter(([name]) => name !== key))
  contract(
    () => door,
    [
      bad("a body that is no JSON", "{", ""),
      bad("an empty body", "", ""),
      bad("an array", [whole], ""),
      bad("null", "null", ""),
      bad("an empty object", {}, "surql"),
      ...["id", "surql", "clientId", "ttl"].map((key) => bad(`no ${key}`, without(key), key)),
      ...["id", "surql", "clientId", "ttl"].flatMap((key) =>
        [5, null, true, ["a"], {}].map((value) =>
          bad(`${key} is ${JSON.stringify(value)}`, { ...whole, [key]: value }, key)
        )
      ),
      bad("D10 an empty id", { ...whole, id: "" }, "id"),
      ...[5, "text", ["a"], true].map((value) =>
        bad(`params is ${JSON.stringify(value)}`, { ...whole, params: value }, "params")
      ),
      ...[5, "yesterday", "", "2024-13-45T00:00:00Z"].map((value) =>
        bad(`lastActiveAt is ${JSON.stringify(value)}`, { ...whole, lastActiveAt: value }, "lastActiveAt")
      ),
      ...["table", "", "FLAT", 5, {}].map((value) =>
        bad(`D8 format is ${JSON.stringify(value)}`, { ...whole, format: value }, "format")
      ),
      ...["", "10", "m", "-5m", "1.5h", "10 m", "10 minutes", "m10", "1h-30m"].map((ttl) =>
        bad(`D14 ttl is ${JSON.stringify(ttl)}`, { ...whole, ttl }, "ttl")
      ),
      bad("an empty query", { ...whole, surql: "" }, "surql"),
      query("blanks for a query", " \n "),
      query("no query", "hello world", { line: 1, column: 1 }),
      query("no source", "SELECT * FROM"),
      query("D6 line and column from 1", "SELECT *\nFROM person\nWHERE age >< 3", {
        line: 3,
        column: expect.any(Number)
      }),
      query("a tail that means nothing", "SELECT * FROM person nonsense here"),
      query("two statements", "SELECT * FROM person; SELECT * FROM person"),
      query("a statement that writes", "DELETE person"),
      query("another that writes", "CREATE person:9"),
      query("an unclosed string", "SELECT * FROM person WHERE name = 'Ann"),
      query("an unclosed parenthesis", "SELECT * FROM person WHERE (age = 1"),
      query("an operator without an operand", "SELECT * FROM person WHERE age >"),
      query("time::now(), which no view can hold still", "SELECT * FROM person WHERE at < time::now()"),
      query("rand()", "SELECT * FROM person WHERE a = rand()"),
      query("LIMIT -1", "SELECT * FROM person LIMIT -1"),
      query("ORDER BY what is not selected, as the database refuses it", "SELECT id FROM person ORDER BY age"),
      query("ORDER BY nothing", "SELECT * FROM person ORDER BY")
    ]
  )
  it("POST /view/register 400 D9 leaves nothing registered", async () => {
    for (const id of ["r", "q"]) expectError(await send(door, { ask: `GET /view/${id}` }), 404, "VIEW_NOT_FOUND")
  })
})

describe("what a registration means", () => {
  it("D8 result_hash is the same for the same result and changes with every visible change, generation grows", async () => {
    await send(door, { ask: "POST /ingest", body: create("hash:1", { a: 1, b: 1 }) })
    const first = bodyOf(await register("h1", "SELECT a FROM hash"))
    expect(bodyOf(await register("h2", "SELECT a FROM hash"))["result_hash"]).toBe(first["result_hash"])
    await send(door, { ask: "POST /ingest", body: change("UPDATE", "hash:1", { a: 2, b: 1 }) })
    const second = bodyOf(await send(door, { ask: "GET /view/h1" }))
    expect(second["result_hash"]).not.toBe(first["result_hash"])
    expect(second["content_generation"]).toBe(2)
    await send(door, { ask: "POST /ingest", body: create("other:1") })
    expect(bodyOf(await send(door, { ask: "GET /view/h1" }))).toEqual(second)
  })
  it("D9 registering again refreshes, another query replaces, a query that does not compile leaves the old view", async () => {
    const first = bodyOf(await register("again", "SELECT * FROM person WHERE age = 30"))
    expect(
      bodyOf(await register("again", "SELECT * FROM person WHERE age = 30", { clientId: "other", ttl: "2h" }))
    ).toEqual(first)
    expectError(await register("again", "SELECT * FROM"), 400, "INVALID_QUERY")
    expect(bodyOf(await send(door, { ask: "GET /view/again" }))).toEqual(first)
    expect(
      bodyOf(await register("again", "SELECT * FROM person WHERE age = $a", { params: { a: 20 } }))["result_data"]
    ).toEqual([["person:3", 1]])
    expect(
      bodyOf(await register("again", "SELECT * FROM person WHERE age = $a", { params: { a: 30 } }))["result_data"]
    ).toEqual([["person:1", 1]])
    expect(
      bodyOf(await register("again", "SELECT * FROM person WHERE age = $a", { params: { a: 30 }, format: "tree" }))[
        "format"
      ]
    ).toBe("tree")
  })
  it("D10 incantation:<key>, _svc_query:<key> and <key> name one view, in paths too, and answers show the id as asked", async () => {
    await register("incantation:odd key/1", all)
    for (const id of ["incantation:odd key/1", "_svc_query:odd key/1", "odd key/1"]) {
      const answer = await send(door, { ask: `GET /view/${encodeURIComponent(id)}` })
      expect(bodyOf(answer)).toMatchObject({ query_id: id, result_data: flat })
      expect((await send(door, { ask: `GET /debug/view/${encodeURIComponent(id)}` })).status).toBe(200)
    }
    expect((await send(door, { ask: "POST /view/unregister", body: { id: "_svc_query:odd key/1" } })).json).toEqual({
      status: "ok"
    })
    expectError(await send(door, { ask: `GET /view/${encodeURIComponent("odd key/1")}` }), 404, "VIEW_NOT_FOUND")
  })
  it("D2 equal sort keys are ordered by record id, LIMIT and START cut after the order", async () => {
    await send(door, {
      ask: "POST /ingest",
      body: ["3", "1", "2", "4"].map((key) => create(`ord:${key}`, { g: key === "4" ? 0 : 1 }))
    })
    expect(await result("o1", "SELECT id, g FROM ord ORDER BY g DESC LIMIT 2 START 1")).toEqual([
      { id: "ord:2", g: 1 },
      { id: "ord:3", g: 1 }
    ])
    expect(await result("o2", "SELECT id, g AS `a b` FROM ord ORDER BY g LIMIT 1")).toEqual([{ id: "ord:4", "a b": 0 }])
  })
  it("D2a a row on which an expression fails is left out, named in errors, and back when it no longer fails", async () => {
    await send(door, { ask: "POST /ingest", body: [create("sum:1", { n: 1 }), create("sum:2", { n: "x" })] })
    const first = bodyOf(await register("sums", "SELECT id, n + 1 AS m FROM sum", { format: "tree" }))
    expect(first).toMatchObject({
      result_data: [{ id: "sum:1", m: 2 }],
      errors: [{ id: "sum:2", reason: expect.stringMatching(/\S/) }]
    })
    expect((await send(door, { ask: "POST /ingest", body: create("sum:3", {}) })).status).toBe(200)
    const debug = bodyOf(await send(door, { ask: "GET /debug/view/sums" }))
    expect((debug["errors"] as ReadonlyArray<{ readonly id: string }>).map((error) => error.id).sort()).toEqual([
      "sum:2",
      "sum:3"
    ])
    expect((await send(door, { ask: "POST /ingest", body: change("UPDATE", "sum:2", { n: 5 }) })).json).toEqual({
      views_affected: 1,
      edges_updated: 1
    })
    await send(door, { ask: "POST /ingest", body: change("UPDATE", "sum:1", { n: null }) })
    const last = bodyOf(await send(door, { ask: "GET /view/sums" }))
    expect(last["result_data"]).toEqual([{ id: "sum:2", m: 6 }])
    expect((last["errors"] as ReadonlyArray<{ readonly id: string }>).map((error) => error.id).sort()).toEqual([
      "sum:1",
      "sum:3"
    ])
  })
  it("D1 params are typed as records are: a date-time compares as one", async () => {
    await send(door, { ask: "POST /ingest", body: create("when:1", { at: "2024-05-01T10:00:00Z" }) })
    expect(
      await result("w", "SELECT id FROM when WHERE at = $t", { params: { t: "2024-05-01T12:00:00+02:00" } })
    ).toEqual([{ id: "when:1" }])
  })
})

describe("POST /view/unregister", () => {
  contract(
    () => door,
    [
      {
        name: "POST /view/unregister 200 a registered view",
        ask: "POST /view/unregister",
        body: { id: "h1" },
        status: 200,
        is: { status: "ok" }
      },
      {
        name: "POST /view/unregister 200 D16 an unknown view, again",
        ask: "POST /view/unregister",
        body: { id: "h1" },
        status: 200,
        is: { status: "ok" }
      },
      ...[
        ["no JSON", "{"],
        ["no body", ""],
        ["no id", {}],
        ["an id that is a number", { id: 5 }],
        ["null for an id", { id: null }],
        ["an array", []]
      ].map(
        ([what, body]): Row => ({
          name: `POST /view/unregister 400 INVALID_REQUEST ${String(what)}`,
          ask: "POST /view/unregister",
          body,
          status: 400,
          code: "INVALID_REQUEST",
          check: (_, answer) => void faultsOf(answer)
        })
      )
    ]
  )
})

describe("GET /view/:view_id (D11)", () => {
  contract(
    () => door,
    [
      {
        name: "GET /view/:view_id 404 VIEW_NOT_FOUND D11 unknown",
        ask: "GET /view/nobody",
        status: 404,
        code: "VIEW_NOT_FOUND"
      },
      {
        name: "GET /view/:view_id/stream 404 VIEW_NOT_FOUND D11 unknown",
        ask: "GET /view/nobody/stream",
        status: 404,
        code: "VIEW_NOT_FOUND"
      }
    ]
  )
  it("GET /view/:view_id 200 D11 answers as the registration did, in any format", async () => {
    const first = bodyOf(await register("read", "SELECT name FROM person WHERE age > 20"))
    expect((await send(door, { ask: "GET /view/read" })).json).toEqual(first)
    expect((await send(door, { ask: "GET /view/read?format=tree" })).json).toEqual({
      ...first,
      format: "tree",
      result_data: [{ name: "Ann" }]
    })
    expect((await send(door, { ask: "GET /view/read?format=flat" })).json).toEqual(first)
    expectError(await send(door, { ask: "GET /view/read?format=rows" }), 400, "INVALID_REQUEST")
  })
})

describe("GET /debug", () => {
  contract(
    () => door,
    [
      {
        name: "GET /debug/view/:view_id 404 VIEW_NOT_FOUND",
        ask: "GET /debug/view/nobody",
        status: 404,
        code: "VIEW_NOT_FOUND"
      }
    ]
  )
  it("GET /debug/view/:view_id 200 D13 every field of the specification, the rest marked as extension in D13", async () => {
    const first = bodyOf(await register("incantation:dbg", "SELECT * FROM person WHERE age > 20", { format: "tree" }))
    const body = bodyOf(await send(door, { ask: "GET /debug/view/incantation:dbg" }))
    expect(body).toMatchObject({
      view_id: "incantation:dbg",
      cache_size: 1,
      last_hash: first["result_hash"],
      format: "tree",
      content_generation: 1,
      cache: [{ key: "person:1", version: 1, weight: 1 }],
      subquery_tables: [],
      referenced_tables: ["person"],
      subquery_cache: {}
    })
    expect(body["plan"]).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ operator: expect.any(String), incremental: expect.any(Boolean) })
      ])
    )
  })
  it("GET /debug/view/:view_id 200 D13 format is as registered, null where none was named, also after a restart; answers are flat then, and naming flat replaces nothing", async () => {
    const dataDir = temporaryFolder()
    const own = await Door.start({ dataDir, env: { STORE_ADDR: undefined } })
    const formats = { none: undefined, null: null, flat: "flat", tree: "tree", streaming: "streaming" }
    const shown = async (at: Door): Promise<ReadonlyArray<unknown>> => {
      const bodies = await Promise.all(Object.keys(formats).map((id) => send(at, { ask: `GET /debug/view/f-${id}` })))
      return bodies.map((body) => bodyOf(body)["format"])
    }
    try {
      for (const [id, format] of Object.entries(formats)) {
        const { json } = await send(own, {
          ask: "POST /view/register",
          body: registration(`f-${id}`, "SELECT * FROM person", format === undefined ? {} : { format })
        })
        expect(json).toMatchObject({ format: format ?? "flat" })
      }
      expect(await shown(own)).toEqual([null, null, "flat", "tree", "streaming"])
      const stream = await EventStream.open(own.url, "/view/f-null/stream", secret)
      await stream.atLeast(1)
      await send(own, {
        ask: "POST /view/register",
        body: registration("f-null", "SELECT * FROM person", { format: "flat" })
      })
      await send(own, { ask: "POST /ingest", body: create("person:9") })
      expect((await stream.atLeast(2)).map(({ event }) => event)).toEqual(["snapshot", "delta"])
      stream.close()
      await own.kill()
      const again = await Door.start({ dataDir, env: { STORE_ADDR: undefined } })
      expect(await shown(again)).toEqual([null, "flat", "flat", "tree", "streaming"])
      await again.close()
    } finally {
      await own.close()
      removeFolder(dataDir)
    }
  })
  it("GET /debug/view/:view_id 200 L6 D13 a view that is recomputed says why, and is exact all the same", async () => {
    await send(door, { ask: "POST /ingest", body: [create("par:1", { n: 1 }), create("chi:1", { of: 1 })] })
    await register("again", "SELECT id FROM chi, chi:1", { format: "tree" })
    await register(
      "kept",
      "SELECT id, (SELECT id FROM chi WHERE of = $parent.n) AS chis FROM par WHERE n = 1 ORDER BY id LIMIT 3"
    )
    const shown = await Promise.all(
      ["again", "kept"].map(async (id) => bodyOf(await send(door, { ask: `GET /debug/view/${id}` })))
    )
    const [again, kept] = shown.map((body) => body["plan"] as ReadonlyArray<Body>)
    expect(again?.some((row) => row["incremental"] === false && /overlap/.test(String(row["reason"])))).toBe(true)
    expect(
      kept?.every((row) => row["incremental"] === true && row["reason"] === null && Number(row["total_cost"]) > 0)
    ).toBe(true)
    expect(shown.map((body) => body["subquery_cache"])).toEqual([{}, { chis: { "par:1": ["chi:1"] } }])
    await send(door, { ask: "POST /ingest", body: create("chi:2", { of: 1 }) })
    expect(bodyOf(await send(door, { ask: "GET /view/again" }))["result_data"]).toEqual([
      { id: "chi:1" },
      { id: "chi:2" },
      { id: "chi:1" }
    ])
    expect(bodyOf(await send(door, { ask: "GET /view/kept?format=tree" }))["result_data"]).toEqual([
      { id: "par:1", chis: [{ id: "chi:1" }, { id: "chi:2" }] }
    ])
  })
})

describe("GET /debug/deps of an SSP of its own", () => {
  let own: Door
  beforeAll(async () => {
    own = await Door.start()
  })
  afterAll(() => own.close())

  it("GET /debug/deps 200 D13 which view reads which table, tables in the store, the number of views", async () => {
    await send(own, { ask: "POST /ingest", body: [create("b:1"), create("a:1")] })
    for (const id of ["v1", "incantation:v2"])
      await send(own, { ask: "POST /view/register", body: registration(id, "SELECT * FROM a WHERE x = 1") })
    const body = bodyOf(await send(own, { ask: "GET /debug/deps" }))
    expect(body).toMatchObject({ dependency_map: { a: expect.any(Array) }, view_count: 2 })
    expect([...(body["dependency_map"] as { a: ReadonlyArray<string> }).a].sort()).toEqual(["incantation:v2", "v1"])
    expect([...(body["tables_in_store"] as ReadonlyArray<string>)].sort()).toEqual(["a", "b"])
  })
  it("GET /debug/deps 200 L4 views that differ in constants or params only share one shape, equal ones one instance", async () => {
    for (const id of ["v1", "incantation:v2"]) await send(own, { ask: "POST /view/unregister", body: { id } })
    for (let n = 0; n < 50; n++)
      await send(own, {
        ask: "POST /view/register",
        body: registration(`c${n}`, `SELECT * FROM a WHERE author = user:${n % 25}`)
      })
    for (let n = 0; n < 50; n++)
      await send(own, {
        ask: "POST /view/register",
        body: registration(`p${n}`, "SELECT * FROM a WHERE author = $u", { params: { u: `user:${n % 25}` } })
      })
    const body = bodyOf(await send(own, { ask: "GET /debug/deps" }))
    expect(body["view_count"]).toBe(100)
    const shapes = body["shapes"] as ReadonlyArray<{ readonly instances: number }>
    expect(shapes.length).toBeLessThanOrEqual(2)
    expect(shapes.reduce((sum, shape) => sum + shape.instances, 0)).toBeLessThanOrEqual(50)
  })
})
