/**
 * Mutated query texts: no crash, no hang, and what we accept the real database's parser accepts too.
 *
 * Why so: the parser meets whatever users type, and a text we take for a query must be one. `SVC_SEED` replays, `SVC_RUNS`
 * multiplies.
 */
import { Either } from "effect"
import { Surreal } from "surrealdb"
import { createNodeEngines } from "@surrealdb/node"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parseStatements } from "../../../src/core/surql/parse.ts"
import { readCorpus } from "./corpusFile.ts"

const seed = Number(process.env["SVC_SEED"] ?? 1)
const runs = 4_000 * Number(process.env["SVC_RUNS"] ?? 1)

/** A small generator of numbers below one, the same for the same seed. */
const random = (start: number): (() => number) => {
  let state = start >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 4294967296
  }
}

const tokens = (query: string): Array<string> => query.match(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w:]*|\d+[\w.]*|\s+|[^\s\w]/gu) ?? []

const queries = readCorpus().flatMap((f) => f.cases.map((c) => c.query))
const words = [...new Set(queries.flatMap(tokens))]

const mutate = (next: () => number): string => {
  const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(next() * items.length)]!
  const out = tokens(pick(queries))
  for (let n = 1 + Math.floor(next() * 3); n > 0; n--) {
    const at = Math.floor(next() * (out.length + 1)), what = next()
    if (what < 0.3) out.splice(at, 1)
    else if (what < 0.8) out.splice(at, what < 0.6 ? 0 : 1, pick(words))
    else out.splice(at, 0, ...tokens(pick(queries)).slice(2, 8))
  }
  return out.join("")
}

/** Milliseconds a text takes; a slow one is tried again, because other processes make pauses too. */
const timed = (text: string): number => {
  let best = Infinity
  for (let n = 0; n < 3 && best > 20; n++) {
    const began = performance.now()
    parseStatements(text)
    best = Math.min(best, performance.now() - began)
  }
  return best
}

let db: Surreal
beforeAll(async () => {
  db = new Surreal({ engines: createNodeEngines() })
  await db.connect("mem://")
  await db.use({ namespace: "test", database: "fuzz" })
})
afterAll(async () => { await db.close() })

describe("mutated texts", () => {
  it("never crash or hang the parser, and what it accepts the database accepts", { timeout: 60_000 + runs * 5 }, async () => {
    const next = random(seed)
    const accepted: Array<string> = []
    let slowest = 0
    for (let i = 0; i < runs; i++) {
      const text = mutate(next)
      const parsed = parseStatements(text)
      slowest = Math.max(slowest, timed(text))
      // A comment would swallow the wrapper below.
      if (Either.isRight(parsed) && !/--|\/\/|#|\/\*/.test(text)) accepted.push(text)
    }
    expect(slowest).toBeLessThan(100)
    expect(accepted.length).toBeGreaterThan(runs / 50)
    const refused: Array<string> = []
    for (const text of accepted) {
      try {
        await db.query(`IF false { ${text} }`).responses()
      } catch (error) {
        if (error instanceof Error && error.message.startsWith("Parse error")) refused.push(`${text}\n  ${error.message.split("\n").slice(0, 4).join(" ")}`)
      }
    }
    expect(refused.join("\n")).toBe("")
  })
})
