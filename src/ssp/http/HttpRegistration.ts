/**
 * `POST /view/register`: decodes a view registration and its times (D14), whose faults a schema cannot word well.
 */
import { Effect, Either, Exit } from "effect"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import * as Answers from "../../node/http/answers.ts"
import * as Repeated from "../../node/http/repeatedRegistrations.ts"
import type { Call } from "../../node/http/routes.ts"
import * as Audit from "../../ports/Audit.ts"
import type * as Wire from "../../protocol/wire.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import { Views } from "../views/Views.ts"
import type { ViewRegistration } from "../viewTypes.ts"
import { mapErrors } from "./HttpErrors.ts"

type RegisterCall = Call & { readonly payload: typeof Wire.ViewRegistration.Type }

/** `nowMs`: used if `lastActiveAt` is absent. */
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

/** Adds warnings to an answer if the view does not follow each write (D57). */
export const withWarnings = Effect.map(
  Effect.all([Views, DeclaredTypes]),
  ([views, types]) =>
    <A extends object>(id: string, answer: A) => {
      const warnings = types.cautions(views.tablesOf(id))
      return warnings.length === 0 ? answer : { ...answer, warnings }
    }
)

/** The route; a registration that changes nothing is answered as a read, and not audited (D63). */
export const make = Effect.gen(function* () {
  const views = yield* Views
  const types = yield* DeclaredTypes
  const { assignments } = yield* Lifecycle
  const clock = yield* Effect.clock
  const audited = yield* Audit.make
  const warned = yield* withWarnings
  const nowMs = () => clock.unsafeCurrentTimeMillis()
  const registered = (call: RegisterCall) =>
    audited(
      call,
      call.payload.id
    )(
      Effect.flatMap(read(call.payload, nowMs()), (registration) =>
        mapErrors(assignments.register(views, registration))
      )
    )
  const answered = (answer: (call: RegisterCall) => ReturnType<typeof registered>) => (call: RegisterCall) =>
    Effect.flatMap(answer(call), (given) =>
      Effect.map(views.written(warned(call.payload.id, given), call.caller.sees), (pieces) => ({
        status: 200,
        headers: {},
        pieces
      }))
    )
  return {
    isWhole: true,
    attempt: Repeated.attempt({
      nowMs,
      known: (said, reply, pass) => {
        if (!views.isKnown(said)) return false
        // The view's rows as this caller may see them, with warnings.
        const answer = () =>
          pass(
            answered((call) =>
              // The view may have been replaced since the look began.
              views.isKnown(said)
                ? Effect.orElse(views.read(said.id, undefined), () => registered(call))
                : registered(call)
            )
          )
        if (types.cautions(views.tablesOf(said.id)).length > 0) {
          answer()
          return true
        }
        const abandon = views.look(said.id, { format: undefined, ifNoneMatch: undefined, sees: "kinds" }, (looked) => {
          // An answer with rows left out depends on the caller, so the repeated one is not shared.
          if (Exit.isFailure(looked) || looked.value.tag === undefined) answer()
          else reply.send({ status: 200, headers: {}, pieces: looked.value.pieces ?? [] })
        })
        if (abandon !== undefined) reply.whenGone(abandon)
        return true
      },
      register: answered(registered)
    })
  }
})
