/**
 * The project's own folder, and the files in it.
 *
 * Processes that tests start load this module; `syntax.ts`, which loads the compiler, would more than double their start.
 */
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..")

/** Files git knows or would add, so that a new file is checked before it is committed. */
export const trackedFiles = (): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(root, path)))
