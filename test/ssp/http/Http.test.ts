/**
 * The HTTP face over a fake `Views`: every error of the world as the wire says it, in the order of D6, twice.
 *
 * Why twice: a node is served by the package's server and by any other that takes its app; whatever holds must hold
 * behind both.
 */

import { connect } from "node:net"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectError } from "../../../kit/checks/contract.ts"
import { parse } from "../../../kit/checks/exposition.ts"
import { type Answer, type Ask, bodyOf, request } from "../../../kit/checks/http.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { fakeViews, secret, served } from "../fakeViews.ts"

interface Running {
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}

const start = (layer: ReturnType<typeof served>): Promise<Running> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(layer, scope)
    const port = yield* Context.get(context, Serving).port
    return { url: `http://127.0.0.1:${port}`, port, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
  }).pipe(Effect.orDie, Effect.runPromise)

/** Everything a socket answers until `last` is among it. */
const exchange = (port: number, bytes: string, last: string): Promise<string> =>
  new Promise((done, failed) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (text.includes(last)) done(text)
      if (text.includes(last)) socket.destroy()
    })
    socket.on("error", failed)
    socket.on("end", () => failed(new Error(`closed after: ${text}`)))
  })

const change = (table: string, more: object = {}) => ({ table, op: "CREATE", id: `${table}:1`, record: {}, ...more })
const registration = (surql: string, more: object = {}) => ({
  id: "incantation:a",
  surql,
  clientId: "c",
  ttl: "1h",
  ...more
})
const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })
const limit = { SVC_MAX_BODY_BYTES: "4096" }

