/**
 * An OpenAPI document as the outbox needs it: which paths take POST, and the schema of each one's JSON body, as JSON
 * Schema 2020-12.
 *
 * References to other files are resolved before; references within the document are followed outside of schemas, and
 * left to the validator inside them, because schemas may be recursive.
 */
import { Either } from "effect"
import { isMapping, type Mapping } from "../core/typeGuards.ts"
import * as DynamicRefs from "./dynamicRefs.ts"
import * as OpenApi30 from "./openApi30.ts"

/** A path that takes POST. */
export interface Route {
  /** The path as the document has it: `/users/{id}/mail`. */
  readonly path: string
  /** JSON pointer to the schema of the body; undefined if the route has no body. */
  readonly schema: string | undefined
}

/** A document with its routes. */
export interface ApiDocument {
  readonly content: Mapping
  readonly routes: ReadonlyArray<Route>
}

const escaped = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1")
const unescaped = (step: string): string => {
  const text = step.replaceAll("~1", "/").replaceAll("~0", "~")
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The value at a JSON pointer (`#/a/b`); undefined if there is none. */
export const at = (content: Mapping, pointer: string): unknown => {
  let found: unknown = content
  for (const step of pointer
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")) {
    if (Array.isArray(found)) found = (found as ReadonlyArray<unknown>)[Number(step)]
    else found = isMapping(found) && Object.hasOwn(found, unescaped(step)) ? found[unescaped(step)] : undefined
  }
  return found
}

/** The end of a chain of references. */
const resolved = (content: Mapping, pointer: string): { readonly pointer: string; readonly value: unknown } => {
  let place = pointer
  for (let i = 0; i < 20; i++) {
    const value = at(content, place)
    if (!isMapping(value) || typeof value["$ref"] !== "string" || !value["$ref"].startsWith("#"))
      return { pointer: place, value }
    place = value["$ref"]
  }
  return { pointer: place, value: undefined }
}

const isJson = (type: string): boolean =>
  /^(?:application\/(?:[\w.+-]+\+)?json|application\/\*|\*\/\*)\s*(?:;|$)/i.test(type)

/** Prefers `application/json` to wildcard types that include it. */
const bodySchema = (content: Mapping, operation: string): string | undefined => {
  const body = resolved(content, `${operation}/requestBody`)
  const types = isMapping(body.value) ? body.value["content"] : undefined
  if (!isMapping(types)) return undefined
  const type = Object.hasOwn(types, "application/json") ? "application/json" : Object.keys(types).find(isJson)
  if (type === undefined) return undefined
  const media = resolved(content, `${body.pointer}/content/${escaped(type)}`)
  return isMapping(media.value) && Object.hasOwn(media.value, "schema") ? `${media.pointer}/schema` : undefined
}

/** Reads a document. Left: why it is no OpenAPI 3.0 or 3.1 document. */
export const read = (given: unknown): Either.Either<ApiDocument, string> => {
  if (!isMapping(given)) return Either.left("is no OpenAPI document: it must be a mapping")
  const version = given["openapi"]
  if (typeof version !== "string" || !/^3\.[01](?:\.|$)/.test(version))
    return Either.left(`is no OpenAPI 3.0 or 3.1 document: its key openapi is ${JSON.stringify(version)}`)
  const old = version.startsWith("3.0")
  const content = old ? structuredClone(given) : DynamicRefs.withoutDynamicRefs(given)
  const paths = content["paths"]
  if (!isMapping(paths)) return Either.left("has no paths")
  const routes: Array<Route> = []
  for (const path of Object.keys(paths)) {
    const item = resolved(content, `#/paths/${escaped(path)}`)
    if (!isMapping(item.value) || !isMapping(item.value["post"])) continue
    routes.push({ path, schema: bodySchema(content, `${item.pointer}/post`) })
  }
  if (old)
    OpenApi30.convertFrom(
      routes.map(({ schema }) => (schema === undefined ? undefined : at(content, schema))),
      (pointer) => at(content, pointer)
    )
  return Either.right({ content, routes })
}

const pattern = (path: string): RegExp =>
  new RegExp(
    `^${path
      .split(/\{[^{}]*\}/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^/{}?#]+")}$`
  )

/** The route of a call's path: the one with this very path, else the first whose parameters it fills in. */
export const match = (document: ApiDocument, path: string): Route | undefined =>
  path.includes("{")
    ? undefined
    : (document.routes.find((route) => route.path === path) ??
      document.routes.find((route) => route.path.includes("{") && pattern(route.path).test(path)))
