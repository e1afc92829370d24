/**
 * The server below its routes: what the parser refuses, how it stops, who gets the address.
 *
 * Why raw sockets: none of this can be sent by a well-behaved client.
 */

import { connect } from "node:net"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { expectError } from "../../../kit/checks/contract.ts"
import { rawRequest, request } from "../../../kit/checks/http.ts"
import * as Server from "../../../src/host/http/Server.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { StartFault } from "../../../src/ports/StartFault.ts"
import { fakeViews, node, secret, served } from "../../ssp/fakeViews.ts"

interface Running {
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}
const scopes: Array<Scope.CloseableScope> = []
afterEach(async () => {
  for (const scope of scopes.splice(0)) await Effect.runPromise(Scope.close(scope, Exit.void))
})
const start = async (): Promise<Running> => {
  const scope = Effect.runSync(Scope.make())
  scopes.push(scope)
  const context = await Effect.runPromise(Layer.buildWithScope(served(fakeViews()), scope))
  const port = await Effect.runPromise(Context.get(context, Serving).port)
  return { url: `http://127.0.0.1:${port}`, port, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** A socket that keeps what it got, and says when it was closed and how. */
const open = (port: number, bytes: string) => {
  const got = { text: "", closed: false, error: "" }
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
  socket.on("data", (chunk) => {
    got.text += chunk.toString("latin1")
  })
  socket.on("error", (error) => {
    got.error = error.message
  })
  socket.on("close", () => {
    got.closed = true
  })
  return { got, socket }
}

const head = `host: x\r\nauthorization: Bearer ${secret}\r\n`

describe("what the HTTP parser refuses", () => {
  for (const [what, bytes, status] of [
    ["garbage", "\u0000\u0001garbage\r\n\r\n", 400],
    ["an unknown method", `FOO /ingest HTTP/1.1\r\n${head}\r\n`, 400],
    ["an unknown version", `GET / HTTP/9.9\r\n${head}\r\n`, 400],
    ["no Host", "GET /health HTTP/1.1\r\n\r\n", 400],
    ["a bad length", `POST /ingest HTTP/1.1\r\n${head}content-length: x\r\n\r\n`, 400],
    [
      "length and chunks together",
      `POST /ingest HTTP/1.1\r\n${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400
    ],
    ["a bad chunk", `POST /ingest HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400],
    ["a bad header", `GET /health HTTP/1.1\r\n${head}a b: c\r\n\r\n`, 400],
    ["headers beyond the limit", `GET /health HTTP/1.1\r\n${head}x: ${"a".repeat(40_000)}\r\n\r\n`, 431]
  ] as const) {
    it(`D6 ${what}: ${status} with JSON, then the connection closes`, async () => {
      const { port } = await start()
      const { got, socket } = open(port, bytes)
      await expect.poll(() => got.closed, { timeout: 20_000 }).toBe(true)
      socket.destroy()
      expect(got.text.split("\r\n")[0]).toContain(` ${status} `)
      expect(got.text.match(/^HTTP/gm), got.text).toHaveLength(1)
      const body = got.text.slice(got.text.indexOf("\r\n\r\n") + 4)
      expect(JSON.parse(body)).toEqual({
        code: "INVALID_REQUEST",
        message: expect.any(String),
        details: [{ path: "", reason: expect.any(String) }]
      })
    })
  }
  it("D6 CONNECT is no route", async () => {
    const { port } = await start()
    const answer = await rawRequest(port, `CONNECT a:1 HTTP/1.1\r\n${head}\r\n`)
    expectError(answer ?? expect.fail("no answer"), 404, "NOT_FOUND")
  })
  it("an unusual Expect and an Upgrade are served as any request", async () => {
    const { port } = await start()
    expect((await rawRequest(port, `GET /health HTTP/1.1\r\n${head}expect: tea\r\n\r\n`))?.status).toBe(200)
    expect(
      (await rawRequest(port, `GET /health HTTP/1.1\r\n${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n`))
        ?.status
    ).toBe(200)
  })
  it("a client that leaves in the middle of a body harms no other client", async () => {
    const { port, url } = await start()
    for (const path of ["/ingest", "/view/register"]) {
      const { socket } = open(port, `POST ${path} HTTP/1.1\r\n${head}content-length: 100\r\n\r\n{`)
      await new Promise((done) => socket.once("connect", done))
      socket.destroy()
    }
    expect((await request(url, { path: "/health" })).status).toBe(200)
  })
})

describe("stopping", () => {
  it("finishes requests in flight, ends streams with shutdown, closes idle connections, takes no new ones", async () => {
    const { close, port, url } = await start()
    const body = JSON.stringify({ id: "incantation:a", surql: "SLOW", clientId: "c", ttl: "1h" })
    const idle = open(port, `GET /health HTTP/1.1\r\n${head}\r\n`)
    const stream = open(port, `GET /view/here/stream HTTP/1.1\r\n${head}\r\n`)
    const slow = open(port, `POST /view/register HTTP/1.1\r\n${head}content-length: ${body.length}\r\n\r\n${body}`)
    await expect
      .poll(() => stream.got.text.includes("event: snapshot") && idle.got.text.includes("ready"), { timeout: 20_000 })
      .toBe(true)
    await close()
    await expect.poll(() => [idle, stream, slow].every(({ got }) => got.closed), { timeout: 20_000 }).toBe(true)
    expect(slow.got.text).toMatch(/^HTTP\/1\.1 200 [^]*"query_id":"incantation:a"/)
    expect(stream.got.text).toMatch(/event: end\ndata: {"reason":"shutdown"}/)
    expect([idle, stream, slow].map(({ got }) => got.error)).toEqual(["", "", ""])
    await expect(request(url, { path: "/health", keepAlive: false })).rejects.toThrow()
  })
  it("a request on a connection that was busy at the stop is told so, and the connection closes", async () => {
    const { close, port } = await start()
    const body = JSON.stringify({ id: "incantation:a", surql: "SLOW", clientId: "c", ttl: "1h" })
    const busy = open(
      port,
      `POST /view/register HTTP/1.1\r\n${head}content-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`
    )
    await new Promise((done) => busy.socket.once("connect", done))
    await request(`http://127.0.0.1:${port}`, { path: "/health", keepAlive: false })
    const closed = close()
    busy.socket.write(`${body.slice(5)}`)
    await closed
    await expect.poll(() => busy.got.closed, { timeout: 20_000 }).toBe(true)
    expect(busy.got.text).toMatch(/^HTTP\/1\.1 (?:200|503) [^]*connection: close/i)
  })
})

describe("stopping under load", () => {
  it("a request already on its way on an idle connection is answered 503 and close, not met by a reset", async () => {
    const { close, port } = await start()
    const idle = open(port, `GET /health HTTP/1.1\r\n${head}\r\n`)
    await expect.poll(() => idle.got.text.includes("ready"), { timeout: 20_000 }).toBe(true)
    const closed = close()
    idle.socket.write(`GET /version HTTP/1.1\r\n${head}\r\n`)
    await closed
    await expect.poll(() => idle.got.closed, { timeout: 20_000 }).toBe(true)
    expect(idle.got.text).toMatch(/HTTP\/1\.1 503 [^]*connection: close[^]*"SSP_NOT_READY"/i)
    expect(idle.got.error).toBe("")
  })
})

describe("listening", () => {
  it("D24 an address in use is a fault that names address and setting, exit code 1", async () => {
    const { port } = await start()
    const layer = Server.layer({ host: "127.0.0.1", port, setting: "LISTEN_ADDR", maxConnections: 5 }).pipe(
      Layer.provide(node(fakeViews()))
    )
    const fault = await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(Layer.fresh(layer)))))
    expect(fault).toBeInstanceOf(StartFault)
    expect([fault.exitCode, fault.message.includes(String(port)), fault.message.includes("LISTEN_ADDR")]).toEqual([
      1,
      true,
      true
    ])
  })
})
