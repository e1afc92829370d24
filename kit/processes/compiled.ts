/**
 * A script of the tests as a module that Node runs by itself, for processes of their own.
 *
 * Why so: with the runner's loader a process takes half a second more of processor time to start.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { root } from "../rules/source.ts"

const made = new Map<string, Promise<string>>()

/** Two below the root, as the modules of `kit` are, which find it from where they are themselves. */
const folder = join(root, "test-output/compiled")

/** Put there whole: another worker may make the same file, or start it. */
const placed = (name: string, contents: Uint8Array): string => {
  const file = join(folder, name),
    part = `${file}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(part, contents)
  renameSync(part, file)
  return file
}

/** Where the compiled script lies; `script` is its path in the project. Packages are found from there as from it. */
export const compiled = (script: string): Promise<string> => {
  let file = made.get(script)
  if (file === undefined) {
    file = build({
      entryPoints: [join(root, script)],
      write: false,
      bundle: true,
      packages: "external",
      format: "esm",
      platform: "node",
      target: "node20",
      logLevel: "warning"
    }).then(({ outputFiles }) => placed(script.replaceAll("/", "-").replace(/\.ts$/, ".mjs"), outputFiles[0]!.contents))
    made.set(script, file)
  }
  return file
}
