/**
 * The calls of jobs on bare connections; `ports/Backend.ts` says what a call is.
 *
 * Why bare: see `exchange.ts`; a node runs a thousand of these a second.
 */
import { Effect, Layer } from "effect"
import { Backend, BackendFailed, bodyWithinMs, keptOf, readBytes } from "../../ports/Backend.ts"
import * as Exchange from "./exchange.ts"

export const layer: Layer.Layer<Backend> = Layer.scoped(
  Backend,
  Effect.map(Exchange.make, (send) => ({
    call: ({ body, headers, keptBytes, timeoutMs, url }) =>
      send({
        method: "POST",
        url,
        headers,
        body,
        withinMs: timeoutMs,
        bodyWithinMs,
        keptBytes: keptOf(keptBytes),
        readBytes
      }).pipe(
        Effect.map(({ retryAfter, status, text }) => ({ status, retryAfter, body: text })),
        Effect.mapError(
          ({ late, message }) =>
            new BackendFailed({
              message: `no answer from the backend${late ? ` within ${timeoutMs} ms` : `: ${message}`}`
            })
        )
      )
  }))
)
