/** What a scheduler that stands by hands on, over the client of the processes and over any other one. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layerClient } from "../../src/host/http/exchange.ts"
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
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
  })
  beforeAll(() => new Promise<void>((done) => void leader.listen(0, "127.0.0.1", done)))
  afterAll(() => new Promise<void>((done) => void leader.close(() => done())))

  it("D34 the caller's trace context goes on as it came, within a span or without", async () => {
    const standing = {
      leaderUrl: () => `http://127.0.0.1:${(leader.address() as AddressInfo).port}`,
      otherLeader: Effect.never,
      reach: undefined
    }
    const headers = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" }
    const post = () =>
      HttpServerRequest.fromWeb(new Request("http://standby/ingest", { method: "POST", headers, body: "[]" }))
    const statuses = await Effect.runPromise(
      Effect.gen(function* () {
        const forward = yield* Forward.make(standing)
        const handed = [forward(post()), Effect.withSpan(forward(post()), "of the server"), forward(post())]
        return (yield* Effect.all(handed)).map(({ status }) => status)
      }).pipe(Effect.provide(Layer.mergeAll(client, RequestBody.layer, SchedulerConfig.layerOf({}))))
    )
    expect(statuses).toEqual([200, 200, 200])
    expect(came.map(({ traceparent, tracestate }) => ({ traceparent, tracestate }))).toEqual(Array(3).fill(headers))
    expect(came.map((sent) => [sent["b3"], sent[Forward.forwardedHeader] !== undefined])).toEqual(
      Array(3).fill([undefined, true])
    )
  })
})
