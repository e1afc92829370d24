/**
 * Every table of `attacks/` is gone through by a test of the default run: a row that is added there is tried.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, trackedFiles } from "../../kit/rules/source.ts"

const folder = join(root, "test/hostile/attacks")

it("D48 each table is gone through by a test of the default run", () => {
  const tests = trackedFiles()
    .filter((path) => path.endsWith(".test.ts") && !path.endsWith(".campaign.test.ts"))
    .map((path) => readFileSync(join(root, path), "utf8"))
  const tables = readdirSync(folder).filter((name) => name !== "randomQueries.ts")
  expect(tables.length).toBeGreaterThan(7)
  expect(tables.filter((name) => !tests.some((text) => text.includes(`attacks/${name}"`)))).toEqual([])
})
