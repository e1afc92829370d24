/**
 * The rest of the SSP's table: health, version, info, reset, log; then routes, sizes, depth, documents (D6, D12, D16,
 * D17).
 *
 * Why limits are rows here: a request that is too large or too deep is part of the contract of every endpoint with a
 * body.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, faultsOf, type Row, send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf, rawRequest } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"

const limit = 2 * 1024 * 1024

let door: Door
/** Another, with no id given and a small limit; nobody else's requests change what it counts. */
let own: Door
beforeAll(async () => {
  ;[door, own] = await Promise.all([
    Door.start({ env: { SSP_ID: "ssp-contract" } }),
    Door.start({ env: { SVC_MAX_BODY_BYTES: "2000" } })
  ])
})
afterAll(() => Promise.all([door.close(), own.close()]))

describe("monitoring", () => {
  contract(
    () => door,
    [
      { name: "GET /health 200 {status: ready}", ask: "GET /health", status: 200, is: { status: "ready" } },
      {
        name: "GET /version 200 D12 {version, mode: standalone}",
        ask: "GET /version",
        status: 200,
        is: { version: expect.stringMatching(/^\d+\.\d+\.\d+/), mode: "standalone" }
      },
      {
        name: "GET /info 200 one entity of this SSP",
        ask: "GET /info",
        status: 200,
        is: [{ entity: "ssp", id: "ssp-contract", status: "ready", views: 0 }]
      }
    ]
  )
  it("GET /info 200 counts the views and invents an id when SSP_ID is unset", async () => {
    await send(own, { ask: "POST /view/register", body: registration("v", "SELECT * FROM t") })
    expect((await send(own, { ask: "GET /info" })).json).toEqual([
      {
        entity: "ssp",
        id: expect.stringMatching(/^ssp-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/),
        status: "ready",
        views: 1
      }
    ])
  })
})

describe("POST /log", () => {
  contract(
    () => door,
    [
      {
        name: "POST /log 200 message alone",
        ask: "POST /log",
        body: { message: "log-alone" },
        status: 200,
        is: { status: "ok" }
      },
      ...["error", "warn", "info", "debug", "trace"].map(
        (level): Row => ({
          name: `POST /log 200 level ${level}`,
          ask: "POST /log",
          body: { message: `log-${level}`, level },
          status: 200,
          is: { status: "ok" }
        })
      ),
      {
        name: "POST /log 200 with data",
        ask: "POST /log",
        body: { message: "log-data", data: { answer: 42 } },
        status: 200,
        is: { status: "ok" }
      },
      ...[
        ["no JSON", "{"],
        ["no body", ""],
        ["no message", { level: "info" }],
        ["a message that is a number", { message: 5 }],
        ["D16 an unknown level", { message: "x", level: "loud" }],
        ["a level that is null", { message: "x", level: null }],
        ["data that is no object", { message: "x", data: 5 }],
        ["an array", [{ message: "x" }]]
      ].map(
        ([what, body]): Row => ({
          name: `POST /log 400 INVALID_REQUEST ${String(what)}`,
          ask: "POST /log",
          body,
          status: 400,
          code: "INVALID_REQUEST",
          check: (_, answer) => void faultsOf(answer)
        })
      )
    ]
  )
  it("POST /log 200 the message and its data are in the log", async () => {
    await until(
      "the log shows the message",
      () =>
        door.logs.includes("log-data") &&
        door.logs.includes("42") &&
        door.logs.includes("log-alone") &&
        door.logs.includes("log-error")
    )
  })
})

