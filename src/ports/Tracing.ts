/**
 * Spans for the effects of a request, by plain calls: hot paths have no fiber to carry a span.
 *
 * `begin` answers undefined for a span that is not collected, so that the hot path pays one test. A trace context is
 * passed on either way: it is the caller's, and a service behind may collect.
 */
import { Context } from "effect"

/** Attributes of a span by name. */
export type Attributes = { readonly [name: string]: string | number | boolean }

/** A span under way. */
export interface Span {
  /** Trace context to send with calls to other services. */
  readonly traceparent: string
  /** Ends the span; `fault`: message of its failure, undefined if it succeeded. */
  readonly end: (fault?: string, attributes?: Attributes) => void
}

/** Start of a span. */
export interface SpanStart {
  readonly kind: "server" | "client" | "internal"
  /** `traceparent` of the parent span; undefined begins a trace. */
  readonly parent: string | undefined
  /** `traceparent` of other related spans. */
  readonly links?: ReadonlyArray<string>
  readonly attributes?: Attributes
}

/** Begins spans. */
export interface TracingShape {
  /** Undefined if this span is not collected. */
  readonly begin: (name: string, start: SpanStart) => Span | undefined
}

/** Collector of spans; by default none are collected. */
export class Tracing extends Context.Reference<Tracing>()("ports/Tracing", {
  defaultValue: (): TracingShape | undefined => undefined
}) {}
