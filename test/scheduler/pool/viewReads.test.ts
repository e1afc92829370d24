/**
 * The tables that the scheduler takes a registration to read, for where it is placed (D65).
 */
import { describe, expect, it } from "vitest"
import { maxReported, ViewReads } from "../../../src/scheduler/pool/viewReads.ts"

const specOf = (body: unknown) => ({ body, ttlMs: 1, lastActiveAt: 0 })
const reads = (body: unknown, by = new ViewReads()) => {
  const found = by.of(specOf(body))
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
    const spec = specOf({ surql: "SELECT * FROM a" })
    const by = new ViewReads()
    expect(by.of(spec)).toBe(by.of({ ...spec, lastActiveAt: 9 }))
  })
  it("D65 are those too that an SSP has read for the same query of any client", () => {
    const by = new ViewReads()
    const query = (surql: string, who: string) => ({ surql, clientId: who, params: { who } })
    for (const [surql, found, then] of [
      ["SELECT b.c FROM a WHERE by = $who", ["a", "b"], ["a", "b", "y"]],
      ["SELECT fn::of_the_database(b) FROM a", ["a", "b"], ["a", "b"]],
      ["SELECT ->? FROM a", ["a", "b"], "all"],
      ["SELECT * FROM a", ["a"], ["a"]]
    ] as const) {
      by.learn(specOf(query(surql, "x:1")), found)
      expect(reads(query(surql, "y:1"), by), surql).toEqual(then)
    }
    by.learn(specOf(query("SELECT b.c FROM a WHERE by = $who", "z:1")), ["a"])
    expect(reads(query("SELECT b.c FROM a WHERE by = $who", "y:1"), by), "rows that link nowhere").toContain("b")
    for (const body of [{ surql: 5 }, null, { surql: `SELECT '${"x".repeat(20_000)}' FROM a` }]) {
      by.learn(specOf(body), ["b"])
      expect(reads(body, by)).toBeUndefined()
    }
  })
  it("D65 of as many queries as are remembered, the latest that were heard of; not every table of one", () => {
    const by = new ViewReads()
    const query = (n: number) => ({ surql: `SELECT b.c FROM a WHERE n = ${n}` })
    for (let n = 0; n < maxReported; n++) by.learn(specOf(query(n)), ["b"])
    by.learn(specOf(query(0)), ["b"])
    by.learn(specOf(query(maxReported)), ["b"])
    expect([0, 1, 2, maxReported].map((n) => reads(query(n), by))).toEqual([["a", "b"], ["a"], ["a", "b"], ["a", "b"]])
    by.learn(
      specOf(query(0)),
      Array.from({ length: 1000 }, (_, n) => `b${n}`)
    )
    expect(reads(query(0), by)).toHaveLength(65)
  })
})
