/**
 * What a standalone SSP makes of a call in the database (D56): the same as of `/view/register` and `/view/unregister`,
 * for the client whom the database has named.
 *
 * Whose view it is was asked there when the call was made; a view that has come since is asked here, so that of two
 * clients with one id the second gets nothing.
 */
import { Clock, Effect, Either } from "effect"
import * as Json from "../../core/surql/values/json.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import type { ViewCall } from "../../ports/Upstream.ts"
import type { Views } from "../views/Views.ts"
import type { Overloaded, StoreFailed } from "../viewTypes.ts"

const another = "this view belongs to another client"

const register = (
  views: Views["Type"],
  { clientId, params, surql, ttl, view }: ViewCall
): Effect.Effect<string | undefined, Overloaded | StoreFailed> =>
  Effect.gen(function* () {
    const times = ViewTimes.read({ ttl }, yield* Clock.currentTimeMillis)
    if (Either.isLeft(times)) return times.left.map(({ path, reason }) => `${path} ${reason}`).join("; ")
    const json = Json.toJson(params) as { readonly [name: string]: unknown }
    return yield* views.register({ id: view, surql, clientId, params: json, format: null, ...times.right }).pipe(
      Effect.as(undefined),
      Effect.catchTags({
        // An SSP that reads its database holds every table.
        TablesJoining: Effect.die,
        QueryRefused: ({ column, line, message }) => Effect.succeed(`${message} (line ${line}, column ${column})`),
        ViewQuarantined: ({ ends }) =>
          Effect.succeed(`the query is quarantined, the process ended ${ends} times while it evaluated it`)
      })
    )
  })

/** `maxBytes`: of a query and its parameters. */
export const carryOut =
  (views: Views["Type"], maxBytes: number) =>
  (call: ViewCall): Effect.Effect<string | undefined, Overloaded | StoreFailed> =>
    Effect.suspend(() => {
      const owner = views.clientOf(call.view)
      if (owner !== undefined && owner !== call.clientId) return Effect.succeed(another)
      if (call.op === "unregister") return Effect.as(views.unregister(call.view), undefined)
      const bytes = Buffer.byteLength(call.surql) + Buffer.byteLength(Json.stringify(call.params))
      return bytes > maxBytes
        ? Effect.succeed(`query and parameters have ${bytes} bytes, more than ${maxBytes} (SVC_MAX_BODY_BYTES)`)
        : register(views, call)
    })
