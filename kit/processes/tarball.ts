/**
 * The package as others get it: packed by npm, unpacked into a folder of its own, with the dependencies that are
 * installed here beside it.
 *
 * Why from the tarball: what is missing from `files` or `exports`, or reaches back into the source, is only seen there.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../rules/source.ts"

export interface Packed {
  /** Holds `node_modules` with the package in it. */
  readonly folder: string
  /** The unpacked package. */
  readonly home: string
  readonly tarball: string
  readonly size: number
  readonly files: ReadonlyArray<{ readonly path: string; readonly size: number; readonly mode: number }>
  readonly remove: () => void
}

export interface Output {
  readonly code: number
  readonly out: string
}

/** Runs a program to its end; both streams as one text. */
export const run = (
  command: ReadonlyArray<string>,
  cwd: string,
  env: { readonly [name: string]: string } = {}
): Promise<Output> =>
  new Promise((done, failed) => {
    execFile(
      command[0]!,
      command.slice(1),
      { cwd, env: { PATH: process.env["PATH"], HOME: cwd, NO_COLOR: "1", ...env }, maxBuffer: 64e6 },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") return failed(error)
        done({ code: error === null ? 0 : Number(error.code), out: stdout + stderr })
      }
    )
  })

const packed = (text: string): { readonly filename: string; readonly size: number; readonly files: Packed["files"] } =>
  (
    JSON.parse(text.slice(text.indexOf("[\n"), text.lastIndexOf("]") + 1)) as ReadonlyArray<ReturnType<typeof packed>>
  )[0]!

/** Packs what is built in `dist` now. */
export const pack = async (): Promise<Packed> => {
  const folder = mkdtempSync(join(tmpdir(), "svc-package-"))
  const { code, out } = await run(["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder], root, {
    HOME: folder
  })
  if (code !== 0) throw new Error(out)
  const { filename, files, size } = packed(out)
  const modules = join(folder, "node_modules")
  const home = join(modules, "surreal-live-sidecar")
  mkdirSync(home, { recursive: true })
  await run(["tar", "-xzf", join(folder, filename), "-C", home, "--strip-components=1"], folder)
  for (const name of readdirSync(join(root, "node_modules")))
    if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(modules, name))
  return {
    folder,
    home,
    tarball: join(folder, filename),
    size,
    files,
    remove: () => rmSync(folder, { recursive: true, force: true })
  }
}
