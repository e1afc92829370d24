/**
 * The call of a job over a real connection, by every layer that can make it: what was sent, what came back, and all the
 * ways in which nothing did.
 *
 * Why on sockets: what a backend does to a connection is half of what a job runner has to live with.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, createServer as createSocketServer, type Server } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Either, Fiber, Layer } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { freePort } from "../../kit/processes/Door.ts"
import type { Answer } from "../../src/core/job/outcome.ts"
import * as HttpBackend from "../../src/drivers/httpBackend.ts"
import * as Exchange from "../../src/host/http/exchange.ts"
import { Backend, type BackendFailed } from "../../src/ports/Backend.ts"

const layers: { readonly [name: string]: Layer.Layer<Backend> } = {
  "over bare connections": Layer.unwrapScoped(Effect.map(Exchange.make(undefined), HttpBackend.layerOver)),
  "layerHttp over undici": Layer.provide(HttpBackend.layer, NodeHttpClient.layerUndici),
  "layerHttp over fetch": Layer.provide(HttpBackend.layer, FetchHttpClient.layer)
}

const listening = (server: Server): Promise<string> =>
  new Promise(
    (done) =>
      void server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  )

let reply: (request: IncomingMessage, response: ServerResponse, body: string) => void
let closed = 0
const seen: Array<{
  readonly line: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
  readonly port: number | undefined
}> = []
const server = createServer((request, response) => {
  let body = ""
  request
    .setEncoding("utf8")
    .on("data", (chunk) => (body += chunk))
    .on("end", () => {
      seen.push({
        line: `${request.method} ${request.url}`,
        headers: request.headers,
        body,
        port: request.socket.remotePort
      })
      response.on("close", () => closed++)
      reply(request, response, body)
    })
})
/** Answers what is no HTTP. */
const rude = createSocketServer(
  (socket) => void socket.on("error", () => undefined).end("what?\r\n\r\n", () => socket.destroySoon())
)
let url: string, rudeUrl: string
beforeAll(async () => ([url, rudeUrl] = await Promise.all([listening(server), listening(rude)])))
beforeEach(() => void seen.splice(0))
afterAll(async () => {
  server.closeAllConnections()
  await Promise.all([server, rude].map((each) => new Promise((done) => void each.close(done))))
})

const call = (
  layer: Layer.Layer<Backend>,
  path: string,
  timeoutMs = 30_000,
  base = url
): Effect.Effect<Either.Either<Answer, BackendFailed>> =>
  Effect.provide(
    Effect.flatMap(Backend, (backend) =>
      Effect.either(
        backend.call({
          url: `${base}${path}`,
          headers: { "content-type": "application/json", "idempotency-key": "job:1", traceparent: "00-1-2-00" },
          body: `{"to":"é"}`,
          timeoutMs
        })
      )
    ),
    layer
  )
const asked = (layer: Layer.Layer<Backend>, path: string, timeoutMs?: number, base?: string) =>
  Effect.runPromise(call(layer, path, timeoutMs, base))

for (const [name, layer] of Object.entries(layers)) {
  describe(`Backend.${name}`, () => {
    it("D37 posts the body with the headers it was given, and answers status, Retry-After and body", async () => {
      reply = (_, response) => void response.writeHead(503, { "retry-after": "7" }).end("later, ça va")
      expect(Either.getOrThrow(await asked(layer, "/send?x=1"))).toEqual({
        status: 503,
        retryAfter: "7",
        body: "later, ça va"
      })
      expect(seen).toMatchObject([
        {
          line: "POST /send?x=1",
          body: `{"to":"é"}`,
          headers: { "content-type": "application/json", "idempotency-key": "job:1", traceparent: "00-1-2-00" }
        }
      ])
      reply = (_, response) => void response.writeHead(204).end()
      expect(Either.getOrThrow(await asked(layer, "/send"))).toEqual({ status: 204, retryAfter: undefined, body: "" })
    })
    it("D37 a redirect is answered, not followed", async () => {
      for (const status of [301, 302, 303, 307, 308]) {
        reply = (_, response) => void response.writeHead(status, { location: `${url}/elsewhere` }).end()
        expect(Either.getOrThrow(await asked(layer, "/send")).status).toBe(status)
      }
      expect(seen.map(({ line }) => line)).toEqual(Array.from({ length: 5 }, () => "POST /send"))
    })
    it("D37 no server, a reset, an end without an answer and an answer that is no HTTP are failures that say why", async () => {
      reply = (request) => void request.socket.resetAndDestroy()
      const reset = await asked(layer, "/send")
      reply = (request) => void request.socket.destroy()
      const results = [
        await asked(layer, "/send"),
        reset,
        await asked(layer, "/send", 30_000, rudeUrl),
        await asked(layer, "/send", 30_000, `http://127.0.0.1:${await freePort()}`)
      ]
      const messages = results.map((result) => Either.getOrThrow(Either.flip(result)).message)
      for (const message of messages) expect(message).toMatch(/^no answer from the backend: ./)
      // `fetch` has words of its own for a reset.
      expect([messages[1], messages[3]]).toEqual([
        expect.stringMatching(/ECONNRESET|other side closed/),
        expect.stringContaining("ECONNREFUSED")
      ])
    })
    it("D37 the time-out covers everything up to the status; the connection is cut", async () => {
      const before = closed
      reply = () => undefined
      expect(Either.getOrThrow(Either.flip(await asked(layer, "/send", 50))).message).toBe(
        "no answer from the backend within 50 ms"
      )
      while (closed === before) await new Promise((done) => setTimeout(done, 5))
    })
    it("D37 a body that breaks off, or never ends, changes nothing about the status; of a long one the beginning is kept", async () => {
      reply = (request, response) => {
        response.writeHead(200, { "content-length": "100" }).write("half")
        setTimeout(() => request.socket.destroy(), 20)
      }
      expect(Either.getOrThrow(await asked(layer, "/send"))).toMatchObject({ status: 200, body: "half" })
      reply = (_, response) => {
        response.writeHead(500)
        const more = (): void => void (response.destroyed ? undefined : response.write("x".repeat(100_000), more))
        more()
      }
      const { body, status } = Either.getOrThrow(await asked(layer, "/send"))
      expect([status, body]).toEqual([500, "x".repeat(8192)])
    })
    it("an interrupted call is cut off", async () => {
      const before = closed
      reply = () => undefined
      const fiber = Effect.runFork(call(layer, "/send"))
      while (seen.length === 0) await new Promise((done) => setTimeout(done, 5))
      await Effect.runPromise(Fiber.interrupt(fiber))
      while (closed === before) await new Promise((done) => setTimeout(done, 5))
    })
    it.skipIf(name.endsWith("fetch"))("keeps its connections from call to call", async () => {
      reply = (_, response) => void response.end("{}")
      await Effect.runPromise(
        Effect.provide(
          Effect.flatMap(Backend, (backend) =>
            Effect.repeatN(
              Effect.orDie(backend.call({ url: `${url}/send`, headers: {}, body: "{}", timeoutMs: 30_000 })),
              9
            )
          ),
          layer
        )
      )
      // A call that follows at once may find the connection not yet free.
      expect(seen.length).toBe(10)
      expect(new Set(seen.map(({ port }) => port)).size).toBeLessThanOrEqual(2)
    })
  })
}