describe("POST /reset", () => {
  it("POST /reset 200 D16 clears views and data, stays ready, and an id starts anew", async () => {
    await send(own, { ask: "POST /ingest", body: [create("a:1"), create("b:1")] })
    await send(own, { ask: "POST /view/register", body: registration("v", "SELECT * FROM a") })
    expect((await send(own, { ask: "POST /reset" })).json).toEqual({ status: "ok" })
    expect((await send(own, { ask: "GET /debug/deps" })).json).toMatchObject({
      dependency_map: {},
      tables_in_store: [],
      view_count: 0
    })
    expectError(await send(own, { ask: "GET /view/v" }), 404, "VIEW_NOT_FOUND")
    expect((await send(own, { ask: "GET /health" })).status).toBe(200)
    expect(
      bodyOf(await send(own, { ask: "POST /view/register", body: registration("v", "SELECT * FROM a") }))["result_data"]
    ).toEqual([])
    expect((await send(own, { ask: "POST /ingest", body: create("a:2") })).json).toEqual({
      views_affected: 1,
      edges_updated: 1
    })
  })
})

describe("routes", () => {
  const none = (ask: string): Row => ({ name: `${ask} 404 NOT_FOUND`, ask, status: 404, code: "NOT_FOUND" })
  contract(
    () => door,
    [
      "POST /",
      "GET /dashboard",
      "GET /dashboard/nothing.js",
      "GET /nowhere",
      "POST /nowhere",
      "GET /ingest",
      "PUT /ingest",
      "DELETE /ingest",
      "PATCH /ingest",
      "GET /view/register/more",
      "PUT /view/register",
      "GET /reset",
      "GET /log",
      "POST /health",
      "POST /version",
      "DELETE /info",
      "POST /debug/deps",
      "GET /debug",
      "GET /debug/view",
      "POST /view/a",
      "POST /view/a/stream",
      "GET /ingest/",
      "GET /view/a/b/c"
    ].map(none)
  )
})

