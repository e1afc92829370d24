/**
 * What the server does about clients that ask too often, send too slowly, read nothing, or are pages of other origins.
 *
 * Over a real server with short limits; what is waited for is the cut itself, bounded only for broken code.
 */

import { connect } from "node:net"
import { Context, Effect, Exit, Layer, Logger, LogLevel, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { expectError } from "../../../kit/checks/contract.ts"
import { type Ask, request } from "../../../kit/checks/http.ts"
import { create } from "../../../kit/data/registration.ts"
import type { ListenOptions } from "../../../src/host/http/Listener.ts"
import * as Server from "../../../src/host/http/Server.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { fakeViews, node, secret } from "../../ssp/fakeViews.ts"

const scopes: Array<Scope.CloseableScope> = []
afterEach(async () => {
  for (const scope of scopes.splice(0)) await Effect.runPromise(Scope.close(scope, Exit.void))
})

const start = async (
  options: Partial<ListenOptions>,
  env: { readonly [name: string]: string } = {},
  views = fakeViews()
): Promise<{ readonly url: string; readonly port: number }> => {
  const scope = Effect.runSync(Scope.make())
  scopes.push(scope)
  const whole = Server.layer({
    host: "127.0.0.1",
    port: 0,
    setting: "LISTEN_ADDR",
    maxConnections: 100,
    ...options
  }).pipe(Layer.provideMerge(node(views, env)))
  const context = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(whole.pipe(Layer.provide(Logger.minimumLogLevel(LogLevel.None)))), scope)
  )
  const port = await Effect.runPromise(Context.get(context, Serving).port)
  return { url: `http://127.0.0.1:${port}`, port }
}

/** A socket of a client that behaves as it is told. */
const client = (port: number, bytes: string) => {
  const got = { text: "", bytes: 0, closed: false }
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
  socket.on("data", (chunk) => {
    got.bytes += chunk.length
    if (got.text.length < 10_000) got.text += chunk.toString("latin1")
  })
  socket.on("error", () => {})
  socket.on("close", () => {
    got.closed = true
  })
  return { got, socket }
}

const closed = (got: { readonly closed: boolean }) =>
  expect.poll(() => got.closed, { timeout: 30_000, interval: 20 }).toBe(true)
const head = `host: x\r\nauthorization: Bearer ${secret}\r\n`

/** Sends a byte at a time until the other side has had enough. */
const drip = (socket: ReturnType<typeof client>["socket"], byte: string): void => {
  const timer = setInterval(
    () => (socket.connecting ? undefined : socket.writable ? socket.write(byte) : clearInterval(timer)),
    50
  )
  socket.on("close", () => clearInterval(timer))
}

describe("slow clients", () => {
  for (const [what, begin, byte] of [
    ["headers", `GET /health HTTP/1.1\r\nhost: x\r\nx-slow: `, "a"],
    ["the body of POST /ingest", `POST /ingest HTTP/1.1\r\n${head}content-length: 100000\r\n\r\n`, " "],
    ["the body of POST /view/register", `POST /view/register HTTP/1.1\r\n${head}content-length: 100000\r\n\r\n`, " "]
  ] as const) {
    it(`a client that sends ${what} a byte at a time gets 408 and is cut off; others are served meanwhile`, async () => {
      const { port, url } = await start({ requestTimeoutSecs: 1 })
      const { got, socket } = client(port, begin)
      drip(socket, byte)
      expect((await request(url, { path: "/health" })).status).toBe(200)
      await closed(got)
      expect(got.text).toMatch(/^HTTP\/1\.1 408 /)
      expect(got.text).toContain("INVALID_REQUEST")
    })
  }
  it("a client that follows a view and reads nothing is cut off, and the text that waits for it is bounded", async () => {
    const event = { event: "delta" as const, id: "a.1", data: { text: "x".repeat(100_000) } }
    let made = 0,
      ended = false
    const views = fakeViews({
      follow: (_, __, ___, taker) => ({
        resume: () => {
          do made++
          while (taker.take([event]))
        },
        close: () => {
          ended = true
        }
      })
    })
    const { port } = await start({ requestTimeoutSecs: 1 }, {}, views)
    const { got, socket } = client(port, `GET /view/here/stream HTTP/1.1\r\n${head}\r\n`)
    socket.pause()
    await expect.poll(() => ended, { timeout: 30_000, interval: 20 }).toBe(true)
    // What the two kernels' buffers take, and a chunk or two of ours: without back-pressure it would be as much as a
    // second can make.
    expect(made).toBeLessThan(200)
    socket.resume()
    await closed(got)
  })
})

