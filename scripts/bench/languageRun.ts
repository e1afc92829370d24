/**
 * What the language costs, measured in one process that runs the built code: the lines `language.ts` prints.
 *
 * Why a process of its own: the bench is run through a transformer that makes every call across modules slower, and
 * production does not. Why CPU time: on shared cores it is stable and the wall clock is not. Engines take turns, round
 * after round, so that whatever else the machine does hits all alike. Every engine must give the same rows, or nothing
 * is measured.
 */
import { createRequire } from "node:module"
import { isDeepStrictEqual } from "node:util"
import { createNodeEngines } from "@surrealdb/node"
import { Either } from "effect"
import { Surreal } from "surrealdb"
import { Engine } from "../../src/core/ivm/engine.ts"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../src/core/surql/evaluate/scope.ts"
import { compileSelect, evaluate } from "../../src/core/surql/evaluate/select/select.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"
import { fromJson, toJson } from "../../src/core/surql/values/json.ts"
import * as RecordIds from "../../src/core/surql/values/recordId.ts"
import type { Obj, Value } from "../../src/core/surql/values/value.ts"

interface Sqlite {
  readonly exec: (sql: string) => void
  readonly prepare: (sql: string) => {
    readonly run: (...values: ReadonlyArray<unknown>) => void
    readonly all: () => ReadonlyArray<{ readonly id: string; readonly doc: string }>
  }
}

/** One line of the result: microseconds of CPU per operation, one figure per round. */
interface Figures {
  readonly group: string
  readonly name: string
  readonly figures: Array<number>
}

const rounds = 5
const warmUps = 1
const size = 100_000
const view =
  "SELECT id, title, created, author.name AS name FROM post WHERE author = $author AND likes > 10 ORDER BY created DESC LIMIT 20"

const record = (n: number): { readonly [name: string]: unknown } => ({
  author: `user:${n % 997}`,
  title: `Post number ${n}`,
  likes: (n * 7919) % 1000,
  draft: n % 2 === 0,
  tags: ["a", "b"],
  place: { city: `c${n % 50}`, zip: n }
})

const cases = [
  {
    surql: "SELECT VALUE id FROM post WHERE likes >= 900 AND draft = false",
    where: "json_extract(doc, '$.likes') >= 900 AND json_extract(doc, '$.draft') = 0",
    whole: false
  },
  {
    surql: "SELECT * FROM post WHERE place.city = 'c7' AND likes < 50",
    where: "json_extract(doc, '$.place.city') = 'c7' AND json_extract(doc, '$.likes') < 50",
    whole: true
  }
] as const

const parsed = (text: string) => Either.getOrThrowWith(parseSelect(text), (fault) => new Error(fault.message))

/** A piece of work, and how many times it is done in a round. */
type Run = readonly [name: string, work: () => unknown, times: number]

const race = async (group: string, runs: ReadonlyArray<Run>): Promise<ReadonlyArray<Figures>> => {
  const all = runs.map(([name]): Figures => ({ group, name, figures: [] }))
  for (let round = 0; round < warmUps + rounds; round++) {
    for (const [i, [, work, times]] of runs.entries()) {
      const began = process.cpuUsage()
      for (let n = 0; n < times; n++) await work()
      const { system, user } = process.cpuUsage(began)
      if (round >= warmUps) all[i]!.figures.push((system + user) / times)
    }
  }
  return all
}

const compiling = (): ReadonlyArray<Run> => {
  const engine = new Engine()
  return [
    ["parse + compile for the plain evaluator", () => compileSelect(parsed(view)), 5000],
    [
      "parse + a shape and an instance of its own in the engine",
      () =>
        engine.release(
          Either.getOrThrowWith(
            engine.acquire(parsed(view), { author: "user:1" }),
            (refused) => new Error(refused.reason)
          )
        ),
      5000
    ]
  ]
}

const filtering = async (): Promise<ReadonlyArray<Figures>> => {
  const source = fromRecords(
    Array.from({ length: size }, (_, n) => ({ ...(fromJson({ ...record(n) }) as Obj), id: RecordIds.make("post", n) }))
  )
  const sqlite = new (createRequire(import.meta.url)("better-sqlite3") as new (path: string) => Sqlite)(":memory:")
  sqlite.exec("CREATE TABLE post (key INTEGER PRIMARY KEY, id TEXT NOT NULL, doc TEXT NOT NULL); BEGIN")
  const insert = sqlite.prepare("INSERT INTO post VALUES (?, ?, ?)")
  for (let n = 0; n < size; n++) insert.run(n, `post:${n}`, JSON.stringify({ ...record(n), id: `post:${n}` }))
  sqlite.exec("COMMIT")
  const surreal = new Surreal({ engines: createNodeEngines() })
  await surreal.connect("mem://")
  await surreal.use({ namespace: "bench", database: "bench" })
  await surreal.query("DEFINE TABLE post TYPE ANY SCHEMALESS")
  for (let from = 0; from < size; from += 5000) {
    await surreal.query("INSERT INTO post $rows RETURN NONE", {
      rows: Array.from({ length: 5000 }, (_, i) => ({ id: from + i, ...record(from + i) }))
    })
  }
  const all: Array<Figures> = []
  for (const { surql, where, whole } of cases) {
    const select = parsed(surql),
      statement = sqlite.prepare(`SELECT id, doc FROM post WHERE ${where}`)
    const runs = [
      [
        "plain evaluator",
        () =>
          Either.getOrThrowWith(
            evaluate(select, { source, params: {}, budget: makeBudget(1e9, "none") }),
            (failure) => new Error(failure.reason)
          )
      ],
      ["SurrealDB embedded", async () => (await surreal.query(surql))[0]],
      [
        "better-sqlite3, JSON column",
        () => statement.all().map((row) => (whole ? (JSON.parse(row.doc) as unknown) : row.id))
      ]
    ] as const
    const answers = await Promise.all(
      runs.map(async ([, run]) => JSON.parse(JSON.stringify(await run())) as ReadonlyArray<unknown>)
    )
    const ours = toJson(runs[0][1]() as Value) as ReadonlyArray<unknown>
    if (ours.length === 0 || answers.slice(1).some((answer) => !isDeepStrictEqual(sorted(answer), sorted(ours))))
      throw new Error(`the engines disagree on ${surql}`)
    all.push(
      ...(await race(
        `${surql} (${ours.length} of ${size} rows)`,
        runs.map(([engine, run]) => [engine, run, 1] as const)
      ))
    )
  }
  await surreal.close()
  return all
}

const sorted = (rows: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  rows.map((row) =>
    row !== null && typeof row === "object"
      ? Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))
      : row
  )

console.log(JSON.stringify([...(await race(view, compiling())), ...(await filtering())]))
