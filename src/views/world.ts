/**
 * What the handler of named views takes from the runtime that the application's server is on, whichever it is.
 *
 * The only file of the room that names a global of it.
 */
import type { World } from "./upstream.ts"

export const worldOf = (log: (line: string) => void = (line) => console.warn(line)): World => ({
  fetch: (address, init) => globalThis.fetch(address, init),
  now: () => performance.now(),
  say: (line) => log(`views: ${line}`)
})
