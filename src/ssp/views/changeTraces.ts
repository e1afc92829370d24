/**
 * The spans of changes that are applied, and the trace that each of them belongs to.
 *
 * A scheduler delivers changes of many traces in one request or over its feed, so a change may carry a context of its
 * own: then it gets a span in its own trace, linked to the request's. What a change sets off (a job's call) follows
 * from that. Nothing is made where traces are not collected and no context was sent.
 */
import type { Change } from "../../core/record/change.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import type { Span, TracingShape } from "../../ports/Tracing.ts"

interface Traced {
  /** The same changes, each with the context that goes on. */
  readonly changes: ReadonlyArray<Change>
  readonly end: (status: number) => void
}

/** Each change with the context that goes on, and spans of their own for those of other traces than `around`. */
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

/** Trace of a request to `/ingest` with that `traceparent` header; undefined: nothing to do. */
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

/** Of a scheduler's feed, which has no request; undefined: nothing to do. */
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
