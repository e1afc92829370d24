/**
 * What the HTTP contracts declare, as rows: endpoints with requests, answers and error codes, read from the OpenAPI
 * documents.
 *
 * Why from there and not from the declarations: the documents are what clients see, and hold everything the pages show.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Errors from "../../src/protocol/errors.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { SspApi } from "../../src/protocol/SspApi.ts"

interface Schema {
  readonly $ref?: string
  readonly $id?: string
  readonly type?: string
  readonly anyOf?: ReadonlyArray<Schema>
  readonly items?: Schema
  readonly enum?: ReadonlyArray<unknown>
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: ReadonlyArray<string>
}

interface Content {
  readonly content?: { readonly [type: string]: { readonly schema: Schema } }
}

interface Operation {
  readonly tags: ReadonlyArray<string>
  readonly summary: string
  readonly description: string
  readonly security: ReadonlyArray<{ readonly [name: string]: unknown }>
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string; readonly required: boolean }>
  readonly requestBody?: Content
  readonly responses: { readonly [status: string]: Content }
}

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly schemas: { readonly [name: string]: Schema & { readonly description?: string } } }
}

export interface Endpoint {
  /** `GET /view/:view_id`. */
  readonly name: string
  readonly tag: string
  /** `optional`: where a secret is set. */
  readonly bearer: "none" | "optional" | "always"
  /** That the secret must have; undefined without a bearer. */
  readonly scope: string | undefined
  readonly summary: string
  readonly request: string
  readonly answers: ReadonlyArray<{ readonly status: string; readonly shape: string }>
  /** Codes that not every endpoint has. */
  readonly errors: ReadonlyArray<string>
  /** Codes that every endpoint has. */
  readonly everywhere: ReadonlyArray<string>
}

const apis: { readonly [which: string]: HttpApi.HttpApi.Any } = { ssp: SspApi, scheduler: SchedulerApi }
const documents = new Map<string, Document>()
const documentOf = (which: string): Document => {
  const known = documents.get(which) ?? (OpenApi.fromApi(apis[which] as never) as unknown as Document)
  documents.set(which, known)
  return known
}

const refName = ({ $ref }: Schema): string | undefined => $ref?.slice($ref.lastIndexOf("/") + 1)

/** Codes in the answers of one status. */
const codesIn = (schema: Schema): ReadonlyArray<string> =>
  [schema, ...(schema.anyOf ?? [])]
    .map(refName)
    .filter((name): name is string => name !== undefined && Object.hasOwn(Errors.statusOf, name))

/** A schema in a line: objects by their names, one level deep below the first. */
const shape = (schema: Schema, { components }: Document, depth = 0): string => {
  const name = refName(schema)
  const real = name === undefined ? schema : (components.schemas[name] ?? schema)
  if (real.anyOf !== undefined)
    return [
      ...new Set(
        real.anyOf
          .filter((one) => codesIn(one).length === 0)
          .map((one) => shape(one, { components } as Document, depth))
      )
    ].join(" or ")
  if (real.enum !== undefined) return real.enum.map((value) => JSON.stringify(value)).join("|")
  if (real.type === "array") return `[${shape(real.items ?? {}, { components } as Document, depth + 1)}]`
  if (real.type !== "object") return real.type ?? name ?? "any"
  if (real.properties === undefined || depth > 1) return name ?? "object"
  const required = new Set(real.required)
  return `{${Object.keys(real.properties)
    .map((key) => `${key}${required.has(key) ? "" : "?"}`)
    .join(", ")}}`
}

const schemasOf = ({ content }: Content): ReadonlyArray<Schema> =>
  Object.values(content ?? {}).map(({ schema }) => schema)

const requestOf = (operation: Operation, document: Document): string => {
  const query = operation.parameters
    .filter((parameter) => parameter.in === "query")
    .map(({ name, required }) => `${name}${required ? "" : "?"}`)
  const body =
    operation.requestBody === undefined ? [] : schemasOf(operation.requestBody).map((schema) => shape(schema, document))
  return [...body, ...(query.length === 0 ? [] : [`?${query.join("&")}`])].join(" ")
}

/** Shapes of what is no error, by status. */
const answersOf = (operation: Operation, document: Document) =>
  Object.entries(operation.responses).flatMap(([status, response]) => {
    const shapes = Object.entries(response.content ?? {})
      .map(([type, { schema }]) => (type === "application/json" ? shape(schema, document) : type))
      .filter((text) => text !== "")
    const faults = schemasOf(response).flatMap(codesIn)
    return faults.length > 0 && shapes.every((text) => faults.includes(text) || /^\{code, message/.test(text))
      ? []
      : [{ status, shape: shapes.join(" or ") }]
  })

export const endpoints = (which: "ssp" | "scheduler"): ReadonlyArray<Endpoint> => {
  const document = documentOf(which)
  const tags = (
    document as unknown as { readonly tags: ReadonlyArray<{ readonly name: string; readonly description?: string }> }
  ).tags
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`,
      tag: tags.find(({ name }) => name === operation.tags[0])?.description ?? operation.tags[0] ?? "",
      bearer:
        operation.security.length === 0
          ? ("none" as const)
          : operation.security.some((way) => Object.keys(way).length === 0)
            ? ("optional" as const)
            : ("always" as const),
      scope: operation.security.flatMap((way) => (way["bearer"] as ReadonlyArray<string> | undefined) ?? [])[0],
      summary: `${operation.summary}. ${operation.description}`,
      request: requestOf(operation, document),
      answers: answersOf(operation, document),
      errors: Object.values(operation.responses).flatMap((response) => schemasOf(response).flatMap(codesIn))
    }))
  )
  const everywhere = Object.keys(Errors.statusOf).filter((code) => all.every(({ errors }) => errors.includes(code)))
  return all.map((endpoint) => ({
    ...endpoint,
    everywhere,
    errors: endpoint.errors.filter((code) => !everywhere.includes(code))
  }))
}

/** Every code with status and meaning, as the contracts describe it; both describe the same. */
export const codes = (): ReadonlyArray<{
  readonly code: string
  readonly status: number
  readonly description: string
}> =>
  Object.entries(Errors.statusOf).map(([code, status]) => ({
    code,
    status,
    description:
      documentOf("ssp").components.schemas[code]?.description ??
      documentOf("scheduler").components.schemas[code]?.description ??
      ""
  }))
