/**
 * Streams of several views that a scheduler opens at an SSP for a client that it has let in by itself.
 *
 * So the scheduler's own secret goes along, and only where it may be heard (D15): without it the SSP would refuse, so
 * there is no call at all.
 */
import { Duration, Effect, type Redacted } from "effect"
import { bearerOf } from "../../node/bearer.ts"
import { type Options, type SspClientShape, SspUnreachable } from "../../ports/SspClient.ts"
import { json, type Transport } from "./httpSend.ts"
import type { Judged } from "./judge.ts"
import { silence } from "./sspPass.ts"

const headersOf = (secret: Redacted.Redacted<string> | undefined): { readonly [name: string]: string } =>
  secret === undefined ? { "content-type": json } : { "content-type": json, authorization: bearerOf(secret) }

export const opener =
  (
    { open }: Pick<Transport, "open">,
    judge: (url: string) => Effect.Effect<Judged>,
    { secret, timeoutMs }: Pick<Options, "secret" | "timeoutMs">
  ): SspClientShape["openStream"] =>
  ({ ssp, url }, body, heard) =>
    Effect.flatMap(judge(url), ({ addresses, mayHear, refused }) => {
      const own = secret(ssp)
      const why =
        refused ??
        (own !== undefined && !mayHear
          ? "is at an address that no secret is sent to; list it in SVC_SCHEDULER_SSP_URL_ALLOW"
          : undefined)
      if (why !== undefined)
        return Effect.fail(new SspUnreachable({ message: `SSP ${ssp} at ${url} ${why}`, refused: false }))
      return Effect.sync(() =>
        open(
          {
            method: "POST",
            url: `${url}/stream`,
            headers: headersOf(own),
            body,
            withinMs: timeoutMs,
            silenceMs: Duration.toMillis(silence),
            addresses
          },
          heard
        )
      )
    })
