/**
 * The runtime as the client needs it: network, timers, a steady clock, randomness, the console.
 *
 * The only file of the client that names a global of the runtime. All others get a {@link World}, so that a test plays
 * hours in milliseconds and breaks a connection at any byte.
 */

/** The runtime as the client uses it. */
export interface World {
  readonly fetch: (address: string, init: RequestInit) => Promise<Response>
  /** Milliseconds of a steady clock; never compared with another machine's. */
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

/** Browsers signal by `online` and `visibilitychange`, workers by `online` alone, Node and Deno not at all. */
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

/** The world of the present runtime. */
export const world: World = {
  // A method call, because a browser's fetch needs its window as `this`.
  fetch: (address, init) => globalThis.fetch(address, init),
  now: () => performance.now(),
  random: () => Math.random(),
  after: (ms, run, isIdle) => {
    const timer = setTimeout(run, ms)
    // Timers of Node are objects with `unref`; in browsers and workers they are numbers.
    if (isIdle) (timer as { unref?: () => void }).unref?.()
    return () => clearTimeout(timer)
  },
  say: (line) => console.warn(line),
  onWake
}
