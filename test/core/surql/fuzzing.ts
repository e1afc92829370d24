/**
 * One run of the fuzz: many mutated texts parsed and evaluated, what was accepted shown to the real database.
 *
 * Why so: the default run takes a sample and the campaign all of it, by the same code.
 */
import { Either } from "effect"
import type { Rng } from "../../../kit/data/random.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { records } from "./engine.ts"
import type { Parses } from "./mutate.ts"
import { hasComment, mutate } from "./mutate.ts"

const source = fromRecords(
  records([
    "p:1 { name: 'a', age: 3, tags: ['x', 'y'], best: p:2, friends: [p:2, p:3], a: { b: [{ c: 1 }, { c: 2 }] } }",
    "p:2 { name: 'b', age: 4.5f, best: p:1, n: NULL }",
    "p:3 { name: 'c', best: p:9 }",
    "likes:1 { in: p:1, out: p:2, w: 1 }",
    "likes:2 { in: p:2, out: p:3, w: 2 }",
    "likes:3 { in: p:3, out: p:1, w: 3 }"
  ])
)

/** Parses, and runs what parses; anything thrown is a crash. */
const attempt = (text: string): boolean => {
  const parsed = parseStatements(text)
  if (Either.isLeft(parsed)) return false
  for (const statement of parsed.right) evaluate(statement, { source, params: {}, budget: makeBudget(20_000, "TEST") })
  return true
}

/** Milliseconds of processor time (not of the clock: other processes make pauses); a slow one is tried again. */
const cost = (text: string): number => {
  let best = Infinity
  for (let n = 0; n < 3 && best > 20; n++) {
    const before = process.cpuUsage()
    attempt(text)
    const { user } = process.cpuUsage(before)
    best = Math.min(best, user / 1000)
  }
  return best
}

export interface Fuzzed {
  readonly accepted: number
  /** The text that took longest, with its milliseconds. */
  readonly slowest: readonly [number, string]
  /** Texts accepted here and refused by the database. */
  readonly gaps: ReadonlyArray<string>
}

export const fuzz = async (random: Rng, count: number, parses: Parses): Promise<Fuzzed> => {
  const accepted: Array<string> = []
  let slowest: readonly [number, string] = [0, ""]
  for (let i = 0; i < count; i++) {
    const text = mutate(random)
    const before = performance.now()
    if (attempt(text) && !hasComment(text)) accepted.push(text)
    if (performance.now() - before > 20) {
      const took = cost(text)
      if (took > slowest[0]) slowest = [took, text]
    }
  }
  return { accepted: accepted.length, slowest, gaps: await parses.refused(accepted) }
}
