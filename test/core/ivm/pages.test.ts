/**
 * Pages of ordered indexes: what they show beside a plain sort of many rows, what they hold, and which of them a change
 * looks at (law L7, D42).
 */
import { Either } from "effect"
import { describe, expect, it, test, vi } from "vitest"
import { type Rng, rounds, runs, seeded } from "../../../kit/data/random.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { holdingsOf } from "../../../src/core/ivm/holdings.ts"
import { PagedView } from "../../../src/core/ivm/view/pagedView.ts"
import { newWorkCounters } from "../../../src/core/ivm/workCounters.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { Regex, type Value } from "../../../src/core/surql/values/value.ts"
import { change, Desk, type Watching } from "./desk.ts"
import type { Json } from "./generateData.ts"
import { reachable } from "./reachable.ts"
import { decode } from "./runCase.ts"

interface Row {
  readonly id: number
  readonly list: number
  readonly at: number
  readonly text: string
  readonly kind: number
  /** Without it, a view that adds to it fails on the row. */
  readonly more: number | undefined
}

/** A view, and what a plain look at all rows says it shows. */
interface Asked {
  readonly query: string
  readonly shows: (rows: ReadonlyArray<Row>) => ReadonlyArray<Row>
}

type Placed = Pick<Row, "id" | "at">
const upwards = (a: Placed, b: Placed): number => a.at - b.at || a.id - b.id
const downwards = (a: Placed, b: Placed): number => b.at - a.at || a.id - b.id

const pageOf = (random: Rng): Asked => {
  const lists = random.chance(0.3) ? [0, 1, 2].slice(random.below(3)) : [random.below(2)]
  const start = random.pick([0, 0, 1, 7, 20, 40, 60, 80, 100, 120, 140, 390]),
    limit = random.pick([1, 4, 20, 20, 20, 50])
  const order = random.chance(0.5) ? upwards : downwards
  const bound = random.chance(0.4) ? random.below(60) : undefined
  const op = random.pick(["<", "<=", ">", ">="])
  const inRange = ({ at }: Row): boolean =>
    bound === undefined || (op === "<" ? at < bound : op === "<=" ? at <= bound : op === ">" ? at > bound : at >= bound)
  const fails = start === 0 && random.chance(0.3)
  // A part that no index decides: nearly all rows pass it, or one in ten.
  const [more, passes] = random.pick<readonly [string, (row: Row) => boolean]>([
    ["", () => true],
    ["", () => true],
    [" AND kind != 3", ({ kind }) => kind !== 3],
    [" AND (kind = 3 OR kind = 20)", ({ kind }) => kind === 3]
  ])
  const filter = lists.length === 1 ? `list = ${lists[0]}` : `list IN [${lists.join(", ")}]`
  return {
    query: `SELECT *${fails ? ", more + 1 AS most" : ""} FROM t WHERE ${filter}${bound === undefined ? "" : ` AND at ${op} ${bound}`}${more} ORDER BY at ${order === upwards ? "ASC" : "DESC"} LIMIT ${limit} START ${start}`,
    shows: (rows) =>
      rows
        .filter((row) => lists.includes(row.list) && inRange(row) && passes(row) && (!fails || row.more !== undefined))
        .sort(order)
        .slice(start, start + limit)
  }
}

