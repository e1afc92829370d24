/**
 * What our OpenAPI documents say otherwise than the library: no decode error of its own, and a bearer that may be optional.
 *
 * Our error takes its place on the wire, so a document that named the other would lie.
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

/** A bearer that is asked for only where a secret is set: without one is a way in too. */
export const optionalBearer = (spec: Record<string, unknown>): Record<string, unknown> => optional(spec) as Record<string, unknown>

const optional = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(optional)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === "security" && Array.isArray(item) && item.length > 0 ? [{}, ...(item as ReadonlyArray<unknown>)] : optional(item)]))
}
