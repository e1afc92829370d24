/**
 * Spans for what a request sets off, by hand and by callback: the ways that matter have no fiber to carry a span.
 *
 * Undefined where traces are not collected, so that the hot path asks one question and pays nothing else. A trace
 * context is passed on either way: it is the caller's, and a service behind may collect.
 */
import { Context } from "effect"

export type Attributes = { readonly [name: string]: string | number | boolean }

export interface Span {
  /** Sent with calls to other services. */
  readonly traceparent: string
  /** `fault`: why it did not go well; undefined when it did. */
  readonly end: (fault?: string, attributes?: Attributes) => void
}

export interface SpanStart {
  readonly kind: "server" | "client" | "internal"
  /** The `traceparent` it follows from; undefined begins a trace. */
  readonly parent: string | undefined
  /** Others that it has to do with. */
  readonly links?: ReadonlyArray<string>
  readonly attributes?: Attributes
}

export interface TracingShape {
  /** Undefined: this one is not to be collected. */
  readonly begin: (name: string, start: SpanStart) => Span | undefined
}

/** Where spans go; nowhere by default. */
export class Tracing extends Context.Reference<Tracing>()("ports/Tracing", {
  defaultValue: (): TracingShape | undefined => undefined
}) {}