seeded(
  "L1 L7 hundreds of pages of the same lists show what a sort of all rows shows, after every step",
  "test/core/ivm/pages.test.ts",
  (random) => {
    for (let run = 0; run < runs(1); run++) {
      const on = new Desk()
      const rows = new Map<number, Row>()
      const next = (): unknown => {
        const id = random.below(400),
          before = rows.get(id)
        if (before !== undefined && random.chance(0.2)) {
          rows.delete(id)
          return change(`t:${id}`, undefined)
        }
        // Most changes move a row a little, or not at all.
        const row: Row = {
          id,
          list: before !== undefined && random.chance(0.9) ? before.list : random.below(3),
          at: before !== undefined && random.chance(0.3) ? before.at : random.below(60),
          kind: before !== undefined && random.chance(0.7) ? before.kind : random.below(10),
          text: `${random.below(1_000_000)}`,
          more: random.chance(0.8) ? 1 : undefined
        }
        rows.set(id, row)
        return change(
          `t:${id}`,
          {
            list: row.list,
            at: row.at,
            text: row.text,
            kind: row.kind,
            ...(row.more !== undefined && { more: row.more })
          },
          before === undefined ? "CREATE" : "UPDATE"
        )
      }
      for (let i = 0; i < 300; i++) on.send(next())
      const asked = new Map<Asked, Watching>()
      for (let i = 0; i < 150; i++) {
        const page = pageOf(random)
        asked.set(page, on.watch(page.query))
      }
      const shown = new Map([...asked].map(([page, view]) => [page, new Set(view.keys())]))
      for (let step = 0; step < 120; step++) {
        if (random.chance(0.3)) on.sendAll(distinct(Array.from({ length: 1 + random.below(30) }, next)))
        else on.send(next())
        const all = [...rows.values()]
        for (const [page, view] of asked) {
          const wanted = page.shows(all).map(({ id }) => `t:${id}`)
          expect(view.keys(), `step ${step}: ${page.query}`).toEqual(wanted)
          expect(view.view.size).toBe(wanted.length)
          const delta = view.delta()
          const then = shown.get(page)!
          expect(
            [delta?.additions.map(([id]) => id).sort() ?? [], [...(delta?.removals ?? [])].sort()],
            `delta of step ${step}: ${page.query}`
          ).toEqual([
            wanted.filter((id) => !then.has(id)).sort(),
            [...then].filter((id) => !wanted.includes(id)).sort()
          ])
          shown.set(page, new Set(wanted))
        }
        if (step % 40 === 20) {
          // Some are let go, and others come.
          for (const [page, view] of [...asked].filter(() => random.chance(0.2))) {
            on.engine.release(view.view)
            asked.delete(page)
            const other = pageOf(random)
            asked.set(other, on.watch(other.query))
            shown.set(other, new Set(asked.get(other)!.keys()))
          }
        }
      }
    }
  }
)

/** One state for each record: a step that names one twice leaves the last. */
const distinct = (changes: ReadonlyArray<unknown>): ReadonlyArray<unknown> => [
  ...new Map(changes.map((one) => [(one as { readonly id: string }).id, one])).values()
]

const posts = (count: number, engine?: Engine): Desk => {
  const on = new Desk(engine)
  for (let n = 1; n <= count; n++) on.put(`post:${n}`, { n, live: n % 5 !== 0, author: `user:${n % 7}` })
  return on
}

