/**
 * The rows of the table of differences in docs/language.md.
 *
 * Why so: `differences.test.ts` shows each of them, and what the scalar campaign lets pass must be one of them.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../../kit/rules/source.ts"

const page = readFileSync(join(root, "docs/language.md"), "utf8")
/** The first table of its section. */
const table = /(?:^\|.*\n)+/m.exec(page.slice(page.indexOf("## Where answers differ")))?.[0] ?? ""

export const rows: ReadonlyArray<string> = [...table.matchAll(/^\| (.+?) (?<!\\)\| .+ (?<!\\)\| .+ \|$/gm)]
  .map(([, first]) => first!)
  .filter((first) => first !== "What")
