/**
 * The `traceparent` header of W3C Trace Context: read, checked, written.
 *
 * Whatever does not follow the form is as if it were not there: a wrong header of a client must not break the trace of
 * every service behind it.
 */

export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const form = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

export const parse = (text: unknown): TraceContext | undefined => {
  if (typeof text !== "string") return undefined
  const found = form.exec(text)
  // Only unknown (later) versions may be longer.
  if (found === null || (text.length > 55 && text.startsWith("00"))) return undefined
  return { traceId: found[1]!, spanId: found[2]!, sampled: (Number.parseInt(found[3]!, 16) & 1) === 1 }
}

export const write = ({ sampled, spanId, traceId }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** The text itself if it is well-formed; otherwise undefined. */
export const valid = (text: unknown): string | undefined => (parse(text) === undefined ? undefined : (text as string))