describe("L7 a page", () => {
  test("holds the rows it shows, whatever the filter matches beside, and one index serves all pages of a list", () => {
    const on = posts(2_000)
    const before = holdingsOf(on.engine.kept)
    const views = Array.from({ length: 40 }, (_, i) =>
      on.watch(`SELECT * FROM post WHERE live = true ORDER BY n DESC, id LIMIT 10 START ${10 * i}`)
    )
    views.push(on.watch("SELECT id, n FROM post WHERE live = true AND n < 700 ORDER BY n DESC LIMIT 10"))
    const held = holdingsOf(on.engine.kept)
    expect([held.heldRows - before.heldRows, held.indexEntries]).toEqual([410, 2_000])
    expect(views[3]!.view.plan()).toContainEqual(
      expect.objectContaining({ operator: "page of an index by n, read by 41 views", rows: 2_000 })
    )
    for (const { view } of views) on.engine.release(view)
    const after = holdingsOf(on.engine.kept)
    expect([after.heldRows, after.indexEntries, after.instances]).toEqual([before.heldRows, 0, 0])
  })

  test("evaluates links and subqueries of the rows it shows, and of no other", () => {
    const counters = newWorkCounters()
    const on = posts(500, new Engine({ counters }))
    for (let i = 0; i < 7; i++) on.put(`user:${i}`, { name: `n${i}` })
    for (let i = 0; i < 600; i++) on.put(`comment:${i}`, { post: `post:${1 + (i % 500)}`, at: i })
    Object.assign(counters, newWorkCounters())
    const view = on.watch(
      "SELECT *, author.name AS by, (SELECT * FROM comment WHERE post = $parent.id ORDER BY at DESC LIMIT 3) AS last FROM post ORDER BY n DESC LIMIT 5"
    )
    // Five rows, and one comment below each.
    expect(counters.rows).toBe(10)
    on.put("comment:1000", { post: "post:3", at: 1 })
    expect(view.delta()).toBeUndefined()
    on.put("comment:1001", { post: "post:499", at: 1 })
    expect(view.delta()?.updates.length).toBe(1)
  })

  test.each([
    ["a change of a row that stays", (on: Desk) => on.put("post:21", { n: 1_979, live: true, a: 1 }, "UPDATE"), 1],
    [
      "a change of a row that no page shows",
      (on: Desk) => on.put("post:1999", { n: 1, live: true, a: 1 }, "UPDATE"),
      0
    ],
    ["a move inside one page", (on: Desk) => on.put("post:21", { n: 1_978.5, live: true }, "UPDATE"), 1],
    ["a move between two neighbours", (on: Desk) => on.put("post:21", { n: 1_964.5, live: true }, "UPDATE"), 2],
    ["a move behind all pages", (on: Desk) => on.put("post:1990", { n: 5.5, live: true }, "UPDATE"), 0],
    ["a row that comes behind all pages", (on: Desk) => on.put("post:3000", { n: 0, live: true }), 0],
    ["a row that comes before all pages", (on: Desk) => on.put("post:3000", { n: 9_999, live: true }), 100],
    ["a row of another key", (on: Desk) => on.put("post:3000", { n: 9_999, live: false }), 0]
  ])("%s reads the pages that it changes", (_, step, pages) => {
    const counters = newWorkCounters()
    const on = new Desk(new Engine({ counters }))
    for (let n = 1; n <= 2_000; n++) on.put(`post:${n}`, { n: 2_000 - n, live: true })
    for (let i = 0; i < 100; i++)
      on.watch(`SELECT * FROM post WHERE live = true ORDER BY n DESC LIMIT 15 START ${15 * i}`)
    Object.assign(counters, newWorkCounters())
    step(on)
    expect(counters.windows).toBe(pages)
  })

  test("of a range that begins elsewhere is found by where it begins: one of a hundred is read", () => {
    const counters = newWorkCounters()
    const on = new Desk(new Engine({ counters }))
    for (let n = 0; n < 2_000; n++) on.put(`post:${n}`, { n })
    for (let i = 0; i < 100; i++) on.watch(`SELECT * FROM post WHERE n < ${2_000 - 15 * i} ORDER BY n DESC LIMIT 15`)
    Object.assign(counters, newWorkCounters())
    on.put("post:3000", { n: 1_500.5 })
    expect(counters.windows).toBe(1)
  })
})

describe("D42 rows that fail", () => {
  const page = "SELECT *, n + 1 AS more FROM post ORDER BY at LIMIT 3"

  test("are left out and named where the page has reached them, the page goes on, and they come when they are mended", () => {
    const on = new Desk()
    for (let at = 0; at < 10; at++) on.put(`post:${at}`, { at, ...(at % 2 === 1 && { n: at }) })
    const view = on.watch(page)
    const failing = (): ReadonlyArray<string> => view.view.errors().map(({ id }) => id)
    expect([view.keys(), failing()]).toEqual([
      ["post:1", "post:3", "post:5"],
      ["post:0", "post:2", "post:4"]
    ])
    on.put("post:2", { at: 2, n: 2 }, "UPDATE")
    expect([view.keys(), failing()]).toEqual([["post:1", "post:2", "post:3"], ["post:0"]])
    on.put("post:1", { at: 1 }, "UPDATE")
    expect([view.keys(), failing()]).toEqual([
      ["post:2", "post:3", "post:5"],
      ["post:0", "post:1", "post:4"]
    ])
    on.put("post:0", { at: 100 }, "UPDATE").remove("post:1")
    expect([view.keys(), failing()]).toEqual([["post:2", "post:3", "post:5"], ["post:4"]])
    on.engine.release(view.view)
    expect(holdingsOf(on.engine.kept)).toMatchObject({ heldRows: 0, readingRows: 0, indexEntries: 0 })
  })
})

test("D42 a page whose next row fails goes on to the one behind it", () => {
  const on = new Desk()
  for (let at = 0; at < 4; at++) on.put(`post:${at}`, { at, ...(at !== 1 && { n: at }) })
  const view = on.watch("SELECT *, n + 1 AS more FROM post ORDER BY at LIMIT 1")
  on.remove("post:0")
  expect([view.keys(), view.view.errors().map(({ id }) => id)]).toEqual([["post:2"], ["post:1"]])
  expect(view.delta()).toMatchObject({ additions: [["post:2", 1]], removals: ["post:0"] })
})

