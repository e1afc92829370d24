/**
 * The backends that jobs call: one POST out, status and the beginning of the body back (D37).
 *
 * A port, because nothing that decides about jobs may need a network. Redirects are never followed, so a token never
 * leaves for where a backend points. The time-out covers everything up to the status; a body that does not come after a
 * status changes nothing about what the backend said.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Context, Data, Duration, Effect, Layer, Stream } from "effect"
import type { Answer } from "../core/job/outcome.ts"
import type { HttpCall } from "../core/job/request.ts"
import { reasonOf } from "../core/reason.ts"

/** There was no HTTP answer. */
export class BackendFailed extends Data.TaggedError("BackendFailed")<{ readonly message: string }> {}

export interface BackendShape {
  readonly call: (call: HttpCall) => Effect.Effect<Answer, BackendFailed>
}

/** What of a body may be quoted. */
export const quotedBytes = 8_192
/** What of a body is read, so that the connection can be used again, and for how long. */
export const readBytes = 1_048_576
export const bodyWithinMs = 5_000

/** What of an answer's body is kept: a reason is quoted from it, and a result is read. */
export const keptOf = (keptBytes = 0): number => Math.min(readBytes, Math.max(quotedBytes, keptBytes))

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
        // Only `fetch` follows by itself, and by GET; the other clients do not look at this.
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

/** Calls backends of jobs; `layerNone` for a node that runs none. */
export class Backend extends Context.Tag("ports/Backend")<Backend, BackendShape>() {
  /** For a node without job tables. */
  static readonly layerNone: Layer.Layer<Backend> = Layer.succeed(Backend, {
    call: () => Effect.fail(new BackendFailed({ message: "no HTTP client was given to this node" }))
  })

  /** Over any HTTP client; a process that runs many jobs takes `host/backendCalls.ts`. */
  static readonly layerHttp: Layer.Layer<Backend, never, HttpClient.HttpClient> = Layer.effect(
    Backend,
    Effect.map(HttpClient.HttpClient, make)
  )
}
