/**
 * Runs `churnHeap.ts` as a process of its own: for the short test of the heap and for the long one.
 *
 * Why bundled first: Node takes no TypeScript, and what would translate it there has a heap of its own that moves.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { build } from "esbuild"
import { removeFolder, temporaryFolder } from "../../../kit/processes/Door.ts"
import { root } from "../../../kit/rules/source.ts"

/** The optimizer rests, and code stays as it was first made. */
const flags = ["--no-opt", "--always-sparkplug", "--no-flush-bytecode", "--no-lazy-feedback-allocation"]

export interface Growth {
  readonly kind: string
  /** In bytes, of each block of cycles behind the first. */
  readonly growth: ReadonlyArray<number>
}

/** How the heap grows over views of each kind that come and go. */
export const growthOf = async (cycles: number, blocks: number): Promise<ReadonlyArray<Growth>> => {
  const folder = temporaryFolder(),
    outfile = join(folder, "churnHeap.mjs")
  try {
    await build({
      entryPoints: [join(root, "test/core/ivm/churnHeap.ts")],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      logLevel: "error",
      banner: { js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);` }
    })
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, outfile, String(cycles), String(blocks)])
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Growth)
  } finally {
    removeFolder(folder)
  }
}

/** The one in the middle. */
export const median = (figures: ReadonlyArray<number>): number =>
  [...figures].sort((a, b) => a - b)[figures.length >> 1] ?? 0
