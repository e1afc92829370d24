/** The calls of jobs over any HTTP client; a process that runs many jobs takes `host/http/backendCalls.ts`. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Duration, Effect, Layer, Stream } from "effect"
import { reasonOf } from "../core/reason.ts"
import { Backend, BackendFailed, type BackendShape, bodyWithinMs, keptOf, readBytes } from "../ports/Backend.ts"

const bodyOf = (response: HttpClientResponse.HttpClientResponse, keptBytes: number): Effect.Effect<string> => {
  const kept: Array<Uint8Array> = []
  let size = 0
  return response.stream.pipe(
    Stream.takeUntil((chunk) => {
      if (size < keptBytes) kept.push(chunk.subarray(0, keptBytes - size))
      size += chunk.length
      return size >= readBytes
    }),
    Stream.runDrain,
    Effect.timeout(Duration.millis(bodyWithinMs)),
    Effect.ignore,
    Effect.map(() => {
      const decoder = new TextDecoder()
      return kept.map((chunk) => decoder.decode(chunk, { stream: true })).join("")
    })
  )
}

const make = (http: HttpClient.HttpClient): BackendShape => {
  // Our own trace context is passed on as it came; a span of the client's would take its place.
  const client = http.pipe(
    HttpClient.withTracerDisabledWhen(() => true),
    HttpClient.withTracerPropagation(false)
  )
  return {
    call: ({ body, headers, keptBytes, timeoutMs, url }) =>
      HttpClientRequest.post(url).pipe(
        HttpClientRequest.bodyText(body, "application/json"),
        HttpClientRequest.setHeaders(headers),
        client.execute,
        // The client over `fetch` would follow redirects, and as GET; other clients ignore this option.
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.mapError(
          (error) =>
            new BackendFailed({
              message: `no answer from the backend: ${error._tag === "RequestError" ? reasonOf(error) : error.message}`
            })
        ),
        Effect.timeoutFail({
          duration: Duration.millis(timeoutMs),
          onTimeout: () => new BackendFailed({ message: `no answer from the backend within ${timeoutMs} ms` })
        }),
        Effect.flatMap((response) =>
          Effect.map(bodyOf(response, keptOf(keptBytes)), (text) => ({
            status: response.status,
            retryAfter: response.headers["retry-after"],
            body: text
          }))
        ),
        Effect.scoped,
        Effect.withTracerEnabled(false)
      )
  }
}

export const layer: Layer.Layer<Backend, never, HttpClient.HttpClient> = Layer.effect(
  Backend,
  Effect.map(HttpClient.HttpClient, make)
)
