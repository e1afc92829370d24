/**
 * How much memory stays in use: for tests that say that something is let go.
 *
 * The collector is asked for here, so that no test needs a flag of its own to run.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Bytes in use after a collection. */
export const heapUsed = (): number => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  collect()
  // What weak references and finalizers have let go of goes with the second.
  collect()
  return process.memoryUsage().heapUsed
}
