/**
 * Corrections of the library's OpenAPI documents: no decode error of its own, a bearer that may be optional, and
 * examples where pages look for them.
 *
 * On the wire the service's own error replaces the library's decode error.
 */
import * as OpenApi from "@effect/platform/OpenApi"

/** Annotations of an endpoint: a short summary for lists, and a description. */
export const doc = (summary: string, description: string) => OpenApi.annotations({ summary, description })

const without = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((item) => !isDecodeErrorRef(item)).map(without)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !libraryNames.has(key))
      .map(([key, item]) => [key, without(item)])
  )
}

const libraryNames = new Set(["HttpApiDecodeError", "Issue", "PropertyKey"])

const isDecodeErrorRef = (item: unknown): boolean =>
  typeof item === "object" && item !== null && "$ref" in item && item.$ref === "#/components/schemas/HttpApiDecodeError"

/** The document without the decode error that the library declares wherever something is decoded. */
export const withoutDecodeError = (spec: Record<string, unknown>): Record<string, unknown> =>
  without(spec) as Record<string, unknown>

/** Makes the scheme `bearer` optional: a server without a secret asks for none. */
export const optionalBearer = (spec: Record<string, unknown>): Record<string, unknown> =>
  optional(spec) as Record<string, unknown>

const optional = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(optional)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === "security" && Array.isArray(item) && item.some((way) => "bearer" in (way as object))
        ? [{}, ...(item as ReadonlyArray<unknown>)]
        : optional(item)
    ])
  )
}

/** The parts of a JSON schema that examples are found by. */
interface Described {
  readonly $ref?: string
  readonly anyOf?: ReadonlyArray<Described>
  readonly examples?: ReadonlyArray<unknown>
}

/** Examples of a schema and of its alternatives, each named by its schema. */
const examplesOf = (
  schema: Described,
  named: { readonly [name: string]: Described },
  name = "example"
): ReadonlyArray<readonly [string, unknown]> => {
  const [, ref] = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref ?? "") ?? []
  if (ref !== undefined) return examplesOf(named[ref] ?? {}, named, ref)
  return schema.examples !== undefined
    ? schema.examples.map((value) => [name, value])
    : (schema.anyOf ?? []).flatMap((one) => examplesOf(one, named))
}

/** Copies examples from schemas to bodies and parameters, where pages for trying requests look for them. */
export const withExamples = (spec: Record<string, unknown>): Record<string, unknown> => {
  const { schemas } = spec["components"] as { readonly schemas: { readonly [name: string]: Described } }
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== "object" || value === null) return value
    if (!("schema" in value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item)]))
    const [first, ...others] = examplesOf(value.schema as Described, schemas)
    if (first === undefined) return value
    if (others.length === 0) return { ...value, example: first[1] }
    return {
      ...value,
      examples: Object.fromEntries(
        [first, ...others].map(([name, example], n, all) => [
          all.findIndex(([same]) => same === name) === n ? name : `${name} ${n + 1}`,
          { value: example }
        ])
      )
    }
  }
  return { ...spec, paths: visit(spec["paths"]) }
}
