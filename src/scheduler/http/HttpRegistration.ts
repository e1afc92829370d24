/** `POST /view/register`: where it says again what is known no SSP is asked, and nothing is written. */
import { Effect } from "effect"
import * as RepeatedRegistration from "../../core/view/repeatedRegistration.ts"
import { plain } from "../../node/http/answers.ts"
import * as Repeated from "../../node/http/repeatedRegistrations.ts"
import type { Call } from "../../node/http/routes.ts"
import * as Audit from "../../ports/Audit.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { aheadMs } from "../../ports/Turn.ts"
import type * as Wire from "../../protocol/wire.ts"
import { Pool } from "../pool/Pool.ts"
import * as Views from "../pool/viewRequests.ts"

export const make = Effect.gen(function* () {
  const pool = yield* Pool
  const { mayAnswer } = yield* Leadership
  const clock = yield* Effect.clock
  const underWay = yield* Repeated.UnderWay
  const audited = yield* Audit.make
  const nowMs = () => clock.unsafeCurrentTimeMillis()
  const placingOf = (id: string, at: Parameters<typeof Views.placingOf>[1]) => Views.placingOf(id, at, aheadMs(clock))
  const knownAt = (said: RepeatedRegistration.ParsedRegistration) => Views.known(pool.state(), said, aheadMs(clock))
  return {
    isWhole: true,
    first: Repeated.first({
      nowMs,
      underWay,
      answer: (said, reply) => {
        // Another scheduler may lead since the request was let in.
        const known = mayAnswer() ? knownAt(said) : undefined
        if (known !== undefined) reply.send(plain(placingOf(said.id, known)))
        return known !== undefined
      }
    }),
    value: (call: Call & { readonly payload: typeof Wire.ViewRegistration.Type }) => {
      const { payload } = call
      const known = (again: RepeatedRegistration.ParsedRegistration) => {
        const at = knownAt(again)
        return at && Effect.succeed(at)
      }
      const register = audited(call, payload.id)(Views.register(pool, payload))
      const placing = underWay.once(RepeatedRegistration.read(payload, nowMs()), known, register)
      return Effect.map(placing, (placed) => placingOf(payload.id, placed))
    }
  }
})
