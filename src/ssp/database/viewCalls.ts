/** View calls that clients write into the database (D56), carried out by a standalone SSP. */
import { Clock, Effect, Either } from "effect"
import * as Json from "../../core/surql/values/json.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import * as ViewCalls from "../../node/database/viewCalls.ts"
import type { ViewCall } from "../../ports/Upstream.ts"
import type { Views } from "../views/Views.ts"
import type { Overloaded, StoreFailed } from "../viewTypes.ts"

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

/** `maxBytes`: limit of a query and its parameters together. */
export const carryOut = (views: Views["Type"], maxBytes: number) =>
  ViewCalls.makeCarryOut({
    maxBytes,
    ownerOf: (view) => views.clientOf(view),
    register: (call) => register(views, call),
    unregister: (view) => Effect.as(views.unregister(view), undefined)
  })