describe("D17 limits", () => {
  const padded = (size: number, id: string): string => {
    const text = JSON.stringify(create(id, { pad: "" }))
    return text.replace('"pad":""', `"pad":"${"x".repeat(size - text.length)}"`)
  }
  const deep = (levels: number, id: string): string =>
    JSON.stringify(create(id, { pad: 0 })).replace('"pad":0', `"pad":${"[".repeat(levels)}${"]".repeat(levels)}`)
  const tooLarge = (_: unknown, body: Body): void => {
    expect(body["message"]).toEqual(expect.stringContaining(String(limit)))
    expect(body["message"]).toEqual(expect.stringContaining("SVC_MAX_BODY_BYTES"))
  }
  contract(
    () => door,
    [
      {
        name: "D17 POST /ingest 200 a body of exactly 2 MiB",
        ask: "POST /ingest",
        body: padded(limit, "large:1"),
        status: 200
      },
      {
        name: "D17 POST /ingest 413 PAYLOAD_TOO_LARGE one byte more, and the message names limit and setting",
        ask: "POST /ingest",
        body: padded(limit + 1, "large:2"),
        status: 413,
        code: "PAYLOAD_TOO_LARGE",
        check: tooLarge
      },
      {
        name: "D17 POST /ingest 413 D6 before the body is looked at",
        ask: "POST /ingest",
        body: "{".repeat(limit + 1),
        status: 413,
        code: "PAYLOAD_TOO_LARGE"
      },
      ...["/view/register", "/view/unregister", "/view/free", "/log"].map(
        (path): Row => ({
          name: `D17 POST ${path} 413 PAYLOAD_TOO_LARGE`,
          ask: `POST ${path}`,
          body: "x".repeat(limit + 1),
          status: 413,
          code: "PAYLOAD_TOO_LARGE",
          check: tooLarge
        })
      ),
      {
        name: "D17 POST /ingest 200 a depth of exactly 64",
        ask: "POST /ingest",
        body: deep(62, "deep:1"),
        status: 200
      },
      {
        name: "D17 POST /ingest 400 INVALID_REQUEST a depth of 65, and the message names the limit",
        ask: "POST /ingest",
        body: deep(63, "deep:2"),
        status: 400,
        code: "INVALID_REQUEST",
        check: (_, body) => expect(JSON.stringify(body)).toContain("64")
      },
      {
        name: "D17 POST /ingest 400 INVALID_REQUEST a depth of 100,000",
        ask: "POST /ingest",
        body: deep(100_000, "deep:3"),
        status: 400,
        code: "INVALID_REQUEST"
      },
      {
        name: "D17 POST /ingest 200 brackets inside a string are no depth",
        ask: "POST /ingest",
        body: create("deep:4", { text: `\\"${"[{".repeat(200)}` }),
        status: 200
      },
      {
        name: "D17 POST /view/register 400 INVALID_REQUEST params 65 deep",
        ask: "POST /view/register",
        body: JSON.stringify(registration("d", "SELECT * FROM t", { params: 0 })).replace(
          '"params":0',
          `"params":${'{"a":'.repeat(64)}1${"}".repeat(64)}`
        ),
        status: 400,
        code: "INVALID_REQUEST"
      },
      {
        name: "D17 POST /log 400 INVALID_REQUEST data 65 deep",
        ask: "POST /log",
        body: `{"message":"x","data":${'{"a":'.repeat(64)}1${"}".repeat(64)}}`,
        status: 400,
        code: "INVALID_REQUEST"
      }
    ]
  )
  it("D17 POST /ingest 413 a body in chunks without an announced length", async () => {
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`
    const answer = await rawRequest(
      door.port,
      `POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(34)}0\r\n\r\n`
    )
    expect(answer?.status).toBe(413)
    expect(answer?.json).toMatchObject({ code: "PAYLOAD_TOO_LARGE" })
  })
  it("D17 POST /ingest 413 SVC_MAX_BODY_BYTES moves the limit", async () => {
    expect((await send(own, { ask: "POST /ingest", body: padded(2000, "a:1") })).status).toBe(200)
    const body = expectError(
      await send(own, { ask: "POST /ingest", body: padded(2001, "a:1") }),
      413,
      "PAYLOAD_TOO_LARGE"
    )
    expect(body["message"]).toEqual(expect.stringContaining("2000"))
  })
})

describe("documents", () => {
  it("GET /openapi.json 200 describes every endpoint of the specification with its statuses", async () => {
    const answer = await send(door, { ask: "GET /openapi.json", token: null })
    expect(answer.status).toBe(200)
    const paths = bodyOf(answer)["paths"] as {
      [path: string]: { [method: string]: { responses: { [status: string]: unknown } } }
    }
    const table: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
      ["post", "/ingest", ["200", "400", "401", "413", "503"]],
      ["post", "/view/register", ["200", "400", "401", "413", "503"]],
      ["post", "/view/unregister", ["200", "400", "401"]],
      ["post", "/reset", ["200", "401"]],
      ["get", "/health", ["200", "503"]],
      ["get", "/version", ["200"]],
      ["get", "/info", ["200"]],
      ["get", "/debug/view/{view_id}", ["200", "401", "404"]],
      ["get", "/debug/deps", ["200", "401"]],
      ["post", "/log", ["200", "400", "401"]],
      ["get", "/view/{view_id}", ["200", "401", "404", "503"]],
      ["get", "/view/{view_id}/stream", ["200", "401", "404", "503"]],
      ["get", "/integrity", ["200", "400", "401", "503"]],
      ["get", "/integrity/compare", ["200", "400", "401", "500", "503"]],
      ["post", "/reconcile", ["200", "400", "401", "500", "503"]]
    ]
    for (const [method, path, statuses] of table) {
      expect(Object.keys(paths[path]?.[method]?.responses ?? {}), `${method} ${path}`).toEqual(
        expect.arrayContaining([...statuses])
      )
    }
  })
  it("GET /docs 200 a page that loads nothing from elsewhere", async () => {
    const answer = await send(door, { ask: "GET /docs", token: null })
    expect(answer.status).toBe(200)
    expect(answer.headers["content-type"]).toMatch(/^text\/html/)
    expect(answer.text).not.toMatch(/<(?:script|link)[^>]+(?:src|href)=["']https?:/i)
  })
})
