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
import { Audit, addressOf, unknownAddress } from "../../ports/Audit.ts"
import type { Answer } from "../../ports/Front.ts"
import { accessOf, type Caller, type Declaring, scopeOf, takingTokens } from "../../protocol/access.ts"
import { toAnswer } from "./answers.ts"
import type { Judged, makeJudge } from "./bearer.ts"
import { callerByTicket, callerOf, type ViewTokens } from "./viewTokens.ts"

/** A browser's own `EventSource` asks for it, and can send no header. */
const streamOfOne = "GET /view/:view_id/stream"

/** For the bearer middleware of an Api; without `tokens` none is taken. */
export const make = (api: Declaring, judge: ReturnType<typeof makeJudge>, tokens?: ViewTokens) => {
  const access = accessOf(api)
  const takesTokens = takingTokens(api)
  /** Of a token or ticket, if one is given where they are taken. */
  const byToken = (
    asked: string,
    { headers: { authorization }, url }: HttpServerRequest.HttpServerRequest,
    view: string | undefined
  ): Judged | undefined => {
    if (tokens === undefined || !takesTokens.has(asked)) return undefined
    return authorization === undefined && asked === streamOfOne
      ? callerByTicket(tokens, url, view)
      : callerOf(tokens, authorization, view)
  }
  return Effect.map(Audit, ({ turnedAway }) =>
    Effect.flatMap(
      Effect.all([HttpServerRequest.HttpServerRequest, HttpRouter.RouteContext]),
      ([request, { params, route }]) => {
        const asked = `${route.method} ${route.path}`
        const scope = access.get(asked)
        if (scope === undefined || scope === "open")
          return Effect.dieMessage(`broken invariant: ${asked} asks for a secret and declares no scope`)
        const { authorization } = request.headers
        const judged = byToken(asked, request, params["view_id"]) ?? judge(authorization, scope)
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
  Effect.map(makeHotCaller(api, asked, judge), (callerOf) => (authorization: string | undefined, address?: string) => {
    const caller = callerOf(authorization, address)
    return "status" in caller ? caller : undefined
  })

/** The same, answering the caller who is let in; by a token where `tokens` are given. */
export const makeHotCaller = (
  api: Declaring,
  asked: string,
  judge: ReturnType<typeof makeJudge>,
  tokens?: ViewTokens
) =>
  Effect.map(Effect.all([Audit, Effect.runtime<never>()]), ([{ turnedAway }, runtime]) => {
    const scope = scopeOf(api, asked)
    const runFork = Runtime.runFork(runtime)
    return (authorization: string | undefined, address = unknownAddress): Caller["Type"] | Answer => {
      const judged = (tokens && callerOf(tokens, authorization, undefined)) ?? judge(authorization, scope)
      if ("caller" in judged) return judged.caller
      runFork(turnedAway({ object: asked, secret: judged.name, address, outcome: judged.turned.code }))
      return toAnswer(judged.turned)
    }
  })
