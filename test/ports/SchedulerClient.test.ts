/**
 * Registration over HTTP: what each answer of a scheduler means to the SSP (D18).
 *
 * Why against a real socket: refused connections and answers that are not the contract's are half of the cases.
 */
import { FetchHttpClient } from "@effect/platform"
import { Effect } from "effect"
import { createServer, type Server } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { freePort } from "../kit/Door.ts"

const seen: Array<{ readonly url: string | undefined; readonly body: unknown; readonly authorization: string | undefined }> = []
let answer: readonly [number, string] = [202, "{\"snapshot_seq\":7}"]
let server: Server
let port = 0

beforeAll(async () => {
  port = await freePort()
  server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      seen.push({ url: request.url, body: JSON.parse(Buffer.concat(chunks).toString()) as unknown, authorization: request.headers.authorization })
      response.writeHead(answer[0], { "content-type": "application/json" }).end(answer[1])
    })
  })
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done))
})
afterAll(() => server.close())

const register = (url = `http://127.0.0.1:${port}`) =>
  Effect.flatMap(SchedulerClient, (client) => client.register({ ssp_id: "one", url: "http://one:8667", batch: true })).pipe(
    Effect.either, Effect.provide(SchedulerClient.layerHttp(url)), Effect.provide(FetchHttpClient.layer), Effect.runPromise
  )

describe("SchedulerClient", () => {
  it("sends the registration as agreed and takes the position", async () => {
    expect(await register()).toMatchObject({ _tag: "Right", right: { snapshot_seq: 7 } })
    expect(seen.at(-1)).toEqual({ url: "/ssp/register", body: { ssp_id: "one", url: "http://one:8667", batch: true }, authorization: undefined })
  })
  for (const [status, body, reason] of [
    [503, "{\"code\":\"SCHEDULER_CLONING\",\"message\":\"m\"}", "cloning"], [503, "{}", "unreachable"], [500, "", "unreachable"], [400, "{\"code\":\"INVALID_REQUEST\"}", "refused"],
    [200, "nope", "unreachable"], [202, "{\"snapshot_seq\":-1}", "unreachable"], [404, "", "refused"]
  ] as const) {
    it(`D18 ${status} ${body} is ${reason}`, async () => {
      answer = [status, body]
      expect(await register()).toMatchObject({ _tag: "Left", left: { reason } })
    })
  }
  it("D18 nobody there is unreachable, and the message says why", async () => {
    const free = await freePort()
    expect(await register(`http://127.0.0.1:${free}`)).toMatchObject({ _tag: "Left", left: { reason: "unreachable", message: expect.stringMatching(/ECONNREFUSED/) } })
  })
})
