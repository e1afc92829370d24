/**
 * The spans of a request to `/ingest`, and the trace that each of its changes belongs to.
 *
 * A scheduler delivers changes of many traces in one request, so a change may carry a context of its own: then it gets
 * a span in its own trace, linked to the request's. What a change sets off (a job's call) follows from that. Nothing is
 * made where traces are not collected and no context was sent.
 */
import type { Change } from "../../core/record/change.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import type { Span, TracingShape } from "../../ports/Tracing.ts"

export interface Traced {
  /** The same changes, each with the context that goes on. */
  readonly changes: ReadonlyArray<Change>
  readonly end: (status: number) => void
}

const faultOf = (status: number): string | undefined => (status < 500 ? undefined : `answered ${status}`)

/** Undefined: nothing to do. */
export const begin = (
  tracing: TracingShape | undefined,
  header: string | undefined,
  changes: ReadonlyArray<Change>
): Traced | undefined => {
  if (tracing === undefined && header === undefined && changes.every(({ traceparent }) => traceparent === undefined))
    return undefined
  const parent = Trace.valid(header)
  const request = tracing?.begin("POST /ingest", {
    kind: "server",
    parent,
    attributes: { "svc.changes": changes.length }
  })
  const around = request?.traceparent ?? parent
  const traceId = Trace.parse(around)?.traceId
  const own = new Map<string, Span | undefined>()
  const carried = (traceparent: string | undefined): string | undefined => {
    if (traceparent === undefined || Trace.parse(traceparent)?.traceId === traceId) return around
    if (!own.has(traceparent))
      own.set(
        traceparent,
        tracing?.begin("apply changes", {
          kind: "internal",
          parent: traceparent,
          links: around === undefined ? [] : [around]
        })
      )
    return own.get(traceparent)?.traceparent ?? traceparent
  }
  return {
    changes: changes.map((change) => {
      const traceparent = carried(change.traceparent)
      return traceparent === undefined ? change : { ...change, traceparent }
    }),
    end: (status) => {
      for (const span of [...own.values(), request]) span?.end(faultOf(status), { "http.response.status_code": status })
    }
  }
}
