/**
 * Asks the process that listens with the same configuration whether it lives, for health checks of containers.
 *
 * A command of the program and not a shell with curl: images without a shell have neither. Liveness and not readiness,
 * because a supervisor that restarts unhealthy processes must not restart one that bootstraps.
 */

import * as Http from "node:http"
import * as Https from "node:https"
import { Effect } from "effect"
import { type HostPort, reachable } from "../../core/settings/address.ts"
import type { Tls } from "../../node/config/tls.ts"
import { StartFault } from "../../ports/StartFault.ts"

const withinMs = 4000

/**
 * Fails unless `path` answers 200 in time. The certificate, which need not name this address, is not verified: no
 * secret is sent, and only liveness is asked for.
 */
export const check = (
  { listen, tls }: { readonly listen: HostPort; readonly tls: Tls | undefined },
  path: string
): Effect.Effect<void, StartFault> => {
  const url = `${reachable(listen, listen.port, "127.0.0.1", tls === undefined ? "http" : "https")}${path}`
  const get = tls === undefined ? Http.get : Https.get
  return Effect.async<void, StartFault>((resume) => {
    const fail = (why: string): void => resume(Effect.fail(new StartFault({ exitCode: 1, message: `${url} ${why}` })))
    const request = get(url, { agent: false, timeout: withinMs, rejectUnauthorized: false }, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) resume(Effect.void)
      else fail(`answers ${answer.statusCode}`)
    })
    request.on("timeout", () => request.destroy(new Error(`no answer in ${withinMs} ms`)))
    request.on("error", (error) => fail(`does not answer: ${error.message}`))
  })
}
