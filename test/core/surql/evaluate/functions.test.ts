/**
 * The function table: every name is one the database has.
 *
 * Why so: a name of our own would be accepted here and refused there; and a typo should be answered with the name
 * meant.
 */

import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createNodeEngines } from "@surrealdb/node"
import { Either } from "effect"
import { Surreal } from "surrealdb"
import { describe, expect, it } from "vitest"
import { root } from "../../../../kit/rules/source.ts"
import { between, functionsTable } from "../../../../scripts/docs/functionsTable.ts"
import { functions } from "../../../../src/core/surql/evaluate/functions.ts"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../../src/core/surql/evaluate/select/select.ts"
import { isConstantName, isFunctionName, refusalOf, refusals } from "../../../../src/core/surql/syntax/functionNames.ts"
import { parseStatements } from "../../../../src/core/surql/syntax/parse.ts"
import { ours } from "../engine.ts"

const page = readFileSync(join(root, "docs/language.md"), "utf8")

describe("the list of functions in docs/language.md", () => {
  it("is the table of functions, written by scripts/functions.ts", () => {
    expect(between(page)).toBe(functionsTable())
  })
  it("has a tick for every function that works, and every refused one with its reason", () => {
    const table = functionsTable()
    const names = [...functions.keys()].filter((name) => isFunctionName(name) && functions.get(name)!.pure)
    expect(table.split("✓").length - 1).toBeGreaterThanOrEqual(names.length)
    for (const { reason, names: refused } of refusals)
      for (const name of refused) expect(table).toContain(`| ${reason} |`), expect(table).toContain(`\`${name}\``)
  })
})

describe("functions", () => {
  const names = [...functions.keys()].filter((name) => isFunctionName(name) || isConstantName(name))

  it("every name is the database's", { timeout: 30_000 }, async () => {
    const db = new Surreal({ engines: createNodeEngines() })
    await db.connect("mem://")
    await db.use({ namespace: "test", database: "names" })
    const unknown: Array<string> = []
    for (const name of names) {
      try {
        await db.query(`IF false { RETURN ${name}${isConstantName(name) ? "" : "()"} }`).responses()
      } catch (error) {
        unknown.push(`${name}: ${String(error)}`)
      }
    }
    await db.close()
    expect(unknown).toEqual([])
    expect(names.length).toBeGreaterThan(380)
  })

  it("nothing is both supported and refused", () => {
    expect(names.filter((name) => refusalOf(name) !== undefined)).toEqual([])
  })

  it.each([
    ["array::lenght([1])", "array::len"],
    ["string::upper('a')", "string::upper"],
    ["math::sums([1])", "math::sum"],
    ["time::nwo()", "time::now"]
  ])("%s is answered with a near name", (text, near) => {
    const parsed = parseStatements(`RETURN ${text}`)
    expect(Either.isLeft(parsed) ? parsed.left.message : "accepted").toContain(`\`${near}`)
  })

  it.each([
    "http::get('x')",
    "search::score(1)",
    "sleep(1s)",
    "duration::set_year(1y, 2)",
    "vector::similarity::spearman([1], [2])",
    "string::html::sanitize('a')",
    "fn::mine()"
  ])("%s is refused as not supported", (text) => {
    const parsed = parseStatements(`RETURN ${text}`)
    expect(Either.isLeft(parsed) ? parsed.left.message : "accepted").toContain("not supported")
  })
})

describe("functions and integers", () => {
  it.each([
    "array::windows([1, 2], 9223372036854775807)",
    "array::swap([1, 2], 9223372036854775807, 0)",
    "array::at([1], 9223372036854775807)",
    "string::repeat('', 9223372036854775807)",
    "array::clump([1, 2], 9223372036854775807)",
    "math::top([1], 9223372036854775807)"
  ])("%s answers or is refused, and never throws", (text) => {
    const parsed = parseStatements(`RETURN ${text}`)
    if (Either.isLeft(parsed)) throw new Error(parsed.left.message)
    const [statement] = parsed.right
    expect(["Left", "Right"]).toContain(
      evaluate(statement!, { source: fromRecords([]), params: {}, budget: makeBudget(1e6, "TEST_STEPS") })._tag
    )
  })
})

// Not beside the real engine, whose process ends at such a format.
it.each(["%-a", "%_D", "%0p", "%-R", "%_%", "%0n", "%"])(
  "time::format refuses %j: what is no number is not padded",
  (format) => {
    const said = ours(fromRecords([]), `RETURN time::format(d'2024-02-29T05:06:07Z', '${format}')`)
    expect(said).toMatch(/^ERR .* is not a valid time formatting string/)
  }
)
