/**
 * The guard before every handler: reads what the endpoint declares, judges the caller, and names the caller (D15); a
 * caller that is turned away is an audit line (D53).
 *
 * Shared by both servers. It knows its endpoint by the route that was found, so an endpoint cannot be guarded by the
 * scope of another.
 */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, Runtime } from "effect"
import { Audit, addressOf, unknownAddress } from "../ports/Audit.ts"
import type { Answer } from "../ports/Front.ts"
import { accessOf, type Declaring, scopeOf } from "../protocol/access.ts"
import type { makeJudge } from "./bearer.ts"
import { toAnswer } from "./httpAnswers.ts"

/** For the bearer middleware of an Api. */
export const make = (api: Declaring, judge: ReturnType<typeof makeJudge>) => {
  const access = accessOf(api)
  return Effect.map(Audit, ({ turnedAway }) =>
    Effect.flatMap(
      Effect.all([HttpServerRequest.HttpServerRequest, HttpRouter.RouteContext]),
      ([request, { route }]) => {
        const asked = `${route.method} ${route.path}`
        const scope = access.get(asked)
        if (scope === undefined || scope === "open")
          return Effect.dieMessage(`broken invariant: ${asked} asks for a secret and declares no scope`)
        const judged = judge(request.headers["authorization"], scope)
        if ("caller" in judged) return Effect.succeed(judged.caller)
        return Effect.zipRight(
          turnedAway({ object: asked, secret: judged.name, address: addressOf(request), outcome: judged.turned.code }),
          Effect.fail(judged.turned)
        )
      }
    )
  )
}

/**
 * For a hot route, which has no fiber: judges the caller; a caller that is turned away gets an audit line and an
 * answer.
 */
export const makeHot = (api: Declaring, asked: string, judge: ReturnType<typeof makeJudge>) =>
  Effect.map(Effect.all([Audit, Effect.runtime<never>()]), ([{ turnedAway }, runtime]) => {
    const scope = scopeOf(api, asked)
    const runFork = Runtime.runFork(runtime)
    return (authorization: string | undefined, address = unknownAddress): Answer | undefined => {
      const judged = judge(authorization, scope)
      if ("caller" in judged) return undefined
      runFork(turnedAway({ object: asked, secret: judged.name, address, outcome: judged.turned.code }))
      return toAnswer(judged.turned)
    }
  })
