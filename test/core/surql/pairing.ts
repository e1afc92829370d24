/**
 * One run of the oracle: random data and queries, our answers against both evaluators of the real database, found cases
 * made small.
 *
 * Why so: the default run takes a sample and the campaign twenty thousand pairs, by the same code. A difference is
 * reduced by leaving out records and pieces of the query for as long as it stays a difference, because a random query
 * says little by itself.
 */
import { FastCheck as fc } from "effect"
import type { Rng } from "../../../kit/data/random.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import type { Value } from "../../../src/core/surql/values/value.ts"
import { agree, constant, ours, records } from "./engine.ts"
import { data, query, tables } from "./generate.ts"
import { allPairs, covering, of, params } from "./pairs.ts"

type Params = { readonly [name: string]: string }

interface Answers {
  readonly planner: string
  readonly older: string
  readonly mine: string
}

/** Computed decimals without the zeros at their end, which the database keeps and we drop. */
const shortened = (answer: string): string =>
  answer.replace(/(\.\d*?)0*dec\b/g, (_, digits) => `${digits === "." ? "" : digits}dec`)

interface Exception {
  /** Of the table in docs/language.md. */
  readonly row: string
  readonly covers: (query: string, answers: Answers) => boolean
}

/** An answer without its floats beyond 17 digits. */
const withoutLarge = (answer: string): string => answer.replace(/-?\d{18,}f\b/g, "f")

/** Answers like neither evaluator where two rows of the table meet, or where each evaluator differs in another way. */
export const exceptions: ReadonlyArray<Exception> = [
  { row: "scalars under `.*` and `[$]`", covers: (query) => /(?:\.\*|\[\$\]).* FETCH /.test(query) },
  {
    row: "GROUP ALL over nothing",
    covers: (_, { planner, older }) => planner.startsWith("ERR CountScan") && older === "[[]]"
  },
  {
    row: "`math::sum` and `math::mean` in groups beyond 64 bits",
    covers: (query, { planner, mine }) =>
      /math::mean\(/.test(query)
        ? withoutLarge(mine) === withoutLarge(planner)
        : /math::sum\(\w+\) [+*-]/.test(query) && /^ERR Cannot perform .* '-?\d{18,}'/.test(mine)
  }
]

/**
 * Where both evaluators of the database fail alike, the words count too; but not under a window, where they name
 * whichever row they read first.
 */
const isRight = (q: string, answers: Answers): boolean =>
  isLikeOne(q, answers) || exceptions.some(({ covers }) => covers(q, answers))

const isLikeOne = (q: string, { planner, older, mine }: Answers): boolean =>
  mine.startsWith("ERR") && planner === older && !/ (LIMIT|START) /.test(q)
    ? mine === planner
    : [planner, older, shortened(planner), shortened(older)].some((theirs) => agree(theirs, mine))

const ask = async (engines: Engines, lines: ReadonlyArray<string>, values: Params, q: string): Promise<Answers> => {
  const [planner, older] = await engines.ask(q)
  const typed = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, constant(text)])) as {
    [name: string]: Value
  }
  return { planner, older, mine: ours(fromRecords(records(lines)), q, typed) }
}

/** A list with pieces left out, as few as stay interesting; halves first, then smaller pieces. */
const reduced = async <A>(
  items: ReadonlyArray<A>,
  interesting: (items: ReadonlyArray<A>) => Promise<boolean>
): Promise<ReadonlyArray<A>> => {
  let best = items
  for (let size = Math.max(1, best.length >> 1); ; size = Math.max(1, size >> 1)) {
    let again = false
    for (let at = 0; at < best.length; ) {
      const fewer = [...best.slice(0, at), ...best.slice(at + size)]
      if (fewer.length < best.length && (await interesting(fewer))) {
        best = fewer
        again = true
      } else at += size
    }
    if (size === 1 && !again) return best
  }
}

/** The smallest difference found from one, as text to paste. */
const shrink = async (engines: Engines, lines: ReadonlyArray<string>, values: Params, q: string): Promise<string> => {
  const wrong = async (some: ReadonlyArray<string>, text: string): Promise<boolean> => {
    const answers = await ask(engines, some, values, text)
    return !isRight(text, answers) && !answers.mine.startsWith("PARSE") && !answers.planner.startsWith("PARSE")
  }
  const tokens = await reduced(
    q.match(/'(?:[^'\\]|\\.)*'|[A-Za-z_$][\w:$]*|\d[\w.]*|\s+|->|<-|[^\s\w]/gu) ?? [],
    (some) => wrong(lines, some.join(""))
  )
  const text = tokens.join("")
  const few = await reduced(lines, async (some) => {
    await engines.load(some, tables)
    return wrong(some, text)
  })
  await engines.load(few, tables)
  const { planner, older, mine } = await ask(engines, few, values, text)
  await engines.load(lines, tables)
  return `${text}\n  planner ${planner}\n  older   ${older}\n  ours    ${mine}\n  params  ${JSON.stringify(values)}\n  data    ${few.join("\n          ")}\n  from    ${q}`
}

export interface Tally {
  compared: number
  withRows: number
  failing: number
  /** Where the two evaluators of the database differ from each other. */
  unlike: number
  readonly found: Array<string>
}

/**
 * Compares that many rounds: new data, every pair of choices `perChoice` times, and as many queries by grammar alone.
 */
export const compareRounds = async (
  random: Rng,
  engines: Engines,
  rounds: number,
  perChoice: number
): Promise<Tally> => {
  const tally: Tally = { compared: 0, withRows: 0, failing: 0, unlike: 0, found: [] }
  for (let round = 0; round < rounds && tally.found.length < 10; round++) {
    const sample = <A>(arbitrary: fc.Arbitrary<A>, numRuns = 1): Array<A> =>
      fc.sample(arbitrary, { seed: random.below(2 ** 31), numRuns })
    const [lines] = sample(data),
      [values] = sample(params),
      choices = covering(random)
    const queries = [
      ...choices.flatMap((choice) => sample(of(choice), perChoice)),
      ...sample(query, choices.length * perChoice)
    ]
    await engines.load(lines!, tables)
    await engines.set(values!)
    const typed = Object.fromEntries(Object.entries(values!).map(([name, text]) => [name, constant(text)])) as {
      [name: string]: Value
    }
    const source = fromRecords(records(lines!))
    for (const q of queries) {
      const [planner, older] = await engines.ask(q)
      const mine = ours(source, q, typed)
      tally.compared++
      if (mine.startsWith("[") && mine !== "[[]]") tally.withRows++
      if (mine.startsWith("ERR")) tally.failing++
      if (!agree(planner, older)) tally.unlike++
      if (!isRight(q, { planner, older, mine })) tally.found.push(await shrink(engines, lines!, values!, q))
    }
  }
  return tally
}

/** How many pairs of choices there are; a covering has them all. */
export const pairCount = allPairs.length
