/**
 * The tables that the scheduler takes a registration to read, for where it is placed (D65).
 */
import { describe, expect, it } from "vitest"
import * as ViewReads from "../../../src/scheduler/pool/viewReads.ts"

const readsOf = ViewReads.make()
const reads = (body: unknown) => {
  const found = readsOf({ body, ttlMs: 1, lastActiveAt: 0 })
  return found === "all" || found === undefined ? found : [...found].sort()
}

describe("the tables that a registration reads", () => {
  it("D65 are those that its query and its parameters name", () => {
    expect(reads({ surql: "SELECT * FROM a WHERE b IN (SELECT VALUE id FROM c)" })).toEqual(["a", "c"])
    expect(reads({ surql: "SELECT * FROM a WHERE by = $who", params: { who: "person:1" } })).toEqual(["a", "person"])
    expect(reads({ surql: "SELECT ->likes->post FROM a" })).toEqual(["a", "likes", "post"])
  })
  it("D65 are all of them where it may read any", () => {
    expect(reads({ surql: "SELECT ->? FROM a" })).toBe("all")
  })
  it("D65 are unknown where the query cannot be read here", () => {
    for (const body of [
      { surql: "SELECT FROM" },
      { surql: "SELECT fn::of_the_database(a) FROM a" },
      { surql: `SELECT * FROM a WHERE b = '${"x".repeat(20_000)}'` },
      { surql: 5 },
      {},
      null,
      "text"
    ])
      expect(reads(body), JSON.stringify(body).slice(0, 60)).toBeUndefined()
  })
  it("D65 are read once for a registration", () => {
    const spec = { body: { surql: "SELECT * FROM a" }, ttlMs: 1, lastActiveAt: 0 }
    expect(readsOf(spec)).toBe(readsOf({ ...spec, lastActiveAt: 9 }))
  })
})
