/**
 * The function table: every name is one the database has.
 *
 * Why so: a name of our own would be accepted here and refused there; and a typo should be answered with the name meant.
 */
import { Either } from "effect"
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"
import { describe, expect, it } from "vitest"
import { isConstantName, isFunctionName, isUnsupported } from "../../../src/core/surql/functionNames.ts"
import { functions } from "../../../src/core/surql/functions.ts"
import { parseStatements } from "../../../src/core/surql/parse.ts"

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
    expect(names.filter(isUnsupported)).toEqual([])
  })

  it.each([["array::lenght([1])", "array::len"], ["string::upper('a')", "string::upper"], ["math::sums([1])", "math::sum"], ["time::nwo()", "time::now"]])("%s is answered with a near name", (text, near) => {
    const parsed = parseStatements(`RETURN ${text}`)
    expect(Either.isLeft(parsed) ? parsed.left.message : "accepted").toContain(`\`${near}`)
  })

  it.each(["http::get('x')", "search::score(1)", "sleep(1s)", "string::html::sanitize('a')", "fn::mine()"])("%s is refused as not supported", (text) => {
    const parsed = parseStatements(`RETURN ${text}`)
    expect(Either.isLeft(parsed) ? parsed.left.message : "accepted").toContain("not supported")
  })
})
