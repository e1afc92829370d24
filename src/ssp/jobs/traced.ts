/**
 * Traces a backend: each call is a span, between the job's trace and the backend's.
 *
 * A wrapper, as `metered.ts` is. Neither query nor headers of a call become attributes: they may hold secrets.
 */
import { Effect, Exit } from "effect"
import type { BackendShape } from "../../ports/Backend.ts"
import type { TracingShape } from "../../ports/Tracing.ts"

const attributesOf = (url: string) => {
  const { host, pathname } = new URL(url)
  return { "http.request.method": "POST", "server.address": host, "url.path": pathname }
}

export const backend = (shape: BackendShape, tracing: TracingShape | undefined): BackendShape =>
  tracing === undefined
    ? shape
    : {
        call: (call) =>
          Effect.suspend(() => {
            const span = tracing.begin("POST job", {
              kind: "client",
              parent: call.headers["traceparent"],
              attributes: attributesOf(call.url)
            })
            if (span === undefined) return shape.call(call)
            return Effect.onExit(
              shape.call({ ...call, headers: { ...call.headers, traceparent: span.traceparent } }),
              (exit) =>
                Effect.sync(() => {
                  if (Exit.isSuccess(exit))
                    span.end(exit.value.status < 400 ? undefined : `answered ${exit.value.status}`, {
                      "http.response.status_code": exit.value.status
                    })
                  else span.end("no answer")
                })
            )
          })
      }
