/**
 * The runtimes that the package has to run on, and how each is asked to run a file or the tests.
 *
 * Node as it runs this; other versions of it as packages in a folder of their own (`npm --prefix test/runtimes ci`),
 * because such a package in the root would become the `node` of every script; Deno as a development dependency. What is
 * not installed is skipped, visibly.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { root } from "../rules/source.ts"

export interface Runtime {
  readonly name: string
  readonly installed: boolean
  /** Command and arguments before the file. */
  readonly command: ReadonlyArray<string>
  /** Whether better-sqlite3 as it was installed here does not load, so that SQLite is the runtime's own. */
  readonly ownSqlite: boolean
}

const node = (version: 22 | 24): Runtime => {
  const path = join(root, `test/runtimes/node_modules/node${version}/bin/node`)
  return {
    name: `Node ${version}`,
    installed: existsSync(path),
    command: [path],
    ownSqlite: !process.version.startsWith(`v${version}.`)
  }
}

export const denoPath = join(root, "node_modules/.bin/deno")

export const deno: Runtime = {
  name: "Deno",
  installed: existsSync(denoPath),
  command: [denoPath, "run", "-A"],
  ownSqlite: true
}

export const here: Runtime = {
  name: `Node ${process.versions.node.split(".")[0]}`,
  installed: true,
  command: [process.execPath],
  ownSqlite: false
}

/** That of the image. */
export const node24 = node(24)

/** All others than {@link here}. */
export const others: ReadonlyArray<Runtime> = [node(22), node24, deno].filter(({ name }) => name !== here.name)