for (const front of [true, false]) {
  describe(`behind ${front ? "the package's server" : "a server that takes the app"}`, () => {
    let running: Running
    beforeAll(async () => {
      running = await start(served(fakeViews(), { front, env: limit }))
    })
    afterAll(() => running.close())
    const ask = (ask: Omit<Ask, "path">, path = "/ingest"): Promise<Answer> =>
      request(running.url, { method: "POST", token: secret, ...ask, path })
    const rows = (path: string): void => {
      it(`POST ${path} 401 before anything about the body is said, with WWW-Authenticate`, async () => {
        for (const headers of [
          {},
          { authorization: secret },
          { authorization: `XXXXXX ${secret}` },
          { authorization: `Bearer ${secret}x` },
          { authorization: "Bearer " },
          { authorization: `Basic ${secret}` }
        ]) {
          const answer = await ask({ token: undefined, headers, body: "x".repeat(5000) }, path)
          expectError(answer, 401, "UNAUTHORIZED")
          expect(answer.headers["www-authenticate"]).toBe("Bearer")
        }
      })
      it(`POST ${path} takes the scheme in any letter case`, async () => {
        for (const scheme of ["bearer", "BEARER", "Bearer "])
          expectError(
            await ask({ token: undefined, headers: { authorization: `${scheme} ${secret}` }, body: "nope" }, path),
            400,
            "INVALID_REQUEST"
          )
      })
      it(`D17 POST ${path} 413 names limit, value and setting, declared or chunked, and the connection lives on`, async () => {
        const large = "x".repeat(5000)
        const next = "GET /version HTTP/1.1\r\nhost: x\r\n\r\n"
        const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\n`
        for (const bytes of [
          `${head}content-length: 5000\r\n\r\n${large}${next}`,
          `${head}transfer-encoding: chunked\r\n\r\n1388\r\n${large}\r\n0\r\n\r\n${next}`
        ]) {
          const answers = await exchange(running.port, bytes, "1.2.3")
          expect(answers).toMatch(/^HTTP\/1\.1 413 [^]*"PAYLOAD_TOO_LARGE"[^]*HTTP\/1\.1 200 /)
          expect(answers).toContain("4096 bytes, the limit for request bodies (setting SVC_MAX_BODY_BYTES)")
        }
      })
      it(`POST ${path} 400 for what is no JSON, too deep, no UTF-8, or nothing`, async () => {
        for (const body of [
          "{",
          "",
          " ",
          "nope",
          '{"a":1}x',
          "\uFEFF{}",
          JSON.stringify(deep(65)),
          new Uint8Array([0x22, 0xff, 0x22]),
          "5",
          "null",
          '"x"',
          "[]"
        ]) {
          const details = bodyOf({ ...(await ask({ body }, path)) })["details"]
          expectError(await ask({ body }, path), 400, "INVALID_REQUEST")
          expect(details).toEqual([{ path: expect.any(String), reason: expect.any(String) }])
        }
      })
    }
    rows("/ingest")
    rows("/view/register")

    it("D7 POST /ingest 200 whatever the content type says", async () => {
      for (const type of [
        "application/json",
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/octet-stream"
      ]) {
        const answer = await ask({ body: change("a"), headers: { "content-type": type } })
        expect([answer.status, answer.json]).toEqual([200, { views_affected: 1, edges_updated: 2 }])
      }
    })
    it("D5 POST /ingest 200 for a batch", async () =>
      expect((await ask({ body: [change("a"), change("b")] })).status).toBe(200))
    for (const [table, status, code] of [
      ["overloaded", 503, "OVERLOADED"],
      ["gap", 409, "SEQUENCE_GAP"],
      ["stale", 409, "STALE_EPOCH"],
      ["broken", 500, "STORE_FAILED"]
    ] as const) {
      it(`D6 POST /ingest ${status} ${code}`, async () => {
        const answer = await ask({ body: change(table) })
        const body = expectError(answer, status, code)
        if (code === "OVERLOADED") expect(answer.headers["retry-after"]).toBe("3")
        if (code === "SEQUENCE_GAP") expect(body["details"]).toEqual({ expected: 5 })
        expect(answer.text).not.toContain("not for the wire")
      })
    }
    it("D6 POST /ingest 400 INVALID_OPERATION", async () =>
      void expectError(await ask({ body: change("a", { op: "UPSERT" }) }), 400, "INVALID_OPERATION"))
    it("D34 POST /ingest is counted, answered or refused, and its answers are not guessed at", async () => {
      const figures = async () => {
        const families = parse((await request(running.url, { path: "/metrics", token: secret })).text)
        const samples = [...families.values()].flatMap((family) => family.samples)
        return ["4xx", "5xx"]
          .map(
            (status) =>
              samples.find(({ labels, name }) => name === "svc_ingest_refused_total" && labels["status"] === status)
                ?.value ?? NaN
          )
          .concat(samples.find(({ name }) => name === "svc_ingest_duration_seconds_count")?.value ?? NaN)
      }
      const before = await figures()
      const asks = [
        { body: change("a") },
        { body: change("broken") },
        { body: "{" },
        { body: change("a"), token: "wrong" },
        { body: "x".repeat(5000) },
        { body: change("gap") }
      ]
      for (const each of asks) expect((await ask(each)).headers["x-content-type-options"]).toBe("nosniff")
      await ask({ body: change("a") }, "/ingest?again")
      await ask({ body: "{" }, "/view/register")
      expect((await figures()).map((value, i) => value - before[i]!)).toEqual([4, 1, 2])
    })
    it("D6 GET /ingest 404 with the methods the path takes", async () => {
      const answer = await ask({ method: "GET" })
      expectError(answer, 404, "NOT_FOUND")
      expect(answer.headers.allow).toBe("POST")
    })
  })
}

describe("routes", () => {
  let running: Running
  beforeAll(async () => {
    running = await start(served(fakeViews(), { front: true }))
  })
  afterAll(() => running.close())
  const post = (path: string, body: unknown): Promise<Answer> =>
    request(running.url, { method: "POST", path, token: secret, body })
  const get = (path: string, more: Partial<Ask> = {}): Promise<Answer> =>
    request(running.url, { path, token: secret, ...more })

  it("D6 a defect of a handler is 500 INTERNAL, without its reason", async () => {
    for (const answer of [
      await post("/view/register", registration("DEFECT")),
      await post("/ingest", change("defect"))
    ]) {
      expectError(answer, 500, "INTERNAL")
      expect(answer.text).not.toContain("inner secret")
    }
  })
  it("D6 an answer of ours that breaks its own schema is 500, not the client's fault", async () =>
    void expectError(await get("/views?search=ODD"), 500, "INTERNAL"))
  it("POST /view/register 400 INVALID_QUERY with line and column", async () => {
    expect(expectError(await post("/view/register", registration("REFUSED")), 400, "INVALID_QUERY")["details"]).toEqual(
      { line: 2, column: 3 }
    )
  })
  it("POST /view/register 400 names every fault once", async () => {
    const body = expectError(
      await post("/view/register", { id: "", surql: 5, ttl: "1h", params: [1], format: "odd", lastActiveAt: 5 }),
      400,
      "INVALID_REQUEST"
    )
    expect((body["details"] as ReadonlyArray<{ path: string }>).map(({ path }) => path).sort()).toEqual([
      "clientId",
      "format",
      "id",
      "lastActiveAt",
      "params",
      "surql"
    ])
  })
  it("D14 POST /view/register 400 for a ttl and a time that are none, both named", async () => {
    const body = expectError(
      await post("/view/register", registration("OK", { ttl: "soon", lastActiveAt: "2024-13-01T00:00:00Z" })),
      400,
      "INVALID_REQUEST"
    )
    expect((body["details"] as ReadonlyArray<{ path: string }>).map(({ path }) => path)).toEqual([
      "ttl",
      "lastActiveAt"
    ])
  })
  it("GET /view/:view_id takes ids encoded and long, 404 for unknown ones and for what is no encoding", async () => {
    expect((await get("/view/here")).status).toBe(200)
    expect((await get("/view/%68ere?format=tree")).json).toMatchObject({ format: "tree" })
    expectError(await get("/view/here?format=odd"), 400, "INVALID_REQUEST")
    expectError(await get(`/view/${"x".repeat(2000)}`), 404, "VIEW_NOT_FOUND")
    expectError(await get("/view/incantation%3Aa%2Fb"), 404, "VIEW_NOT_FOUND")
    expectError(await get("/view/%zz"), 404, "NOT_FOUND")
  })
  it("paths are exact: letter case, trailing and double slashes", async () => {
    for (const path of ["/HEALTH", "/health/", "//health", "/Ingest"]) expectError(await get(path), 404, "NOT_FOUND")
  })
  it("HEAD answers as GET without a body", async () => {
    const answer = await get("/health", { method: "HEAD" })
    expect([answer.status, answer.text]).toEqual([200, ""])
  })
  it("GET /health, /version, /info need no bearer", async () => {
    const open = { token: undefined }
    expect((await get("/health", open)).json).toEqual({ status: "ready" })
    expect((await get("/version", open)).json).toEqual({ version: "1.2.3", mode: "standalone" })
    expect((await get("/info", open)).json).toEqual([{ entity: "ssp", id: "me", status: "ready", views: 7 }])
  })
  it("GET /openapi.json and /docs need no bearer and load nothing from elsewhere", async () => {
    const document = bodyOf(await get("/openapi.json", { token: undefined }))
    expect(document["info"]).toMatchObject({ version: "1.2.3" })
    const page = await get("/docs", { token: undefined })
    expect([page.status, page.headers["content-type"]?.split(";")[0]]).toEqual([200, "text/html"])
    expect(page.text).not.toMatch(/<(?:script|link)[^>]+(?:src|href)="https?:/)
  })
  it("POST /log 400 for an unknown level", async () => {
    expectError(await post("/log", { message: "m", level: "fatal" }), 400, "INVALID_REQUEST")
    expect((await post("/log", { message: "m", level: "trace", data: { a: 1 } })).json).toEqual({ status: "ok" })
  })
  it("D11 GET /view/:view_id/stream sends events at once, resumes where Last-Event-ID says, 503 OVERLOADED where there is no room", async () => {
    const controller = new AbortController()
    const open = await fetch(`${running.url}/view/here/stream`, {
      headers: { authorization: `Bearer ${secret}`, "last-event-id": "a.5" },
      signal: controller.signal
    })
    expect(open.headers.get("content-type")).toBe("text/event-stream")
    const reader = open.body!.getReader()
    let first = ""
    while (!first.endsWith("}\n\n")) first += new TextDecoder().decode((await reader.read()).value)
    expect(first).toBe(': open\n\nevent: snapshot\nid: a.5\ndata: {"text":"two\\nlines"}\n\n')
    controller.abort()
    const full = await get("/view/full/stream")
    expectError(full, 503, "OVERLOADED")
    expect(full.headers["retry-after"]).toBe("5")
  })
  it("D11 HEAD /view/:view_id/stream opens no stream", async () => {
    const answer = await get("/view/here/stream", { method: "HEAD" })
    expect([answer.status, answer.headers["content-type"], answer.text]).toEqual([200, "text/event-stream", ""])
    expect((await get("/view/full/stream", { method: "HEAD" })).status).toBe(404)
  })
})
