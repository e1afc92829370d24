/**
 * What a scheduler makes of a call in the database (D56): the same as of `/view/register` and `/view/unregister`, for
 * the client whom the database has named.
 *
 * Whose view it is was asked there when the call was made; a view that has come since is asked here, so that of two
 * clients with one id the second gets nothing.
 */
import { Effect, HashMap, Option } from "effect"
import * as Json from "../../core/surql/values/json.ts"
import { viewKey } from "../../core/view/viewId.ts"
import type { CallTrouble } from "../../node/database/viewCalls.ts"
import type { ViewCall } from "../../ports/Upstream.ts"
import type { PoolShape } from "./Pool.ts"
import * as Views from "./viewRequests.ts"

const another = "this view belongs to another client"

/** What may be otherwise a moment later, and whether the call waits for it or is refused in the end. */
const passing: { readonly [code: string]: "Overloaded" | "Away" } = {
  NO_SSP_AVAILABLE: "Away",
  OVERLOADED: "Overloaded",
  INTERNAL: "Overloaded"
}

const troubleOf = ({ code, message }: { readonly code: string; readonly message: string }): CallTrouble | undefined => {
  const _tag = passing[code]
  return _tag === undefined ? undefined : { _tag, message }
}

const ownerOf = (pool: PoolShape, id: string): unknown => {
  const key = viewKey(id)
  const view = key === undefined ? undefined : Option.getOrUndefined(HashMap.get(pool.state().views, key))
  const body: unknown = view?.spec.body
  return typeof body === "object" && body !== null && "clientId" in body ? body.clientId : undefined
}

/** `maxBytes`: of a query and its parameters. */
export const carryOut =
  (pool: PoolShape, maxBytes: number) =>
  (call: ViewCall): Effect.Effect<string | undefined, CallTrouble> =>
    Effect.suspend(() => {
      const { clientId, op, surql, ttl, view } = call
      const owner = ownerOf(pool, view)
      if (owner !== undefined && owner !== clientId) return Effect.succeed(another)
      if (op === "unregister")
        return Effect.catchAll(Effect.as(Views.unregister(pool, view), undefined), (error) =>
          error.code === "VIEW_NOT_FOUND"
            ? Effect.succeed(undefined)
            : Effect.fail(troubleOf(error) ?? { _tag: "Overloaded", message: error.message })
        )
      const bytes = Buffer.byteLength(surql) + Buffer.byteLength(Json.stringify(call.params))
      if (bytes > maxBytes)
        return Effect.succeed(`query and parameters have ${bytes} bytes, more than ${maxBytes} (SVC_MAX_BODY_BYTES)`)
      const params = Json.toJson(call.params) as { readonly [name: string]: unknown }
      return Effect.catchAll(
        Effect.as(Views.register(pool, { id: view, surql, clientId, ttl, params }), undefined),
        (error) => {
          const trouble = troubleOf(error)
          return trouble === undefined ? Effect.succeed(wordsOf(error)) : Effect.fail(trouble)
        }
      )
    })

/** A refusal as one line, with the place in the query where it has one. */
const wordsOf = (error: { readonly message: string; readonly details?: unknown }): string => {
  const { details, message } = error
  if (Array.isArray(details))
    return `${message}: ${details.map(({ path, reason }: { path: string; reason: string }) => `${path} ${reason}`).join("; ")}`
  return typeof details === "object" && details !== null && "line" in details && "column" in details
    ? `${message} (line ${String(details.line)}, column ${String(details.column)})`
    : message
}
