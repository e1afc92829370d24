/**
 * What a test has opened, closed after it: the last opened first.
 *
 * Why not one `onTestFinished` each: helpers that open things are shared by all tests of a file and are not handed its
 * hooks.
 */
import { afterEach } from "vitest"

/** To be called once per file; what it answers takes what has to be closed after the running test. */
export const closing = (): ((close: () => Promise<unknown> | void) => void) => {
  let closers: Array<() => Promise<unknown> | void> = []
  afterEach(async () => {
    for (const close of closers.reverse()) await close()
    closers = []
  })
  return (close) => void closers.push(close)
}
