/**
 * The scheduler over HTTP: what is sent, and what each answer means to the SSP (D18, D19, D20).
 *
 * Why against a real socket: refused connections and answers that are not the contract's are half of the cases.
 */

import { createServer, type Server } from "node:http"
import { FetchHttpClient } from "@effect/platform"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort } from "../../kit/processes/Door.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import * as HttpSchedulerClient from "../../src/drivers/httpSchedulerClient.ts"
import { Schedulers } from "../../src/drivers/shared/schedulers.ts"
import { SchedulerClient, type SchedulerClientShape, type SchedulerError } from "../../src/ports/SchedulerClient.ts"

const seen: Array<{
  readonly url: string | undefined
  readonly body: unknown
  readonly authorization: string | undefined
  readonly accept: string | undefined
}> = []
let answer: readonly [number, string, { readonly [header: string]: string }?] = [202, '{"snapshot_seq":7}']
let server: Server
let port = 0

beforeAll(async () => {
  port = await freePort()
  server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      seen.push({
        url: request.url,
        body: JSON.parse(Buffer.concat(chunks).toString()) as unknown,
        authorization: request.headers.authorization,
        accept: request.headers.accept
      })
      response.writeHead(answer[0], { "content-type": "application/json", ...answer[2] }).end(answer[1])
    })
  })
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done))
})
afterAll(() => server.close())

const ask = <A>(
  call: (client: SchedulerClientShape) => Effect.Effect<A, SchedulerError>,
  url = `http://127.0.0.1:${port}`
) =>
  Effect.flatMap(SchedulerClient, call).pipe(
    Effect.either,
    Effect.provide(HttpSchedulerClient.layer(url)),
    Effect.provide(FetchHttpClient.layer),
    Effect.runPromise
  )

const register = (url?: string) =>
  ask((client) => client.register({ ssp_id: "one", url: "http://one:8667", batch: true }), url)
const beat = {
  ssp_id: "one",
  timestamp: 5,
  views: 2,
  cpu_usage: 1.5,
  memory_usage: 80,
  incarnation: "i",
  registration: 3
}

