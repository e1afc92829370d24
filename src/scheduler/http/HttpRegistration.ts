/** `POST /view/register` by callback where it says again what is known: no SSP is asked, and nothing is written. */
import { Effect, Layer } from "effect"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Repeated from "../../node/http/repeatedRegistrations.ts"
import { HotRepeats } from "../../ports/Front.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { aheadMs } from "../../ports/Turn.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as Views from "../pool/viewRequests.ts"

export const layerHot: Layer.Layer<HotRepeats, never, Pool | Repeated.UnderWay | SchedulerConfig> = Layer.effect(
  HotRepeats,
  Effect.gen(function* () {
    const pool = yield* Pool
    const { bearers } = yield* SchedulerConfig
    const { mayAnswer } = yield* Leadership
    const clock = yield* Effect.clock
    const route = Repeated.hot({
      api: SchedulerApi,
      nowMs: () => clock.unsafeCurrentTimeMillis(),
      judge: makeJudge(bearers, Errors.unauthorized),
      underWay: yield* Repeated.UnderWay,
      isTaking: mayAnswer,
      answer: (said, reply) => {
        // Another scheduler may lead since the request was let in.
        const known = mayAnswer() ? Views.known(pool.state(), said, aheadMs(clock)) : undefined
        if (known === undefined) return false
        reply.json({}, [Buffer.from(JSON.stringify(Views.placingOf(said.id, known, aheadMs(clock))))])
        return true
      }
    })
    return [route]
  })
)
