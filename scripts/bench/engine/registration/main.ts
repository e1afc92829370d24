/**
 * `npm --prefix scripts/bench/engine run registration`: what one more view of a known shape costs, from its text on, and
 * the first page of a long list.
 *
 * Why from the text: clients send queries as text, and where constants stand in it each text is read by itself. The
 * goal is for views that have no row yet; beside it stand views of one row, which is compared. CPU time of all threads,
 * so garbage is in it too. `--check` exits 1 where a figure is above its goal.
 */
import { Either } from "effect"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import type { View } from "../../../../src/core/ivm/view/view.ts"
import { decodeChange } from "../../../../src/core/record/change.ts"
import { make } from "../../../../src/core/surql/values/recordId.ts"
import type { Obj } from "../../../../src/core/surql/values/value.ts"
import { ParsedQueries } from "../../../../src/ssp/views/registering.ts"
import { judged } from "../judged.ts"

const goalMicros = 50
const firstPageSeconds = 2
const againMs = 1
const stories = 1_000_000
const timesAgain = 1_000
const rounds = 7
const warmUps = 2
/** Views of a round; all of them are held until it ends. */
const perRound = 5_000

interface Case {
  readonly name: string
  /** The text by the number of the view. */
  readonly surql: (view: number) => string
}

const cases: ReadonlyArray<Case> = [
  { name: "one text, another parameter", surql: () => "SELECT * FROM post WHERE author = $author" },
  { name: "another literal", surql: (view) => `SELECT * FROM post WHERE author = user:${view}` },
  {
    name: "another literal, two conjuncts and a window",
    surql: (view) =>
      `SELECT id, title, likes FROM post WHERE author = user:${view} AND likes >= 0 ORDER BY likes DESC LIMIT 10`
  },
  {
    name: "another literal, a link and a list",
    surql: (view) =>
      `SELECT *, author.name AS name, (SELECT * FROM comment WHERE thread = $parent.id LIMIT 3) AS comments FROM post WHERE author = user:${view}`
  }
]

const load = (engine: Engine, table: string, key: number, record: { readonly [field: string]: unknown }): void => {
  const id = `${table}:${key}`
  const typed = (name: string) => (name === "post" ? { author: "record" } : undefined)
  const change = Either.getOrThrow(decodeChange({ table, op: "CREATE", id, record: { ...record, id } }, typed))
  engine.load(change.id, 1, change.doc)
}

const loaded = (): Engine => {
  const engine = new Engine()
  for (let key = 0; key < perRound; key++) {
    load(engine, "user", key, { name: `name ${key}` })
    load(engine, "post", key, { author: `user:${key}`, title: `title ${key}`, likes: key % 100 })
  }
  return engine
}

/** Microseconds of CPU, of all threads, that a piece of work takes. */
const cpuMicros = (work: () => void): number => {
  const before = process.cpuUsage()
  work()
  const { system, user } = process.cpuUsage(before)
  return system + user
}

/** Microseconds of CPU for each view of one round; authors below {@link perRound} have a post each, the others none. */
const round = (engine: Engine, { surql }: Case, number: number, hasRow: boolean): number => {
  const queries = new ParsedQueries()
  const views: Array<View> = []
  // Rounds begin at another view, so that no text is met again at once.
  const first = number * 7
  const authors = Array.from({ length: perRound }, (_, i) => ((first + i) % perRound) + (hasRow ? 0 : perRound))
  const texts = authors.map(surql)
  const params = authors.map((author) => ({ author: make("user", author) }))
  const micros = cpuMicros(() => {
    for (let i = 0; i < perRound; i++) {
      const { select } = Either.getOrThrow(queries.parse(texts[i]!))
      views.push(Either.getOrThrow(engine.acquire(select, params[i]!)))
    }
  })
  for (let i = 0; i < perRound; i++) {
    const rows = views[i]!.rows()
    const titles = rows.map((row) => (row.value() as Obj)["title"]).join()
    if (titles !== (hasRow ? `title ${authors[i]}` : "")) throw new Error(`${texts[i]} shows "${titles}"`)
    engine.release(views[i]!)
  }
  return micros / perRound
}

for (const each of cases) {
  const engine = loaded()
  // The shape is known: one view of it is there throughout.
  Either.getOrThrow(
    engine.acquire(Either.getOrThrow(new ParsedQueries().parse(each.surql(2 * perRound))).select, {
      author: make("user", 2 * perRound)
    })
  )
  const [bare, withRow] = [false, true].map((hasRow) => {
    const figures: Array<number> = []
    for (let number = 0; number < warmUps + rounds; number++) {
      const micros = round(engine, each, number, hasRow)
      if (number >= warmUps) figures.push(micros)
    }
    figures.sort((a, b) => a - b)
    const middle = figures[figures.length >> 1]!
    return { middle, text: `${middle.toFixed(1)} (${figures[0]!.toFixed(1)} to ${figures.at(-1)!.toFixed(1)})` }
  })
  const verdict = judged(bare!.middle <= goalMicros)
  console.log(`| ${each.name} | ${bare!.text} µs | ${goalMicros} µs | ${verdict} | ${withRow!.text} µs |`)
}

/**
 * The first page of a list of a million rows, which builds the list's index, and what the page costs when it is dropped
 * and registered again while another page keeps that index.
 */
const longList = (): { readonly firstSeconds: number; readonly againMs: number } => {
  const engine = new Engine()
  for (let key = 0; key < stories; key++) {
    // Scattered over the list: the table is in no order of it.
    const score = (key * 7_919) % 1_000,
      at = (key * 104_729) % 100_003
    load(engine, "story", key, { published: key % 5 > 0, score, at })
  }
  const queries = new ParsedQueries()
  const page = (start: number): View => {
    const text = `SELECT score, at FROM story WHERE published = true ORDER BY score DESC, at DESC LIMIT 50 START ${start}`
    return Either.getOrThrow(engine.acquire(Either.getOrThrow(queries.parse(text)).select, {}))
  }
  let first!: View
  const firstMicros = cpuMicros(() => {
    first = page(0)
  })
  page(stories / 2)
  const shown = (): string => JSON.stringify(first.rows().map((row) => row.value()))
  const wanted = shown()
  const again = cpuMicros(() => {
    for (let time = 0; time < timesAgain; time++) {
      engine.release(first)
      first = page(0)
    }
  })
  if (first.rows().length !== 50 || shown() !== wanted) throw new Error("the page that came again shows other rows")
  return { firstSeconds: firstMicros / 1e6, againMs: again / 1e3 / timesAgain }
}

const list = longList()
const told = (what: string, is: number, goal: number, unit: string): void => {
  console.log(`| ${what} | ${is.toPrecision(2)} ${unit} | ${goal} ${unit} | ${judged(is <= goal)} |`)
}
told("the first page of 1,000,000 rows, two sort keys", list.firstSeconds, firstPageSeconds, "s")
told("the same page dropped and registered again while another lives", list.againMs, againMs, "ms")
