/** `POST /view/register`: a registration that changes nothing is answered here, without an SSP and without a write. */
import { Effect } from "effect"
import { plainJson } from "../../node/http/answers.ts"
import * as Repeated from "../../node/http/repeatedRegistrations.ts"
import type { Call } from "../../node/http/routes.ts"
import * as Audit from "../../ports/Audit.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { steadyAheadMs } from "../../ports/Turn.ts"
import type * as Wire from "../../protocol/wire.ts"
import { Pool } from "../pool/Pool.ts"
import * as Views from "../pool/viewRequests.ts"

export const make = Effect.gen(function* () {
  const pool = yield* Pool
  const { mayAnswer } = yield* Leadership
  const clock = yield* Effect.clock
  const audited = yield* Audit.make
  const placed = (id: string, at: Parameters<typeof Views.placementBody>[1]) =>
    plainJson(Views.placementBody(id, at, steadyAheadMs(clock)))
  return {
    isWhole: true,
    attempt: Repeated.attempt({
      nowMs: () => clock.unsafeCurrentTimeMillis(),
      known: (registration, reply) => {
        // Another scheduler may lead since the guard was passed.
        const known = mayAnswer()
          ? Views.unchangedAssignment(pool.state(), registration, steadyAheadMs(clock))
          : undefined
        if (known !== undefined) reply.send(placed(registration.id, known))
        return known !== undefined
      },
      register: (call: Call & { readonly payload: typeof Wire.ViewRegistration.Type }) => {
        const { payload } = call
        return Effect.map(audited(call, payload.id)(Views.register(pool, payload)), (at) => placed(payload.id, at))
      }
    })
  }
})
