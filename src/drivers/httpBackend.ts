/** Calls of jobs to backends over HTTP. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import { Backend, BackendFailed, type BackendShape, bodyWithinMs, bytesToKeep, readBytes } from "../ports/Backend.ts"
import * as Exchange from "./shared/exchange.ts"

const make = ({ request }: Pick<Exchange.Exchange, "request">): BackendShape => ({
  call: ({ body, headers, keptBytes, timeoutMs, url }) =>
    request({
      method: "POST",
      url,
      headers,
      body,
      withinMs: timeoutMs,
      beginning: { keptBytes: bytesToKeep(keptBytes), readBytes, withinMs: bodyWithinMs }
    }).pipe(
      Effect.mapBoth({
        onSuccess: (answer) => ({
          status: answer.status,
          retryAfter: Exchange.headerOf(answer, "retry-after"),
          body: answer.text
        }),
        onFailure: ({ late, message }) =>
          new BackendFailed({
            message: `no answer from the backend${late ? ` within ${timeoutMs} ms` : `: ${message}`}`
          })
      })
    )
})

export const layerOver = (exchange: Pick<Exchange.Exchange, "request">): Layer.Layer<Backend> =>
  Layer.succeed(Backend, make(exchange))

/** {@link layerOver} with any HTTP client; a process that runs many jobs passes an exchange on bare connections. */
export const layer: Layer.Layer<Backend, never, HttpClient.HttpClient> = Layer.effect(
  Backend,
  // The job's trace context is passed on unchanged; a span of the client would replace it.
  Effect.map(HttpClient.HttpClient, (client) => make(Exchange.over(Exchange.withoutSpans(client))))
)
