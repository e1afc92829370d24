/**
 * What the client needs from where it runs: network, timers, a clock that only goes on, chance, the console.
 *
 * The only file of the client that names a global of the runtime. Everything else is given a {@link World}, so that a
 * test plays hours in milliseconds and breaks a connection at any byte.
 */

/** The runtime as the client uses it. */
export interface World {
  readonly fetch: (address: string, init: RequestInit) => Promise<Response>
  /** Milliseconds since some moment. It never goes back, and no other machine's clock is compared with it. */
  readonly now: () => number
  /** A random number x with 0 <= x < 1. */
  readonly random: () => number
  /** Runs `run` once after `ms`; returns a function that cancels it. `isIdle`: the timer keeps no program running. */
  readonly after: (ms: number, run: () => void, isIdle?: boolean) => () => void
  /** One line for the developer. */
  readonly say: (line: string) => void
  /** Runs `run` whenever the network is back or the page is visible again; returns a function that ends this. */
  readonly onWake: (run: () => void) => () => void
}

interface Listened {
  readonly addEventListener?: (type: string, run: () => void) => void
  readonly removeEventListener?: (type: string, run: () => void) => void
  readonly document?: Listened & { readonly visibilityState?: string }
}

/** Browsers tell by `online` and `visibilitychange`, workers by `online` alone, Node and Deno not at all. */
const onWake = (run: () => void): (() => void) => {
  const self = globalThis as Listened
  const page = self.document
  const looked = () => {
    if (page?.visibilityState === "visible") run()
  }
  self.addEventListener?.("online", run)
  page?.addEventListener?.("visibilitychange", looked)
  return () => {
    self.removeEventListener?.("online", run)
    page?.removeEventListener?.("visibilitychange", looked)
  }
}

/** The runtime's own. */
export const world: World = {
  // Named in the call: a browser's fetch asks for its window as `this`.
  fetch: (address, init) => globalThis.fetch(address, init),
  now: () => performance.now(),
  random: () => Math.random(),
  after: (ms, run, isIdle) => {
    const timer = setTimeout(run, ms)
    // Node's are objects with `unref`; those of browsers and workers are numbers.
    if (isIdle) (timer as { unref?: () => void }).unref?.()
    return () => clearTimeout(timer)
  },
  say: (line) => console.warn(line),
  onWake
}