describe("clients that ask too often", () => {
  it("POST /ingest 429 RATE_LIMITED with Retry-After beyond the limit; the probes go on", async () => {
    const { url } = await start({ rateLimit: 5 })
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        request(url, { method: "POST", path: "/ingest", body: create(`a:${n}`), token: secret })
      )
    )
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(20)
    for (const answer of refused) {
      expectError(answer, 429, "RATE_LIMITED")
      expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1)
    }
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(5)
    for (const path of ["/health", "/version"])
      for (let n = 0; n < 20; n++) expect((await request(url, { path })).status).toBe(200)
  })
  it("without the setting no client is refused", async () => {
    const { url } = await start({})
    const answers = await Promise.all(Array.from({ length: 200 }, () => request(url, { path: "/info" })))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })
})

describe("pages of other origins", () => {
  const page = "https://app.example"
  const asks: ReadonlyArray<readonly [string, Ask]> = [
    ["POST /ingest", { method: "POST", path: "/ingest", body: create("a:1"), token: secret }],
    ["POST /ingest without the secret", { method: "POST", path: "/ingest", body: create("a:1") }],
    ["POST /view/register", { method: "POST", path: "/view/register", body: {}, token: secret }],
    ["GET /nowhere", { path: "/nowhere" }],
    ["GET /health", { path: "/health" }]
  ]
  it("a listed origin is told that it may read any answer, refusals too, and no other is", async () => {
    const { url } = await start({ corsOrigins: [page] }, { SVC_CORS_ORIGINS: page })
    for (const [what, ask] of asks) {
      const from = (origin: string) => request(url, { ...ask, headers: { origin } })
      expect((await from(page)).headers, what).toMatchObject({ "access-control-allow-origin": page, vary: "Origin" })
      const other = await from("https://evil.example")
      expect([other.headers["access-control-allow-origin"], other.headers["vary"]], what).toEqual([undefined, "Origin"])
    }
  })
  it("a preflight needs no secret, and is answered to listed origins only", async () => {
    const { url } = await start({ corsOrigins: [page] }, { SVC_CORS_ORIGINS: page })
    const preflight = (path: string, origin: string) =>
      request(url, {
        method: "OPTIONS",
        path,
        headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" }
      })
    for (const path of ["/ingest", "/view/register", "/view/x/stream"]) {
      const answer = await preflight(path, page)
      expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([204, page])
      expect(answer.headers["access-control-allow-headers"]).toMatch(/authorization/)
      expect((await preflight(path, "https://evil.example")).headers["access-control-allow-origin"]).toBeUndefined()
    }
  })
  it("without the setting no answer speaks of origins, and a preflight is refused", async () => {
    const { url } = await start({})
    for (const [, ask] of asks)
      expect(
        Object.keys((await request(url, { ...ask, headers: { origin: page } })).headers).filter((name) =>
          /^access-control|^vary$/.test(name)
        )
      ).toEqual([])
    expectError(
      await request(url, {
        method: "OPTIONS",
        path: "/view/register",
        headers: { origin: page, "access-control-request-method": "POST" }
      }),
      403,
      "FORBIDDEN"
    )
  })
})

describe("pages of ours", () => {
  it("GET /docs carries a policy that lets its own script run by hash, nothing else, and no framing; an answer that is no page has no policy", async () => {
    const { url } = await start({})
    const answer = await request(url, { path: "/docs" })
    const policy = String(answer.headers["content-security-policy"])
    expect(policy).toMatch(/default-src 'none'; script-src 'self' 'sha256-[A-Za-z0-9+/]{43}='; /)
    expect(policy).not.toMatch(/script-src[^;]*unsafe/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(answer.headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" })
    const { headers } = await request(url, { path: "/openapi.json" })
    expect([headers["x-content-type-options"], headers["content-security-policy"]]).toEqual(["nosniff", undefined])
  })
})
