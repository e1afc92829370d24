/**
 * What stands in front of the handlers: bearer and readiness, as values and as middlewares.
 *
 * As values too, because the hot route asks the same questions without a fiber; there is one answer to each.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, Layer, Redacted } from "effect"
import { layerJsonBody } from "../ports/httpBodies.ts"
import { Bearer, Ready } from "../protocol/SspApi.ts"
import { registrationHeader } from "../protocol/wire.ts"
import { SspConfig, type SspConfigShape } from "./Config.ts"
import * as Errors from "./HttpErrors.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Takes the same time wherever the first difference is; how long the wrong guess was may show. */
const sameText = (given: string, expected: string): boolean => {
  let difference = given.length ^ expected.length
  for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ expected.charCodeAt(i % expected.length)
  return difference === 0
}

/** `Bearer <secret>`, the scheme in any letter case, one or more blanks. Without a secret nobody is let in (D15). */
export const makeAuthorized = (config: Pick<SspConfigShape, "authSecret">): (authorization: string | undefined) => boolean => {
  const expected = config.authSecret === undefined ? undefined : Redacted.value(config.authSecret)
  const scheme = /^bearer +/i
  return (authorization) => {
    if (expected === undefined || authorization === undefined) return false
    const match = scheme.exec(authorization)
    return match !== null && sameText(authorization.slice(match[0].length).trimEnd(), expected)
  }
}

const layerBearer = Layer.effect(
  Bearer,
  Effect.map(SspConfig, (config) => {
    const authorized = makeAuthorized(config)
    const check = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => (authorized(request.headers["authorization"]) ? Effect.void : Effect.fail(Errors.unauthorized)))
    return Bearer.of({ bearer: () => check })
  })
)

/** Why this SSP does not take a call now: it is not ready, or another registration of it is meant. */
export const notTaking = (lifecycle: Pick<Lifecycle["Type"], "isMeant" | "phase">, registration: string | undefined) => {
  const phase = lifecycle.phase()
  if (phase !== "ready") return Errors.notReady(phase)
  const named = registration !== undefined && /^\d{1,15}$/.test(registration) ? Number(registration) : undefined
  return lifecycle.isMeant(named) ? undefined : Errors.notMeant(named)
}

const layerReady = Layer.effect(
  Ready,
  Effect.map(Lifecycle, (lifecycle) =>
    Ready.of(Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
      const refused = notTaking(lifecycle, headers[registrationHeader])
      return refused === undefined ? Effect.void : Effect.fail(refused)
    })))
)

const layerBody = Layer.unwrapEffect(Effect.map(SspConfig, ({ bodyLimitBytes }) => layerJsonBody(bodyLimitBytes)))

export const layer = Layer.mergeAll(layerBearer, layerReady, layerBody)