test("L1 rows that no index can file, for they equal what they match, are on every page whose filter they meet", () => {
  const on = new Desk()
  const put = (id: string, g: Value, n: number): void => {
    const { doc, ...about } = decode(change(id, { n }, "UPDATE"))
    on.engine.applyAll(on.engine.plan([{ ...about, doc: { ...doc, g } }]).filter((write) => write !== undefined))
  }
  for (let n = 0; n < 12; n++) put(`t:${n}`, n % 2 === 0 ? "ab" : "ac", n)
  const pages = ["LIMIT 2 START 1", "LIMIT 4", "LIMIT 3 START 4"].map((window) =>
    on.watch(`SELECT * FROM t WHERE g = 'ab' ORDER BY n ${window}`)
  )
  const agree = (): void => {
    const all = on.watch("SELECT * FROM t WHERE g = 'ab' ORDER BY n")
    expect(pages.map((page) => page.keys())).toEqual([
      all.keys().slice(1, 3),
      all.keys().slice(0, 4),
      all.keys().slice(4, 7)
    ])
    on.engine.release(all.view)
  }
  agree()
  put("t:20", new Regex("^ab$"), -1)
  expect(pages[1]!.keys()[0]).toBe("t:20")
  agree()
  put("t:21", new Regex("^xy$"), 0.5)
  agree()
  put("t:21", new Regex("b$"), 0.5)
  agree()
  put("t:4", new Regex("^a"), 7)
  agree()
  put("t:20", "ac", -1)
  agree()
  on.remove("t:21")
  agree()
})

seeded(
  "L7 an index is built in slices, and whatever comes, changes and goes meanwhile is in it once",
  "test/core/ivm/pages.test.ts",
  (random) => {
    for (let run = 0; run < rounds(6); run++) {
      const on = new Desk()
      // Keys that few rows have come and go with them; every other id is of text.
      const idOf = (i: number): string => (i % 2 === 0 ? `t:${i}` : `t:x${i}`)
      const record = (): Json => ({ list: random.below(random.chance(0.9) ? 2 : 400), at: random.below(50) })
      for (let i = 0; i < 7_000; i += 70)
        on.sendAll(Array.from({ length: 70 }, (_, n) => change(idOf(i + n), record())))
      const move = (): void => {
        const i = random.below(7_300)
        if (random.chance(0.3)) return void on.remove(idOf(i))
        // A regular expression has no key.
        const { doc, ...about } = decode(change(idOf(i), record(), "UPDATE"))
        const list = random.chance(0.1) ? new Regex(random.pick(["0", "1", "7"])) : doc["list"]
        on.engine.applyAll(on.engine.plan([{ ...about, doc: { ...doc, list } }]).filter((one) => one !== undefined))
      }
      const filter = random.pick(["list = 1", "list = 7", "list IN [0, 1, 300]", "list = 1 AND at < 30"])
      const order = random.pick(filter.includes("at <") ? ["at DESC", "at, list"] : ["at DESC", "id", "list, at"])
      const query = `SELECT * FROM t WHERE ${filter} ORDER BY ${order}`
      const slices = on.engine.acquireSliced(Either.getOrThrow(parseSelect(`${query} LIMIT 1000`)), {})
      let pauses = 0
      let step = slices.next()
      for (; step.done !== true; step = slices.next()) {
        pauses++
        for (let n = random.below(90); n > 0; n--) move()
      }
      expect(pauses).toBeGreaterThan(12)
      const view = Either.getOrThrow(step.value)
      const agree = (): void => {
        const all = on.watch(query)
        expect(view.rows().map(({ key }) => key)).toEqual(all.keys().slice(0, 1000))
        on.engine.release(all.view)
        expect([query, entries()]).toEqual([query, on.engine.store.size("t")])
      }
      const entries = (): number => on.engine.kept.ordered.entries()
      agree()
      for (let n = 0; n < 300; n++) move()
      agree()
      for (let i = 0; i < 7_300; i += 73)
        on.sendAll(Array.from({ length: 73 }, (_, n) => change(idOf(i + n), undefined)))
      agree()
      expect(reachable(on.engine).get("KeyRows") ?? 0, "the page's own keys, and rows without one").toBeLessThan(5)
    }
  }
)

