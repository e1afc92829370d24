/**
 * Spans of applied changes, each in the trace that its change belongs to.
 *
 * A scheduler delivers changes of many traces in one request or over its feed, so a change may carry its own trace
 * context: then it gets a span in its own trace, linked to the request's. Consequences of the change (a job's call)
 * continue that span. Without tracing and without a context nothing is made.
 */
import type { Change } from "../../core/record/change.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import type { Span, TracingShape } from "../../ports/Tracing.ts"

interface Traced {
  /** The same changes, each with the trace context for its consequences. */
  readonly changes: ReadonlyArray<Change>
  readonly end: (status: number) => void
}

/** Adds the trace context to each change, and opens a span for each trace other than `around`'s. */
const carrying = (
  tracing: TracingShape | undefined,
  around: string | undefined,
  changes: ReadonlyArray<Change>
): readonly [changes: ReadonlyArray<Change>, spans: ReadonlyArray<Span | undefined>] => {
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
  const carry = (change: Change): Change => {
    const traceparent = carried(change.traceparent)
    return traceparent === undefined ? change : { ...change, traceparent }
  }
  return [changes.map(carry), [...own.values()]]
}

/** Traces a request to `/ingest` with this `traceparent` header; undefined: nothing to trace. */
export const ofRequest = (
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
  const [traced, spans] = carrying(tracing, request?.traceparent ?? parent, changes)
  return {
    changes: traced,
    end: (status) => {
      const fault = status < 500 ? undefined : `answered ${status}`
      for (const span of [...spans, request]) span?.end(fault, { "http.response.status_code": status })
    }
  }
}

/** Traces changes of a scheduler's feed, which has no request; undefined: nothing to trace. */
export const ofFeed = (
  tracing: TracingShape | undefined,
  changes: ReadonlyArray<Change>
): { readonly changes: ReadonlyArray<Change>; readonly end: () => void } | undefined => {
  if (tracing === undefined || changes.every(({ traceparent }) => traceparent === undefined)) return undefined
  const [traced, spans] = carrying(tracing, undefined, changes)
  return {
    changes: traced,
    end: () => {
      for (const span of spans) span?.end()
    }
  }
}