describe("SchedulerClient", () => {
  it("sends the registration as agreed and takes the position", async () => {
    expect(await register()).toMatchObject({ _tag: "Right", right: { snapshot_seq: 7 } })
    expect(seen.at(-1)).toEqual({
      url: "/ssp/register",
      body: { ssp_id: "one", url: "http://one:8667", batch: true },
      authorization: undefined,
      accept: "application/json"
    })
  })
  for (const [status, body, reason] of [
    [503, '{"code":"SCHEDULER_CLONING","message":"m"}', "cloning"],
    [503, "{}", "unreachable"],
    [500, "", "unreachable"],
    [400, '{"code":"INVALID_REQUEST"}', "refused"],
    [200, "nope", "unreachable"],
    [202, '{"snapshot_seq":-1}', "unreachable"],
    [404, "", "refused"],
    [409, "", "refused"],
    [409, '{"code":"SSP_FENCED"}', "fenced"]
  ] as const) {
    it(`D18 registration: ${status} ${body} is ${reason}`, async () => {
      answer = [status, body]
      expect(await register()).toMatchObject({ _tag: "Left", left: { reason } })
    })
  }
  it("D18 an address without a server is unreachable, and the message says why", async () => {
    const free = await freePort()
    expect(await register(`http://127.0.0.1:${free}`)).toMatchObject({
      _tag: "Left",
      left: { reason: "unreachable", message: expect.stringMatching(/ECONNREFUSED/) }
    })
  })
  it("the answer to a registration may say which one it is, of which log and epoch", async () => {
    answer = [202, '{"snapshot_seq":7,"registration":4,"log_id":"l","epoch":2,"unheard":true}']
    expect(await register()).toMatchObject({ right: { snapshot_seq: 7, registration: 4, log_id: "l", epoch: 2 } })
  })
  it("D18 503 with Retry-After says how long", async () => {
    answer = [503, '{"code":"OVERLOADED"}', { "retry-after": "3" }]
    expect(await register()).toMatchObject({ left: { reason: "overloaded", retryAfterMs: 3000 } })
  })
  it("a heartbeat carries what the specification names, and which process and registration it is of", async () => {
    answer = [200, "anything"]
    expect(await ask((client) => client.heartbeat(beat))).toMatchObject({ _tag: "Right" })
    expect(seen.at(-1)).toMatchObject({ url: "/ssp/heartbeat", body: beat })
  })
  for (const [status, body, reason] of [
    [404, "", "unknown"],
    [409, "not json", "conflict"],
    [409, '{"code":"BUFFER_OVERFLOW"}', "conflict"],
    [409, '{"code":"SSP_FENCED"}', "fenced"],
    [500, "", "unreachable"],
    [503, "", "unreachable"],
    [400, "", "refused"]
  ] as const) {
    it(`D19 heartbeat: ${status} ${body} is ${reason}`, async () => {
      answer = [status, body]
      expect(await ask((client) => client.heartbeat(beat))).toMatchObject({ left: { reason } })
    })
  }
  it("D31 says goodbye", async () => {
    answer = [200, "{}"]
    await ask((client) => client.deregister({ ssp_id: "one", incarnation: "i" }))
    expect(seen.at(-1)).toMatchObject({ url: "/ssp/deregister", body: { ssp_id: "one", incarnation: "i" } })
  })
  it("D20 the proxy: signin, use, a query with its parameters and the position of its answer", async () => {
    answer = [200, "[1]", { "svc-snapshot-seq": "41" }]
    for (const path of ["signin", "use"] as const) {
      expect(await ask((client) => client[path])).toMatchObject({ _tag: "Right" })
      expect(seen.at(-1)?.url).toBe(`/proxy/${path}`)
    }
    expect(await ask((client) => client.query("RETURN $a", { a: 1 }))).toMatchObject({
      right: { seq: 41, exact: false, text: "[1]" }
    })
    expect(seen.at(-1)).toMatchObject({ url: "/proxy/query", body: { query: "RETURN $a", params: { a: 1 } } })
    answer = [200, "[1]", { "content-type": "application/vnd.svc+json" }]
    expect(await ask((client) => client.query("RETURN $id", { id: Ids.make("t", 1) }))).toMatchObject({
      right: { exact: true }
    })
    expect(seen.at(-1)).toMatchObject({
      accept: expect.stringContaining("application/vnd.svc+json"),
      body: { params: { id: { $: ["r", "t", 1] } } }
    })
    answer = [200, "[1]"]
    expect(await ask((client) => client.query("RETURN 1"))).toMatchObject({ right: { seq: undefined } })
    expect(seen.at(-1)?.body).toEqual({ query: "RETURN 1" })
  })
  it("D60 of several schedulers the next one is asked where one cannot be reached or leads nothing, and kept", async () => {
    const free = await freePort()
    const list = `http://127.0.0.1:${free},http://127.0.0.1:${port}`
    answer = [202, '{"snapshot_seq":7}']
    expect(await register(list)).toMatchObject({ right: { snapshot_seq: 7 } })
    answer = [503, '{"code":"NOT_LEADER"}', { "retry-after": "1" }]
    const before = seen.length
    expect(await register(`http://127.0.0.1:${port},http://127.0.0.1:${port}`)).toMatchObject({
      left: { reason: "notLeader", retryAfterMs: 1000 }
    })
    expect(seen.length - before).toBe(2)
    answer = [409, '{"code":"SSP_FENCED"}']
    expect(await register(`http://127.0.0.1:${port},http://127.0.0.1:${port}`)).toMatchObject({ _tag: "Left" })
    expect(seen.length - before).toBe(3)
  })
  it("D60 one that answers nothing until its caller gives up is not the first to be asked again", async () => {
    const asked: Array<string> = []
    const schedulers = new Schedulers("silent,there")
    const call = (url: string): Effect.Effect<string> => {
      asked.push(url)
      return url === "silent" ? Effect.never : Effect.succeed(url)
    }
    await Effect.runPromise(
      Effect.timeoutOption(
        schedulers.ask(call, () => true),
        10
      )
    )
    expect(await Effect.runPromise(schedulers.ask(call, () => true))).toBe("there")
    expect(asked).toEqual(["silent", "there"])
  })
})
