/**
 * What stands in front of the handlers: bearer, readiness, and the reading of bodies, as values and as middlewares.
 *
 * As values too, because the hot route asks the same questions without a fiber; there is one answer to each.
 */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Either, Effect, Layer, Redacted } from "effect"
import * as JsonDepth from "../core/jsonDepth.ts"
import { RequestBody } from "../ports/RequestBody.ts"
import { Bearer, JsonBody, Ready } from "../protocol/SspApi.ts"
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

/** A body's text as JSON, its depth checked. */
export const parseJson = (text: string): Either.Either<unknown, ReturnType<typeof Errors.invalidRequest>> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const reason = text.trim() === "" ? "is empty; must be JSON" : `is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : ""}`
    return Either.left(Errors.invalidRequest([{ path: "", reason }]))
  }
  return JsonDepth.tooDeep(value) ? Either.left(Errors.tooDeep) : Either.right(value)
}

const layerBearer = Layer.effect(
  Bearer,
  Effect.map(SspConfig, (config) => {
    const authorized = makeAuthorized(config)
    const check = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => (authorized(request.headers["authorization"]) ? Effect.void : Effect.fail(Errors.unauthorized)))
    return Bearer.of({ bearer: () => check })
  })
)

const layerReady = Layer.effect(
  Ready,
  Effect.map(Lifecycle, (lifecycle) =>
    Ready.of(Effect.suspend(() => {
      const phase = lifecycle.phase()
      return phase === "ready" ? Effect.void : Effect.fail(Errors.notReady(phase))
    })))
)

/** The request as its handler sees it: the body already read, and JSON whatever the content type said. */
const withJson = (request: HttpServerRequest.HttpServerRequest, value: unknown): HttpServerRequest.HttpServerRequest =>
  Object.create(request, {
    json: { value: Effect.succeed(value) },
    headers: { value: { ...request.headers, "content-type": "application/json" } }
  }) as HttpServerRequest.HttpServerRequest

const layerJsonBody = Layer.effect(
  JsonBody,
  Effect.gen(function*() {
    const { bodyLimitBytes } = yield* SspConfig
    const body = yield* RequestBody
    return JsonBody.of(Effect.gen(function*() {
      const request = yield* HttpServerRequest.HttpServerRequest
      const text = yield* Effect.mapError(body.text(request, bodyLimitBytes), (error) => Errors.fromBody(error, bodyLimitBytes))
      return withJson(request, yield* parseJson(text))
    }))
  })
)

export const layer = Layer.mergeAll(layerBearer, layerReady, layerJsonBody)

/** Catches whatever is left; see {@link Errors.answerCause}. */
export const answerEverything = (allow: (path: string) => ReadonlyArray<string>) => (app: HttpApp.Default): HttpApp.Default => Effect.catchAllCause(app, (cause) => Errors.answerCause(cause, allow))