test("L7 a row that the scan of a table meets twice, for counted ids were filled up meanwhile, is shown once", () => {
  const on = new Desk()
  on.put("t:7000", { at: -1 })
  for (let i = 0; i < 3_000; i++) on.put(`t:x${i}`, { at: i })
  const slices = on.engine.acquireSliced(Either.getOrThrow(parseSelect("SELECT * FROM t ORDER BY at LIMIT 3")), {})
  slices.next()
  for (let i = 0; i < 600; i++) on.put(`t:y${i}`, { at: 9_000 })
  on.put("t:1", { at: 9_000 })
  let step = slices.next()
  while (step.done !== true) step = slices.next()
  const view = Either.getOrThrow(step.value)
  expect(view.rows().map(({ key }) => key)).toEqual(["t:7000", "t:x0", "t:x1"])
})

test("L7 a row that the scan of a table meets twice is filed once under a key that no view reads yet", () => {
  const on = new Desk()
  const of = (list: number) => `SELECT * FROM t WHERE list = ${list} ORDER BY at LIMIT 3`
  on.put("t:7000", { at: -1, list: 2 })
  for (let i = 0; i < 3_000; i++) on.put(`t:x${i}`, { at: i, list: i === 7 ? 2 : 1 })
  const slices = on.engine.acquireSliced(Either.getOrThrow(parseSelect(of(1))), {})
  slices.next()
  for (let i = 0; i < 600; i++) on.put(`t:y${i}`, { at: 9_000, list: 1 })
  on.put("t:1", { at: 9_000, list: 1 })
  while (slices.next().done !== true);
  on.remove("t:7000")
  expect(on.watch(of(2)).keys()).toEqual(["t:x7"])
  expect(on.engine.kept.ordered.entries()).toBe(on.engine.store.size("t"))
})

