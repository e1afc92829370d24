/**
 * Handing a caller's request on to an SSP: where the caller's secret may go, and what is said when it may not.
 *
 * Over a client that remembers what was asked of it, because the addresses that matter are ones no test may call.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Effect, Layer, Redacted } from "effect"
import { expect, it } from "vitest"
import * as HttpSspClient from "../../src/drivers/httpSspClient.ts"
import { Names } from "../../src/ports/Names.ts"
import { SspClient } from "../../src/ports/SspClient.ts"

const asked = async (
  url: string,
  authorization: string | undefined,
  allowedHosts: ReadonlyArray<string> | undefined
) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) => {
    requests.push(request)
    return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}", { status: 200 })))
  })
  const layer = HttpSspClient.layer({ secret: () => Redacted.make("ours"), allowedHosts, timeoutMs: 1000 }).pipe(
    Layer.provide([
      Layer.succeed(HttpClient.HttpClient, client),
      Layer.succeed(Names, { resolve: () => Effect.succeed(["93.184.216.34"]) })
    ])
  )
  const outcome = await Effect.runPromise(
    Effect.either(
      Effect.flatMap(SspClient, (ssps) =>
        ssps.forward("far", url, {
          method: "GET",
          path: "/view/v",
          authorization,
          lastEventId: undefined,
          ifNoneMatch: undefined
        })
      )
    ).pipe(Effect.provide(layer))
  )
  return {
    requests: requests.map(({ headers, url: to }) => [to, headers["authorization"], headers["host"]]),
    outcome: outcome._tag === "Left" ? outcome.left.message : outcome.right.status
  }
}

it("D15 a caller's secret goes to private addresses and listed hosts, to no other, and ours never does", async () => {
  expect(await asked("http://10.0.0.5:1", "Bearer mine", undefined)).toEqual({
    requests: [["http://10.0.0.5:1/view/v", "Bearer mine", undefined]],
    outcome: 200
  })
  expect(await asked("http://ssp.example", "Bearer mine", ["ssp.example"])).toEqual({
    requests: [["http://93.184.216.34/view/v", "Bearer mine", "ssp.example"]],
    outcome: 200
  })
  expect(await asked("http://ssp.example", "Bearer mine", undefined)).toEqual({
    requests: [],
    outcome: expect.stringContaining("SVC_SCHEDULER_SSP_URL_ALLOW")
  })
  expect(await asked("http://93.184.216.34:1", "Bearer mine", undefined)).toEqual({
    requests: [],
    outcome: expect.stringContaining("no secret is sent")
  })
  expect(await asked("http://ssp.example", undefined, undefined)).toEqual({
    requests: [["http://93.184.216.34/view/v", undefined, "ssp.example"]],
    outcome: 200
  })
})
