/**
 * The runtime as the handler of named views needs it, for any JavaScript server.
 *
 * The only file of the room that names a global of the runtime.
 */
import type { World } from "./upstream.ts"

/** The present runtime; `log` receives lines for the operator. */
export const worldOf = (log: (line: string) => void = (line) => console.warn(line)): World => ({
  fetch: (address, init) => globalThis.fetch(address, init),
  now: () => performance.now(),
  say: (line) => log(`views: ${line}`)
})
