/**
 * Loaded before a program (`--import`): SIGUSR2 fills its heap until 97 % of what V8 allows are in use, whatever the
 * program itself would have refused.
 *
 * Objects and not buffers, because the collector must count them.
 */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const share = 0.97
/** Objects that come at once: little beside what is left in the smallest heap of a test. */
const atOnce = 1_000
/** What an object with its place in a list takes, at least. */
const objectBytes = 48

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc")
/** As `host/process/heap.ts` counts: what V8 adds for young objects is not for these. */
const limit = getHeapStatistics().heap_size_limit - 48 * 2 ** 20

const used = () => {
  let bytes = 0
  for (const { space_name, space_size } of getHeapSpaceStatistics())
    if (space_name !== "new_space" && space_name !== "new_large_object_space") bytes += space_size
  return bytes
}

const held = []
process.on("SIGUSR2", () => {
  collect()
  for (let left = share * limit - used(); left > 0; left = share * limit - used()) {
    // Half of what is left at a time, since a collection takes long in a full heap, and the last step must not burst it.
    const count = Math.max(atOnce, Math.floor(left / 2 / objectBytes))
    for (let n = 0; n < count; n += atOnce) held.push(Array.from({ length: atOnce }, (_, i) => ({ i })))
    collect()
  }
  process.stdout.write(`ballast: ${Math.round((100 * used()) / limit)} % of the heap are in use\n`)
})
