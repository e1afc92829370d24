/**
 * A view registration from the wire, its times read (D14): the last part of a body that a schema cannot word well.
 */
import { Either } from "effect"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import * as Answers from "../../node/httpAnswers.ts"
import type * as Wire from "../../protocol/wire.ts"
import type { ViewRegistration } from "../views/viewTypes.ts"

/** `nowMs` stands in for an absent `lastActiveAt`. */
export const read = (
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
