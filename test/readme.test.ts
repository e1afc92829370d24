/**
 * README holds what it promises: tables that come from the code are the code's, commands and paths it names exist.
 *
 * Why: README is the first thing a newcomer runs, and nobody runs it again after writing it.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { SchedulerApi } from "../src/protocol/SchedulerApi.ts"
import { SspApi } from "../src/protocol/SspApi.ts"
import { knobs as schedulerKnobs } from "../src/scheduler/Config.ts"
import { knobs } from "../src/ssp/Config.ts"
import { settingsTable } from "./kit/settingsTable.ts"
import { root, sourceFiles } from "./kit/source.ts"
import { testNames } from "./kit/rules.ts"

const readme = readFileSync(join(root, "README.md"), "utf8")
const scripts = (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: { [name: string]: string } }).scripts

describe("README", () => {
  it("is under 400 lines and begins with three sentences and two commands", () => {
    expect(readme.split("\n").length).toBeLessThan(400)
    const top = readme.split("\n").slice(0, 30).join("\n")
    expect(top).toContain("npm ci && npm start")
    expect(top).toContain("npm ci && npm test")
  })
  it("has the scheduler's own settings as the code declares them; what both have stands in the first table", () => {
    const shared = new Set(Object.values(knobs).map(({ env }) => env))
    const table = settingsTable(Object.fromEntries(Object.entries(schedulerKnobs).filter(([, { env }]) => !shared.has(env))))
    expect(table.split("\n").length).toBeGreaterThan(20)
    expect(table.split("\n").filter((line) => !readme.includes(line))).toEqual([])
    expect(readme.includes(table), "the rows in the order of the code").toBe(true)
  })
  it("has the settings table that the code declares", () => {
    const table = settingsTable(knobs)
    expect(table.split("\n").filter((line) => !readme.includes(line))).toEqual([])
    expect(readme.includes(table), "the rows in the order of the code").toBe(true)
  })
  it("names only npm scripts that exist", () => {
    const named = [...readme.matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => name ?? "")
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
  })
  it("names only files and folders that exist", () => {
    const named = [...readme.matchAll(/`((?:src|test|scripts)\/[\w./-]*)`/g)].map(([, path]) => path ?? "")
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
  it("lists every endpoint that is served", () => {
    const served = [...Object.values(SspApi.groups), ...Object.values(SchedulerApi.groups)].flatMap((group) => Object.values(group.endpoints).map((endpoint) => `${endpoint.method} ${endpoint.path}`))
    expect(served.length).toBeGreaterThanOrEqual(12)
    expect(served.filter((endpoint) => !readme.includes(`\`${endpoint}\``))).toEqual([])
  })
  it("names a law only where a test names it too", () => {
    const laws = [...readme.matchAll(/^\| (L\d) \|/gm)].map(([, law]) => law ?? "")
    const tested = new Set(testNames(sourceFiles()).flatMap((name) => name.match(/\bL\d\b/g) ?? []))
    expect(laws.length).toBeGreaterThan(3)
    expect(laws.filter((law) => !tested.has(law))).toEqual([])
  })
})
