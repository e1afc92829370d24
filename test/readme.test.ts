/**
 * README and the pages of laws, decisions and measurements hold what they promise: tables are the code's, names exist.
 *
 * Why: README is the first thing a newcomer runs, and nobody runs it again after writing it.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../kit/rules/source.ts"
import { shortRows } from "../scripts/docs/settingsTable.ts"
import { knobs as schedulerKnobs } from "../src/scheduler/Config.ts"
import { knobs } from "../src/ssp/Config.ts"

const readme = readFileSync(join(root, "README.md"), "utf8")
const page = (name: string): string => readFileSync(join(root, `docs/${name}.md`), "utf8")
const scripts = (
  JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: { [name: string]: string } }
).scripts

describe("README", () => {
  it("is at most 250 lines and begins with the problem and two commands", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(250)
    const top = readme.split("\n").slice(0, 30).join("\n")
    expect(top).toContain("npm ci && npm start")
    expect(top).toContain("npm ci && npm test")
  })
  it("shows settings as the code declares them", () => {
    const declared = new Set([...shortRows(knobs), ...shortRows(schedulerKnobs)])
    const shown = readme.split("\n").filter((line) => /^\| `[A-Z]+_[A-Z0-9_]+`/.test(line))
    expect(shown.length).toBeGreaterThan(11)
    expect(shown.filter((line) => !declared.has(line))).toEqual([])
  })
  it("names only npm scripts that exist", () => {
    const named = [...readme.matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => name ?? "")
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
  })
  it("and the pages beside it name only files and folders that exist", () => {
    const named = [readme, page("benchmarks"), page("decisions"), page("laws")]
      .flatMap((text) => [...text.matchAll(/`((?:src|test|scripts)\/[\w./-]*)`/g)])
      .map(([, path]) => path ?? "")
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})