describe("L7 a filter that few rows pass", () => {
  const looks = () => vi.spyOn(PagedView.prototype, "admits")
  const way = ({ view }: Watching): string | undefined =>
    view
      .plan()
      .map(({ operator }) => operator)
      .find((operator) => /^(?:candidates|walk)/.test(operator))

  it("keeps its candidates, and a row that goes needs no walk", ({ onTestFinished }) => {
    const on = new Desk()
    for (let i = 0; i < 12_000; i++) on.put(`t:${i}`, { at: i, kind: i % 1_000 === 7 ? "rare" : "usual" })
    const rare = on.watch("SELECT * FROM t WHERE kind != 'usual' ORDER BY at LIMIT 3")
    const usual = on.watch("SELECT * FROM t WHERE kind != 'rare' ORDER BY at LIMIT 3")
    expect(way(rare)).toBe("candidates, all that match: fewer than 1 row in 256 passed the filter")
    expect(way(usual)).toBe("walk over the index, filtering: more than 1 row in 256 passes")
    // What the first fill did not come to is walked over in parts.
    on.remove("t:7").remove("t:1007")
    const looked = looks()
    onTestFinished(() => looked.mockRestore())
    for (let i = 2; i < 9; i++) on.remove(`t:${i * 1_000 + 7}`)
    expect(rare.keys()).toEqual(["t:9007", "t:10007", "t:11007"])
    expect(usual.keys()).toEqual(["t:0", "t:1", "t:2"])
    expect(looked.mock.calls.length, "rows filtered").toBeLessThan(100)
  })

  it("walks again when the data is another, and keeps candidates again when it is as before", () => {
    const on = new Desk()
    const put = (i: number, pass: boolean): void => void on.put(`t:${i}`, { at: i, pass }, "UPDATE")
    for (let i = 0; i < 9_000; i++) put(i, i % 1_000 === 0)
    const view = on.watch("SELECT * FROM t WHERE pass != false ORDER BY at LIMIT 3")
    expect(way(view)).toMatch(/^candidates/)
    for (let i = 0; i < 9_000; i++) put(i, true)
    expect(way(view)).toMatch(/^walk/)
    for (let i = 8_999; i >= 0; i--) put(i, i % 1_000 === 0)
    for (let i = 0; i < 5; i++) on.remove(`t:${i * 1_000}`)
    expect(view.keys()).toEqual(["t:5000", "t:6000", "t:7000"])
    expect(way(view)).toMatch(/^candidates/)
  })

  it("keeps them once for all views of the filter, whatever these project, skip and show", ({ onTestFinished }) => {
    const on = new Desk()
    const put = (i: number, more: Json = {}): void =>
      void on.put(`t:${i}`, { at: i, kind: i % 1_000 === 7 ? "rare" : "usual", ...more }, "UPDATE")
    for (let i = 0; i < 12_000; i++) put(i)
    const looked = looks()
    onTestFinished(() => looked.mockRestore())
    const query = "FROM t WHERE kind != 'usual' ORDER BY at"
    const pages = ["*", "at, kind AS sort", "at"].flatMap((shown) =>
      ["LIMIT 3", "LIMIT 2 START 1", "LIMIT 4 START 3"].map((window) => on.watch(`SELECT ${shown} ${query} ${window}`))
    )
    const once = 12_000
    expect(looked.mock.calls.length, "each row is filtered once").toBeLessThanOrEqual(once)
    const candidates = ({ view }: Watching) => view.plan().find(({ operator }) => /^(?:candidates|walk)/.test(operator))
    expect(pages.map((page) => candidates(page)?.operator)).toEqual(
      pages.map(() => "candidates, all that match: fewer than 1 row in 256 passed the filter, kept once for 9 views")
    )
    const shows = (): void => {
      const all = on.watch(`SELECT * ${query}`)
      for (const [i, page] of pages.entries()) {
        const [start, end] = [
          [0, 3],
          [1, 3],
          [3, 7]
        ][i % 3]!
        expect(page.keys()).toEqual(all.keys().slice(start, end))
      }
      on.engine.release(all.view)
    }
    shows()
    looked.mockClear()
    put(500, { kind: "rare" })
    expect(looked.mock.calls.length, "once for all of them").toBe(1)
    shows()
    // The one that needs most goes first.
    for (const i of [8, 5, 2, 0]) {
      on.engine.release(pages[i]!.view)
      pages[i] = on.watch(`SELECT * ${query} ${["LIMIT 3", "LIMIT 2 START 1", "LIMIT 4 START 3"][i % 3]}`)
      on.remove(`t:${1_007 + 1_000 * i}`)
      shows()
    }
    for (const { view } of pages) on.engine.release(view)
    expect(reachable(on.engine).get("TopRows")).toBeUndefined()
  })

  seeded(
    "L1 shows what a sort of all rows shows, while ever more rows pass it and ever fewer",
    "test/core/ivm/pages.test.ts",
    (random) => {
      const ways = new Set<string>()
      for (let run = 0; run < rounds(4); run++) {
        const on = new Desk()
        let share = 0
        const rows = new Map<number, Pick<Row, "id" | "at" | "list">>()
        const passing = new Set<number>()
        const put = (id: number): void => {
          const row = { id, at: random.below(3_000), list: random.below(2) },
            pass = random.chance(share)
          rows.set(id, row)
          if (pass) passing.add(id)
          else passing.delete(id)
          on.put(`t:${id}`, { at: row.at, list: row.list, pass }, "UPDATE")
        }
        for (let i = 0; i < 11_000; i++) put(i)
        const filters: ReadonlyArray<readonly [string, (row: Pick<Row, "at" | "list">) => boolean]> = [
          ["list = 1", ({ list }) => list === 1],
          ["list IN [0, 1]", () => true],
          ["list = 1 AND at < 2000", ({ at, list }) => list === 1 && at < 2_000]
        ]
        const pages = [upwards, downwards].flatMap((order) =>
          filters.map(([filter, takes]) => {
            const start = random.below(3),
              direction = order === upwards ? "ASC" : "DESC",
              query = `SELECT * FROM t WHERE ${filter} AND pass != false ORDER BY at ${direction} LIMIT 5 START ${start}`
            return { query, takes, order, start, page: on.watch(query) }
          })
        )
        for (const next of [0.001, 0.1, 0.002, 0]) {
          share = next
          for (let round = 0; round < 6; round++) {
            for (let n = 0; n < 1_500; n++) {
              // What is shown changes most.
              const shown = random.pick(pages).page.keys()
              const id =
                shown.length > 0 && random.chance(0.3) ? Number(random.pick(shown).slice(2)) : random.below(11_000)
              if (!random.chance(0.1)) {
                put(id)
                continue
              }
              passing.delete(id)
              on.remove(`t:${id}`)
            }
            const all = [...passing].map((id) => rows.get(id)!)
            for (const { order, page, query, start, takes } of pages) {
              const wanted = all
                .filter(takes)
                .sort(order)
                .slice(start, start + 5)
              expect(page.keys(), query).toEqual(wanted.map(({ id }) => `t:${id}`))
              ways.add(way(page)!.slice(0, 4))
            }
          }
        }
      }
      expect([...ways].sort()).toEqual(["cand", "walk"])
    }
  )
})

