/** What a scheduler that stands by hands on, over the client of the processes and over any other one. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Fiber, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layerClient } from "../../src/host/http/exchange.ts"
import { Serving } from "../../src/ports/Front.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SchedulerConfig } from "../../src/scheduler/Config.ts"
import * as Forward from "../../src/scheduler/standby/Forward.ts"

const clients: ReadonlyArray<readonly [string, Layer.Layer<HttpClient.HttpClient>]> = [
  ["that of the processes", layerClient(undefined)],
  ["fetch", FetchHttpClient.layer]
]

describe.each(clients)("a request handed on over %s", (_, client) => {
  const came: Array<IncomingMessage["headers"]> = []
  const leader = createServer((request, response) => {
    came.push(request.headers)
    const endless = request.url?.startsWith("/feed") === true
    request.resume().on("end", () => {
      if (!endless) return void response.writeHead(200, { "content-type": "application/json" }).end("{}")
      response.writeHead(200, { "content-type": "application/x-ndjson" }).write("1\n")
    })
  })
  beforeAll(() => new Promise<void>((done) => void leader.listen(0, "127.0.0.1", done)))
  afterAll(() => new Promise<void>((done) => void leader.close(() => done())))

  it("D34 the caller's trace context goes on as it came, within a span or without", async () => {
    const election = {
      leaderUrl: () => `http://127.0.0.1:${(leader.address() as AddressInfo).port}`,
      otherLeader: Effect.never,
      reach: undefined
    }
    const headers = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" }
    const post = () =>
      HttpServerRequest.fromWeb(new Request("http://standby/ingest", { method: "POST", headers, body: "[]" }))
    const statuses = await Effect.runPromise(
      Effect.gen(function* () {
        const forward = yield* Forward.make(election)
        const handed = [forward(post()), Effect.withSpan(forward(post()), "of the server"), forward(post())]
        return (yield* Effect.all(handed)).map(({ status }) => status)
      }).pipe(Effect.provide(Layer.mergeAll(client, RequestBody.layer, Serving.layer, SchedulerConfig.layerOf({}))))
    )
    expect(statuses).toEqual([200, 200, 200])
    expect(came.map(({ traceparent, tracestate }) => ({ traceparent, tracestate }))).toEqual(Array(3).fill(headers))
    expect(came.map((sent) => [sent["b3"], sent[Forward.forwardedHeader] !== undefined])).toEqual(
      Array(3).fill([undefined, true])
    )
  })

  it("D60 what goes on, an answer or a body, ends when the scheduler that hands it on stops", async () => {
    const election = {
      leaderUrl: () => `http://127.0.0.1:${(leader.address() as AddressInfo).port}`,
      otherLeader: Effect.never,
      reach: undefined
    }
    const [text, status] = await Effect.runPromise(
      Effect.gen(function* () {
        const forward = yield* Forward.make(election)
        const { stop } = yield* Serving
        const fed = HttpServerResponse.toWeb(
          yield* forward(HttpServerRequest.fromWeb(new Request("http://standby/feed?after=0")))
        )
        const words = new Request("http://standby/ssp/applied", {
          method: "POST",
          body: new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode("1\n")) }),
          duplex: "half"
        } as RequestInit)
        const said = yield* Effect.fork(forward(HttpServerRequest.fromWeb(words)))
        const read = yield* Effect.fork(Effect.promise(() => fed.text()))
        yield* Effect.sleep(300)
        yield* stop
        return [yield* Fiber.join(read), (yield* Fiber.join(said)).status] as const
      }).pipe(Effect.provide(Layer.mergeAll(client, RequestBody.layer, Serving.layer, SchedulerConfig.layerOf({}))))
    )
    expect([text, status]).toEqual(["1\n", 503])
  })
})
