/** View calls that clients write into the database (D56), carried out by a scheduler. */
import { Effect, HashMap, Option } from "effect"
import * as Json from "../../core/surql/values/json.ts"
import { viewKey } from "../../core/view/viewId.ts"
import * as ViewCalls from "../../node/database/viewCalls.ts"
import type { PoolShape } from "./Pool.ts"
import * as Views from "./viewRequests.ts"

/** Error codes that may pass in a moment, with the trouble that the caller is told. */
const passing: { readonly [code: string]: "Overloaded" | "Away" } = {
  NO_SSP_AVAILABLE: "Away",
  OVERLOADED: "Overloaded",
  INTERNAL: "Overloaded"
}

const troubleOf = ({
  code,
  message
}: {
  readonly code: string
  readonly message: string
}): ViewCalls.CallTrouble | undefined => {
  const _tag = passing[code]
  return _tag === undefined ? undefined : { _tag, message }
}

const ownerOf = (pool: PoolShape, id: string): unknown => {
  const key = viewKey(id)
  const view = key === undefined ? undefined : Option.getOrUndefined(HashMap.get(pool.state().views, key))
  const body: unknown = view?.spec.body
  return typeof body === "object" && body !== null && "clientId" in body ? body.clientId : undefined
}

/** `maxBytes`: limit of a query and its parameters together. */
export const carryOut = (pool: PoolShape, maxBytes: number) =>
  ViewCalls.makeCarryOut<ViewCalls.CallTrouble>({
    maxBytes,
    ownerOf: (id) => ownerOf(pool, id),
    register: ({ clientId, params, surql, ttl, view }) => {
      const json = Json.toJson(params) as { readonly [name: string]: unknown }
      const registered = Views.register(pool, { id: view, surql, clientId, ttl, params: json })
      return Effect.catchAll(Effect.as(registered, undefined), (error) => {
        const trouble = troubleOf(error)
        return trouble === undefined ? Effect.succeed(wordsOf(error)) : Effect.fail(trouble)
      })
    },
    unregister: (view) =>
      Effect.catchAll(Effect.as(Views.unregister(pool, view), undefined), (error) =>
        error.code === "VIEW_NOT_FOUND"
          ? Effect.succeed(undefined)
          : Effect.fail(troubleOf(error) ?? { _tag: "Overloaded", message: error.message })
      )
  })

/** A refusal as one line, with the place in the query if known. */
const wordsOf = (error: { readonly message: string; readonly details?: unknown }): string => {
  const { details, message } = error
  if (Array.isArray(details))
    return `${message}: ${details.map(({ path, reason }: { path: string; reason: string }) => `${path} ${reason}`).join("; ")}`
  return typeof details === "object" && details !== null && "line" in details && "column" in details
    ? `${message} (line ${String(details.line)}, column ${String(details.column)})`
    : message
}