describe("L3 a row that one write of a step pushes off the page, and another brings back", () => {
  const step = (on: Desk, last: Json): void =>
    void on.sendAll([
      change("t:1", { at: 1 }),
      change("t:4", last, "UPDATE"),
      // The first of the page goes.
      change("t:0", undefined)
    ])

  it("shows what the step made of it", () => {
    const on = new Desk()
    for (const at of [0, 2, 3, 4, 9]) on.put(`t:${at}`, { at })
    const view = on.watch("SELECT * FROM t ORDER BY at LIMIT 4")
    step(on, { at: 4.5, text: "new" })
    expect(view.rows().at(-1)).toEqual({ id: "t:4", at: 4.5, text: "new" })
    expect(view.delta()).toMatchObject({ additions: [["t:1", 1]], updates: [["t:4", 2]], removals: ["t:0"] })
  })

  it("is shown where it failed before", () => {
    const on = new Desk()
    for (const at of [0, 2, 3, 9]) on.put(`t:${at}`, { at, n: 1 })
    on.put("t:4", { at: 4 })
    const view = on.watch("SELECT *, n + 1 AS more FROM t ORDER BY at LIMIT 4")
    expect(view.keys()).toEqual(["t:0", "t:2", "t:3", "t:9"])
    on.sendAll([
      change("t:1", { at: 1, n: 1 }),
      change("t:5", { at: 1.5, n: 1 }),
      change("t:4", { at: 8, n: 1 }, "UPDATE"),
      change("t:0", undefined),
      change("t:2", undefined)
    ])
    expect(view.view.errors()).toEqual([])
    expect(view.keys()).toEqual(on.watch("SELECT *, n + 1 AS more FROM t ORDER BY at").keys().slice(0, 4))
  })
})

test("L7 a change behind the last row of every list asks none of them; one behind the first rows, once they have gone, is shown", ({
  onTestFinished
}) => {
  const on = new Desk()
  for (let i = 0; i < 600; i++) on.put(`t:${i}`, { at: i, list: i % 3 })
  // Each merges two lists, so that it knows its first rows one by one; `of` differs, so that no two share them.
  const of = Array.from({ length: 20 }, (_, i) => `list IN [0, ${i % 2 === 0 ? 1 : 2}] AND at >= ${-1 - i}`)
  const views = of.map((filter) => on.watch(`SELECT * FROM t WHERE ${filter} ORDER BY at LIMIT 4`))
  const asked = vi.spyOn(PagedView.prototype, "reaches")
  onTestFinished(() => asked.mockRestore())
  on.put("t:new", { at: 590, list: 0 }).put("t:599", { at: 598, list: 0 }, "UPDATE").remove("t:597")
  expect(asked, "behind all of them").not.toHaveBeenCalled()
  for (let i = 0; i < 300; i++) on.remove(`t:${i}`)
  expect(views[0]!.keys()).toEqual(["t:300", "t:301", "t:303", "t:304"])
  on.put("t:late", { at: 302, list: 0 })
  for (const [i, view] of views.entries())
    expect(view.keys()).toEqual(
      i % 2 === 0 ? ["t:300", "t:301", "t:late", "t:303"] : ["t:300", "t:302", "t:late", "t:303"]
    )
  expect(asked).toHaveBeenCalled()
})

test("L7 a key without rows leaves an index with its last page, though other pages stay", () => {
  const on = posts(0)
  const page = (a: string) => on.watch(`SELECT * FROM post WHERE a = '${a}' ORDER BY n LIMIT 3`)
  const stays = page("stays")
  const keys = (): number | undefined => reachable(on.engine).get("KeyRows")
  const before = keys()
  const goes = ["x", "y", "z"].map(page)
  expect(keys()).toBe(before! + 3)
  for (const { view } of goes) on.engine.release(view)
  on.put("post:1", { a: "stays", n: 1 })
  expect(keys()).toBe(before)
  expect(stays.keys()).toEqual(["post:1"])
})
