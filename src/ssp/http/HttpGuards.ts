/** Guards of an SSP's routes, as its contract declares them: bearer and readiness. */
import { Effect } from "effect"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Guard from "../../node/http/guard.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import type { IncomingRequest } from "../../ports/Front.ts"
import { Bearer, Ready } from "../../protocol/SspApi.ts"
import { registrationHeader } from "../../protocol/wire.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import * as Errors from "./HttpErrors.ts"

/** Why this SSP refuses a call now: it is not ready, or the call is for another registration. */
const refusalOf = (lifecycle: Pick<Lifecycle["Type"], "isMeant" | "phase">, registration: string | undefined) => {
  const phase = lifecycle.phase()
  if (phase !== "ready") return Errors.notReady(phase)
  const named = registration !== undefined && /^\d{1,15}$/.test(registration) ? Number(registration) : undefined
  return lifecycle.isMeant(named) ? undefined : Errors.otherRegistration(named)
}

export const make = Effect.gen(function* () {
  const { bearers } = yield* SspConfig
  const { tokens } = yield* Browsers
  const lifecycle = yield* Lifecycle
  return {
    guards: { [Bearer.key]: Guard.make(makeJudge(bearers, Errors.unauthorized), tokens) },
    gates: { [Ready.key]: ({ headers }: IncomingRequest) => refusalOf(lifecycle, headers[registrationHeader]) }
  }
})
