/**
 * Authorization of a caller to act as an SSP (D54): a secret that is named after an SSP belongs to that SSP alone.
 *
 * A thief of the secret of one SSP can therefore not register, deregister or decide jobs as another. A caller with
 * the one secret of the specification, or any caller of an open scheduler, may act as every SSP, as specified.
 */
import { Effect } from "effect"
import { shown } from "../../core/shown.ts"
import type { Call } from "../../node/http/routes.ts"
import { Audit, unknownAddress } from "../../ports/Audit.ts"

export const forbidden = (name: string, ssp: string) => ({
  code: "FORBIDDEN" as const,
  message: `the secret ${shown(name)} speaks for the SSP of that name alone, not for ${shown(ssp)} (setting SVC_AUTH_SECRETS)`
})

/** Succeeds if the caller may act as `ssp`; otherwise writes an audit line and fails with 403 `FORBIDDEN`. */
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
