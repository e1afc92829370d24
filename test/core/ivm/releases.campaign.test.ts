/**
 * The heap over 10,000 views that come and go, of every kind.
 *
 * Why apart: it takes minutes. The short form is in `releasesHeap.long.test.ts`.
 */
import { expect, it } from "vitest"
import { growthOf } from "./churnGrowth.ts"

it("L7 D16 memory is flat over 10,000 views that come and go, of every kind", async () => {
  for (const { growth, kind } of await growthOf(1_000, 11)) {
    // Behind the first 2,000. The queue of deleted records is cleared up every 1,024 entries: 8 KB up or down.
    const grown = growth.slice(1).reduce((sum, bytes) => sum + bytes, 0)
    process.stderr.write(`${kind}: ${grown} bytes after 10,000 (${growth.join(" ")})\n`)
    expect(grown, `${kind}, bytes a block: ${growth.join(" ")}`).toBeLessThan(32 * 1024)
  }
})
