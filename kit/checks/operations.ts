/**
 * The operations of a running node as its OpenAPI document has them, each with the examples to ask it with.
 *
 * Why read from the document: a walk over every endpoint takes in a new one by itself.
 */
import { secret } from "../processes/Door.ts"
import type { Answer } from "./http.ts"

interface Content {
  readonly [type: string]: {
    readonly example?: unknown
    readonly examples?: { readonly [name: string]: { readonly value: unknown } }
  }
}

export interface Operation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly example?: unknown
  }>
  readonly requestBody?: { readonly content: Content }
  readonly responses: { readonly [status: string]: { readonly content?: Content } }
}

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Omit<Operation, "method" | "path"> } }
}

export const operationsOf = (document: unknown): ReadonlyArray<Operation> =>
  Object.entries((document as Document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path }))
  )

export const examplesIn = (content: Content | undefined): ReadonlyArray<unknown> =>
  Object.values(content ?? {}).flatMap((one) =>
    "example" in one ? [one.example] : Object.values(one.examples ?? {}).map(({ value }) => value)
  )

/** Bodies to send: those of the examples, or none at all. */
export const bodiesOf = ({ requestBody }: Operation): ReadonlyArray<unknown> =>
  requestBody === undefined ? [undefined] : examplesIn(requestBody.content)

/** Path with the examples of its parameters, and in the query those that must be there, or all that have one. */
export const pathOf = ({ parameters, path }: Operation, all = false): string => {
  const query = new URLSearchParams(
    parameters
      .filter((one) => one.in === "query" && (one.required || (all && one.example !== undefined)))
      .map(({ example, name }) => [name, String(example)] as [string, string])
  )
  return (
    parameters
      .filter((one) => one.in === "path")
      .reduce((text, { example, name }) => text.replace(`{${name}}`, encodeURIComponent(String(example))), path) +
    (query.size === 0 ? "" : `?${query}`)
  )
}

/** As long as another request may take. */
const beginsWithinMs = 60_000

/** A stream goes on for ever: its beginning. */
export const begunStream = async (url: string, path: string, body: unknown): Promise<Answer> => {
  const abort = new AbortController()
  const late = setTimeout(() => abort.abort(new Error(`${path} has not begun in time`)), beginsWithinMs)
  try {
    const answer = await fetch(url + path, {
      headers: { authorization: `Bearer ${secret}` },
      signal: abort.signal,
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
    })
    const { value } = await answer.body!.getReader().read()
    return {
      status: answer.status,
      headers: { "content-type": answer.headers.get("content-type") ?? "" },
      text: new TextDecoder().decode(value),
      json: undefined
    }
  } finally {
    clearTimeout(late)
    abort.abort()
  }
}
