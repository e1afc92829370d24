/**
 * A view registration from the wire, its times read (D14): the last part of a body that a schema cannot word well; and
 * by callback those that say again what is known.
 */
import { Clock, Effect, Either, Layer } from "effect"
import * as SaidAgain from "../../core/view/saidAgain.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import * as Answers from "../../node/http/answers.ts"
import * as Repeated from "../../node/http/repeatedRegistrations.ts"
import * as Audit from "../../ports/Audit.ts"
import { HotRepeats } from "../../ports/Front.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import type * as Wire from "../../protocol/wire.ts"
import { SspConfig } from "../Config.ts"
import * as Assigned from "../membership/assigned.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import { Views } from "../views/Views.ts"
import type { ViewRegistration } from "../viewTypes.ts"
import { mapped } from "./HttpErrors.ts"
import * as Guards from "./HttpGuards.ts"

/** `nowMs` stands in for an absent `lastActiveAt`. */
const read = (
  wire: typeof Wire.ViewRegistration.Type,
  nowMs: number
): Either.Either<ViewRegistration, ReturnType<typeof Answers.invalidRequest>> => {
  const times = ViewTimes.read(wire, nowMs)
  if (Either.isLeft(times)) return Either.left(Answers.invalidRequest(times.left))
  const { lastActiveAtMs, ttlMs } = times.right
  return Either.right({
    id: wire.id,
    surql: wire.surql,
    clientId: wire.clientId,
    ttlMs,
    params: wire.params ?? null,
    lastActiveAtMs,
    format: wire.format ?? null,
    ...(wire.assignment === undefined ? {} : { assignment: wire.assignment })
  })
}

/** Registers as a body asks; one that changes nothing is read, and is no line of the audit (D63). */
export const handler = Effect.gen(function* () {
  const views = yield* Views
  const { assignments } = yield* Lifecycle
  const underWay = yield* Repeated.UnderWay
  const audited = yield* Audit.make(SspApi)
  return (payload: typeof Wire.ViewRegistration.Type) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const said = SaidAgain.read(payload, now)
      const register = audited(payload.id)(
        Effect.flatMap(read(payload, now), (registration) =>
          mapped(Assigned.register(views, assignments, registration))
        )
      )
      const known = (again: SaidAgain.Said) =>
        views.isKnown(again) ? Effect.orElse(views.read(payload.id, undefined), () => register) : undefined
      return underWay.once(said, known, register)
    })
})

type Needs = Views | DeclaredTypes | Lifecycle | Repeated.UnderWay | SspConfig

export const layerHot: Layer.Layer<HotRepeats, never, Needs> = Layer.effect(
  HotRepeats,
  Effect.gen(function* () {
    const views = yield* Views
    const types = yield* DeclaredTypes
    const lifecycle = yield* Lifecycle
    const clock = yield* Effect.clock
    const route = Repeated.hot({
      api: SspApi,
      nowMs: () => clock.unsafeCurrentTimeMillis(),
      judge: Guards.judgeOf(yield* SspConfig),
      underWay: yield* Repeated.UnderWay,
      isTaking: (registration) => Guards.notTaking(lifecycle, registration) === undefined,
      answer: (said, reply) => {
        if (!views.isKnown(said) || types.cautions(views.tablesOf(said.id)).length > 0) return false
        const abandon = views.look(said.id, undefined, undefined, (looked) => {
          if (looked?.pieces === undefined) reply.pass()
          else reply.json({}, looked.pieces)
        })
        if (typeof abandon === "function") reply.whenGone(abandon)
        return abandon !== false
      }
    })
    return [route]
  })
)
