/**
 * Loaded before a program (`--import`): SIGUSR2 fills its heap until 97 % of what V8 allows are in use, whatever the
 * program itself would have refused.
 *
 * Lists and not buffers, because V8 must count them.
 */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

const share = 0.97
/** Numbers of one list, and its bytes: small beside a page of V8's, so that little of a page is left to others. */
const numbers = 1_000
const listBytes = 8 * numbers + 64

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
    for (let n = Math.max(1, Math.floor(left / 2 / listBytes)); n > 0; n--)
      held.push(Array.from({ length: numbers }, (_, i) => i + 0.5))
    collect()
  }
  process.stdout.write(`ballast: ${Math.round((100 * used()) / limit)} % of the heap are in use\n`)
})
