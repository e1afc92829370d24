/**
 * For which SSP a caller may speak (D54): a secret that is named after an SSP belongs to that SSP alone.
 *
 * So that a thief of the secret of one SSP cannot take the place of another, end it, or decide its jobs. A caller with
 * the one secret of the specification, or of an open scheduler, speaks for all, as the specification has it.
 */
import { Effect } from "effect"
import { shown } from "../../core/shown.ts"
import type { Call } from "../../node/http/routes.ts"
import { Audit, unknownAddress } from "../../ports/Audit.ts"

export const forbidden = (name: string, ssp: string) => ({
  code: "FORBIDDEN" as const,
  message: `the secret ${shown(name)} speaks for the SSP of that name alone, not for ${shown(ssp)} (setting SVC_AUTH_SECRETS)`
})

/** Goes on where the caller may speak for `ssp`; else an audit line and 403. */
export const make = Effect.map(
  Audit,
  ({ turnedAway }) =>
    ({ asked: { address = unknownAddress }, caller: { name, onlySsp } }: Call, ssp: string) =>
      onlySsp === undefined || onlySsp === ssp
        ? Effect.void
        : Effect.zipRight(
            turnedAway({ object: `SSP ${ssp}`, secret: name, address, outcome: "FORBIDDEN" }),
            Effect.fail(forbidden(name, ssp))
          )
)
