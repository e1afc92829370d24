/**
 * A scheduler that does not lead any more, or may not, answers 503 `NOT_LEADER`: what it knows may be old.
 * Looked at before the request is carried out, and again before it is answered: another may have taken over meanwhile.
 *
 * Only what its operator asks about this process itself is still answered.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect } from "effect"
import { respond, toAnswer } from "../../node/http/answers.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import * as Errors from "../HttpErrors.ts"

const own = /^\/(?:livez|metrics|progress)(?:\?|$)/

const away = Effect.succeed(respond(toAnswer(Errors.notLeader)))

/** Around all routes. */
export const make = Effect.map(
  Leadership,
  ({ mayAnswer }) =>
    <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
        if (own.test(url)) return app
        if (!mayAnswer()) return away
        return Effect.flatMap(Effect.either(app), (answer) => (mayAnswer() ? answer : away))
      })
)
