/**
 * A script of the tests as a module that Node runs by itself, for processes of their own.
 *
 * Why so: with the runner's loader a process takes half a second more of processor time to start.
 */
import { basename, join } from "node:path"
import { build } from "esbuild"
import { root } from "./source.ts"

const made = new Map<string, Promise<string>>()

/** Where the compiled script lies; `script` is its path in the project. Packages are found from there as from it. */
export const compiled = (script: string): Promise<string> => {
  let file = made.get(script)
  if (file === undefined) {
    const outfile = join(root, "test-output/compiled", `${basename(script, ".ts")}-${process.pid}.mjs`)
    file = build({
      entryPoints: [join(root, script)],
      outfile,
      bundle: true,
      packages: "external",
      format: "esm",
      platform: "node",
      target: "node20",
      logLevel: "warning"
    }).then(() => outfile)
    made.set(script, file)
  }
  return file
}
