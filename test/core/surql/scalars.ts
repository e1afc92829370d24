/**
 * One run of the scalar campaign: calls of every function, operator and cast, our answers against both evaluators of
 * the real database.
 *
 * Why so: the default run takes a sample and the campaign many times that, by the same code. What may differ is named
 * by its row in the table of docs/language.md, as narrowly as a program can say it; everything else is a fault.
 */
import { Decimal } from "decimal.js"
import type { Rng } from "../../../kit/data/random.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { agree, ours, records } from "./engine.ts"
import type { Judge } from "./judge.ts"
import * as Calls from "./scalarCalls.ts"

export const lines = ["t:1 { a: 1, b: 'x', r: t:2 }", "t:2 { a: 2, b: ['x'], r: t:9 }", "e:1 { in: t:1, out: t:2 }"]
export const tables = ["t", "e", "`o d`"]

/** Numbers of a text, and what stands between them. */
const pieces = (text: string): ReadonlyArray<string> => text.split(/(-?\d+(?:\.\d+)?(?:f|dec)?(?![\w.]))/)

/** True where two texts differ in nothing but numbers of that suffix, and those by no more than that part of them. */
const within = (theirs: string, mine: string, suffix: "f" | "dec", part: number): boolean => {
  const a = pieces(theirs),
    b = pieces(mine)
  return (
    a.length === b.length &&
    a.every((left, i) => {
      const right = b[i]!
      if (left === right) return true
      if (!left.endsWith(suffix) || !right.endsWith(suffix)) return false
      const x = new Decimal(left.slice(0, -suffix.length)),
        y = new Decimal(right.slice(0, -suffix.length))
      return x.sub(y).abs().lte(x.abs().times(part))
    })
  )
}

interface Exception {
  /** Of the table in docs/language.md. */
  readonly row: string
  readonly covers: (expression: string, theirs: string, mine: string) => boolean
}

const power = /\*\*|\bpow\(/
const transcendental =
  /\b(?:sin|cos|tan|cot|acot|asin|acos|atan|ln|log|log2|log10|pow|angle|minkowski|bearing|distance|area|centroid|deg2rad|rad2deg)\(|\*\*/

/** What is let pass. */
export const exceptions: ReadonlyArray<Exception> = [
  {
    row: "computed decimals",
    covers: (expression, theirs, mine) =>
      within(theirs, mine, "dec", 1e-24) ||
      (power.test(expression) &&
        /dec/.test(expression) &&
        // The database's powers of bases near its smallest are off by a hundredth.
        (mine.startsWith("ERR") || within(theirs, mine, "dec", /0\.0{20}/.test(expression) ? 0.05 : 1e-5)))
  },
  {
    row: "last digits of floats",
    covers: (expression, theirs, mine) =>
      transcendental.test(expression) &&
      within(theirs, mine, "f", /geo::|bearing|distance/.test(expression) ? 1e-11 : 1e-12)
  },
  { row: "fuzzy scores", covers: (expression) => /similarity(?:::|_)(?:fuzzy|smithwaterman)\(/.test(expression) },
  {
    row: "text of a record id",
    covers: (expression) =>
      /['"]t:1['"]/.test(expression) && /(?<!['"])t:1\b|\)(?:\.(?:[ab*{]|\?\.)|\[(?:\*|'))/.test(expression)
  },
  {
    row: "`string::is_datetime` with a format",
    covers: (_, __, mine) => mine.includes("string::is_datetime() with a format is not supported yet")
  },
  {
    row: "text patches in `value::diff` and `value::patch`",
    covers: (_, __, mine) => mine.includes("text patches are the database's own")
  },
  {
    row: "scalars under `.*` and `[$]`",
    covers: (expression) => /t:\w*\.\.=?\w*.*(?:\.\*|\[\*\])/.test(expression)
  },
  {
    row: "`ONLY` without a row; a table that does not exist",
    covers: (_, theirs) => /^ERR The table .* does not exist/.test(theirs)
  }
]

export interface Count {
  succeeded: number
  failed: number
}

export interface Tally {
  compared: number
  /** Differences of each row that is let pass. */
  readonly passed: Map<string, number>
  /** How often each function was called with arguments that either evaluator took, and with such that neither did. */
  readonly calls: Map<string, Count>
  readonly found: Array<string>
}

const source = fromRecords(records(lines))

type Asked = readonly [subject: string, expression: string]

const compare = async (judge: Judge, asked: ReadonlyArray<Asked>, tally: Tally): Promise<void> => {
  for (let at = 0; at < asked.length; at += 400) {
    const part = asked.slice(at, at + 400)
    const answers = await judge.ask(part.map(([, expression]) => expression))
    part.forEach(([subject, expression], i) => {
      const answer = answers[i]
      if (answer === undefined) return
      const [planner, older] = answer,
        mine = ours(source, `RETURN ${expression}`)
      tally.compared++
      const count = tally.calls.get(subject)
      if (count !== undefined) count[planner.startsWith("[") || older.startsWith("[") ? "succeeded" : "failed"]++
      if (agree(planner, mine) || agree(older, mine)) return
      const exception = exceptions.find(
        ({ covers }) => covers(expression, planner, mine) || covers(expression, older, mine)
      )
      if (exception !== undefined) tally.passed.set(exception.row, (tally.passed.get(exception.row) ?? 0) + 1)
      else tally.found.push(`RETURN ${expression}\n  planner ${planner}\n  older   ${older}\n  ours    ${mine}`)
    })
  }
}

const draw = (n: number, one: () => string): ReadonlyArray<string> =>
  Array.from({ length: n }, one).filter(Calls.bearable)

/** Functions that take whatever they are given, or nearly. */
export const undemanding: ReadonlySet<string> = new Set(["string::concat", "string::join"])

/**
 * Each function so many times and more until it has succeeded and failed `atLeast` times; operators and casts three
 * times as often.
 */
export const compareScalars = async (random: Rng, judge: Judge, times: number, atLeast: number): Promise<Tally> => {
  const tally: Tally = {
    compared: 0,
    passed: new Map(),
    calls: new Map(Calls.names.map((name) => [name, { succeeded: 0, failed: 0 }])),
    found: []
  }
  const each = (
    subjects: ReadonlyArray<string>,
    n: number,
    one: (random: Rng, subject: string) => string
  ): ReadonlyArray<Asked> =>
    subjects.flatMap((subject) =>
      draw(n, () => one(random, subject)).map((expression) => [subject, expression] as const)
    )
  await compare(
    judge,
    [
      ...each(Calls.names, times, Calls.call),
      ...each(Calls.operators, 3 * times, Calls.operation),
      ...each(Calls.casts, 3 * times, Calls.casting),
      ...each(Calls.drawnForms, 30 * times, Calls.drawnForm),
      ...each(Calls.others, 6 * times, Calls.other)
    ],
    tally
  )
  for (let round = 0; round < 60; round++) {
    const wanting = [...tally.calls].filter(
      ([name, c]) => c.succeeded < atLeast || (c.failed < atLeast && !undemanding.has(name))
    )
    if (wanting.length === 0) break
    await compare(
      judge,
      wanting.flatMap(([name, c]) =>
        draw(4, () => Calls.call(random, name, c.failed < atLeast && c.succeeded >= atLeast)).map(
          (e): Asked => [name, e]
        )
      ),
      tally
    )
  }
  return tally
}
