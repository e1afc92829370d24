/**
 * What our OpenAPI documents leave out: the library's own decode error.
 *
 * Ours takes its place on the wire, so a document that named the other would lie.
 */

const without = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((item) => !isDecodeErrorRef(item)).map(without)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => !libraryNames.has(key)).map(([key, item]) => [key, without(item)]))
}

const libraryNames = new Set(["HttpApiDecodeError", "Issue", "PropertyKey"])

const isDecodeErrorRef = (item: unknown): boolean => typeof item === "object" && item !== null && "$ref" in item && item.$ref === "#/components/schemas/HttpApiDecodeError"

/** The library announces its decode error wherever something is decoded; the document without it. */
export const withoutDecodeError = (spec: Record<string, unknown>): Record<string, unknown> => without(spec) as Record<string, unknown>
