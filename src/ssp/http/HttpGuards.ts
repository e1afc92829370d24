/**
 * What stands in front of the handlers: bearer and readiness, as values and as middlewares.
 *
 * As values too, because the hot route asks the same questions without a fiber; there is one answer to each.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, Layer } from "effect"
import { makeJudge } from "../../node/http/bearer.ts"
import { layerJsonBody } from "../../node/http/bodies.ts"
import * as Guard from "../../node/http/guard.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import { Bearer, Ready, SspApi } from "../../protocol/SspApi.ts"
import { registrationHeader } from "../../protocol/wire.ts"
import { SspConfig, type SspConfigShape } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import * as Errors from "./HttpErrors.ts"

/** What the hot route and the middleware judge by. */
export const judgeOf = ({ bearers }: Pick<SspConfigShape, "bearers">) => makeJudge(bearers, Errors.unauthorized)

const layerBearer = Layer.effect(
  Bearer,
  Effect.map(
    Effect.flatMap(Effect.all([SspConfig, Browsers]), ([config, { tokens }]) =>
      Guard.make(SspApi, judgeOf(config), tokens)
    ),
    (check) => Bearer.of({ bearer: () => check })
  )
)

/** Why this SSP does not take a call now: it is not ready, or another registration of it is meant. */
export const notTaking = (
  lifecycle: Pick<Lifecycle["Type"], "isMeant" | "phase">,
  registration: string | undefined
) => {
  const phase = lifecycle.phase()
  if (phase !== "ready") return Errors.notReady(phase)
  const named = registration !== undefined && /^\d{1,15}$/.test(registration) ? Number(registration) : undefined
  return lifecycle.isMeant(named) ? undefined : Errors.notMeant(named)
}

const layerReady = Layer.effect(
  Ready,
  Effect.map(Lifecycle, (lifecycle) =>
    Ready.of(
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
        const refused = notTaking(lifecycle, headers[registrationHeader])
        return refused === undefined ? Effect.void : Effect.fail(refused)
      })
    )
  )
)

const layerBody = Layer.unwrapEffect(Effect.map(SspConfig, ({ bodyLimitBytes }) => layerJsonBody(bodyLimitBytes)))

export const layer = Layer.mergeAll(layerBearer, layerReady, layerBody)
