/**
 * Asks the process that listens with the same configuration whether it lives, for health checks of containers.
 *
 * A command of the door and not a shell with curl: images without a shell have neither. Liveness and not readiness, because
 * whoever restarts what is unhealthy must not restart what only bootstraps.
 */
import { Effect } from "effect"
import { get } from "node:http"
import { type HostPort, reachable } from "../core/address.ts"
import { StartFault } from "../ports/StartFault.ts"

const withinMs = 4000

/** Fails unless `path` answers 200 in time. */
export const check = (listen: HostPort, path: string): Effect.Effect<void, StartFault> => {
  const url = `${reachable(listen, listen.port, "127.0.0.1")}${path}`
  return Effect.async<void, StartFault>((resume) => {
    const fail = (why: string): void => resume(Effect.fail(new StartFault({ exitCode: 1, message: `${url} ${why}` })))
    const request = get(url, { agent: false, timeout: withinMs }, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) resume(Effect.void)
      else fail(`answers ${answer.statusCode}`)
    })
    request.on("timeout", () => request.destroy(new Error(`no answer in ${withinMs} ms`)))
    request.on("error", (error) => fail(`does not answer: ${error.message}`))
  })
}
