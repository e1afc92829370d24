/**
 * The guard before every handler: reads what the endpoint declares, judges the caller, and says who it is (D15).
 *
 * Shared by both servers. It knows its endpoint by the route that was found, so an endpoint cannot be guarded by the scope of another.
 */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect } from "effect"
import { accessOf, type Declaring } from "../protocol/access.ts"
import type { makeJudge } from "./bearer.ts"

/** For the bearer middleware of an Api. */
export const make = (api: Declaring, judge: ReturnType<typeof makeJudge>) => {
  const access = accessOf(api)
  return Effect.flatMap(Effect.all([HttpServerRequest.HttpServerRequest, HttpRouter.RouteContext]), ([{ headers }, { route }]) => {
    const asked = `${route.method} ${route.path}`
    const scope = access.get(asked)
    if (scope === undefined || scope === "open") return Effect.dieMessage(`broken invariant: ${asked} asks for a secret and declares no scope`)
    const judged = judge(headers["authorization"], scope)
    return "caller" in judged ? Effect.succeed(judged.caller) : Effect.fail(judged.turned)
  })
}
