/**
 * The calls of jobs on bare connections; `ports/Backend.ts` says what a call is.
 *
 * Why bare: see `exchange.ts`; a node runs a thousand of these a second.
 */
import { Effect, Layer } from "effect"
import { Backend, BackendFailed, bodyWithinMs, quotedBytes, readBytes } from "../ports/Backend.ts"
import * as Exchange from "./exchange.ts"

export const layer: Layer.Layer<Backend> = Layer.scoped(
  Backend,
  Effect.map(Exchange.make, (send) => ({
    call: ({ body, headers, timeoutMs, url }) =>
      send({ method: "POST", url, headers, body, withinMs: timeoutMs, bodyWithinMs, keptBytes: quotedBytes, readBytes }).pipe(
        Effect.map(({ retryAfter, status, text }) => ({ status, retryAfter, body: text })),
        Effect.mapError(({ late, message }) => new BackendFailed({ message: `no answer from the backend${late ? ` within ${timeoutMs} ms` : `: ${message}`}` }))
      )
  }))
)
