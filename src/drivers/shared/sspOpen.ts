/**
 * Opens answers of SSPs by callback, for a client whose secret the scheduler has checked itself.
 *
 * The scheduler's own secret is sent, and only where it may be read (D15). Elsewhere no call is made, because the SSP
 * would refuse a call without the secret.
 */
import { Duration, Effect, type Redacted } from "effect"
import { bearerOf } from "../../node/http/bearer.ts"
import { type Asked, type Options, type SspClientShape, SspUnreachable } from "../../ports/SspClient.ts"
import { type Exchange, json } from "./exchange.ts"
import type { JudgedUrl } from "./judge.ts"
import { maxStreamSilence } from "./sspPass.ts"

const headersOf = (
  { body, headers }: Asked,
  secret: Redacted.Redacted<string> | undefined
): { readonly [name: string]: string } => ({
  ...headers,
  ...(body === undefined ? {} : { "content-type": json }),
  ...(secret === undefined ? {} : { authorization: bearerOf(secret) })
})

export const makeOpener =
  (
    { open }: Pick<Exchange, "open">,
    judge: (url: string) => Effect.Effect<JudgedUrl>,
    { secret, timeoutMs }: Pick<Options, "secret" | "timeoutMs">,
    denied: (ssp: string) => void
  ): SspClientShape["open"] =>
  ({ ssp, url }, asked, heard) =>
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
            method: asked.method,
            url: `${url}${asked.path}`,
            headers: headersOf(asked, own),
            body: asked.body,
            withinMs: timeoutMs,
            silenceMs: Duration.toMillis(maxStreamSilence),
            addresses
          },
          {
            ...heard,
            head: (status, headers) => {
              if (status === 401) denied(ssp)
              heard.head(status, headers)
            }
          }
        )
      )
    })
