/**
 * Mutated query texts, and whether the real database's parser takes a text.
 *
 * Why so: texts near real ones reach further into a parser than noise does, so the corpus is cut and spliced by tokens.
 * The database is asked about many texts at once, inside a branch that never runs, and only a refused bundle is taken
 * apart.
 */
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"
import { readCorpus } from "../../../kit/data/corpusFile.ts"
import type { Rng } from "../../../kit/data/random.ts"

const tokens = (query: string): Array<string> =>
  query.match(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w:]*|\d+[\w.]*|\s+|[^\s\w]/gu) ?? []

const queries = readCorpus().flatMap((f) => f.cases.map((c) => c.query))
const words = [...new Set(queries.flatMap(tokens))]

/** A text of the corpus with one to three tokens removed, inserted, replaced, or a piece of another text put in. */
export const mutate = (random: Rng): string => {
  const out = tokens(random.pick(queries))
  for (let n = 1 + random.below(3); n > 0; n--) {
    const at = random.below(out.length + 1),
      what = random.next()
    if (what < 0.3) out.splice(at, 1)
    else if (what < 0.8) out.splice(at, what < 0.6 ? 0 : 1, random.pick(words))
    else out.splice(at, 0, ...tokens(random.pick(queries)).slice(2, 8))
  }
  return out.join("")
}

/** A comment would swallow what a text is wrapped in. */
export const hasComment = (text: string): boolean => /--|\/\/|#|\/\*/.test(text)

const keywords = (
  "ALTER BEGIN BREAK CANCEL COMMIT CONTINUE CREATE DEFINE DELETE FOR IF INFO INSERT KILL LIVE OPTION REBUILD RETURN RELATE REMOVE SELECT LET SHOW SLEEP THROW UPDATE UPSERT USE DIFF RAND " +
  "NONE NULL AFTER BEFORE VALUE BY ALL TRUE FALSE WHERE TABLE SEQUENCE FUNCTION AND AS ASC CONTAINS COUNT DESC ELSE END EXPLAIN FETCH FROM GROUP IN IS LIMIT NOT OMIT ONLY OR ORDER SPLIT START THEN " +
  "TIMEOUT VERSION WITH NaN Infinity ∅ u fn ml this record string type rand"
).split(" ")

const places = [
  "RETURN W",
  "SELECT W, a FROM p",
  "SELECT a AS W FROM p",
  "SELECT * FROM W",
  "SELECT a.W FROM p",
  "SELECT W.a FROM p",
  "SELECT W() FROM p",
  "SELECT W(1) FROM p",
  "SELECT * FROM p WHERE W = 1",
  "SELECT * FROM p WHERE a = W",
  "SELECT * FROM p ORDER BY W",
  "SELECT * FROM p SPLIT W",
  "SELECT a FROM p FETCH W",
  "SELECT * OMIT W FROM p",
  "SELECT { W: 1 } FROM p",
  "SELECT W:1 FROM p",
  "SELECT * FROM W:1",
  "SELECT ->W->W FROM p",
  "SELECT ->(W WHERE a) FROM p",
  "SELECT W + 1 FROM p",
  "SELECT -W FROM p",
  "SELECT [W] FROM p",
  "SELECT (W) FROM p",
  "SELECT a.{W} FROM p",
  "RETURN { W }",
  "RETURN { W; 1 }",
  "RETURN { 1; W }",
  "RETURN |$W| $W",
  "SELECT VALUE W W FROM p",
  "RETURN p:W",
  "RETURN W[0]",
  "RETURN W..2",
  "RETURN 1..W",
  "RETURN <W> 1",
  "RETURN W::x()",
  "RETURN IF W THEN W ELSE W END",
  "SELECT * FROM p LIMIT W",
  "RETURN a.W()",
  "INFO FOR TABLE W",
  "SELECT W a FROM p",
  "RETURN @W",
  "RETURN W'a'",
  "RETURN W W",
  "RETURN W = W",
  "RETURN { LET $W = 1; 2 }",
  "RETURN [1].map(|$a: W| 1)"
]

/** Every keyword in every place a name or an expression can stand. */
export const keywordTexts = (): ReadonlyArray<string> =>
  places.flatMap((place) =>
    keywords.flatMap((word) => [word, word.toLowerCase()].map((w) => place.replace(/\bW\b/g, w)))
  )

export interface Parses {
  /** Those of the texts that the database does not parse, each with what it says. */
  readonly refused: (texts: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  readonly close: () => Promise<void>
}

const bundle = 50

/** Starts a database to ask. */
export const startParser = async (): Promise<Parses> => {
  const db = new Surreal({ engines: createNodeEngines() })
  await db.connect("mem://")
  await db.use({ namespace: "test", database: "parse" })
  const check = async (texts: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    try {
      await db.query(`IF false { ${texts.map((text) => `IF true { ${text} };`).join("\n")} }`).responses()
      return []
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("Parse error")) throw error
      if (texts.length === 1) return [`${texts[0]!}\n  ${error.message.split("\n").slice(0, 4).join(" ")}`]
      const half = texts.length >> 1
      return [...(await check(texts.slice(0, half))), ...(await check(texts.slice(half)))]
    }
  }
  return {
    refused: async (texts) => {
      const out: Array<string> = []
      for (let i = 0; i < texts.length; i += bundle) out.push(...(await check(texts.slice(i, i + bundle))))
      return out
    },
    close: async () => {
      await db.close()
    }
  }
}
