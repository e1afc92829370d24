/**
 * A row that needs the result of a subquery over many rows waits for it with pauses in the first fill of its view, and
 * whatever changes in them is in what comes of it (D48).
 *
 * What is checked is counted: pauses against rows that a fill looks at between two of them.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { holdingsOf } from "../../../src/core/ivm/holdings.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { change, Desk } from "./desk.ts"
import { acquiring, filledAnew, shown, stepped } from "./stepped.ts"

const count = 6_000
/** Pauses of one pass over the large table, in pieces of 256 rows; the first of them are done without one. */
const pass = Math.floor(count / 256) - 4

/** Queries over one small table, whose rows need results over the large one; and least pauses. */
const queries: ReadonlyArray<readonly [query: string, pauses: number]> = [
  ["SELECT id, (SELECT VALUE n FROM big WHERE n * 2 > $parent.n) AS x FROM one", 3 * pass],
  ["SELECT id, (SELECT * FROM big ORDER BY name, n LIMIT 5) AS x FROM one", 1],
  ["SELECT id, (SELECT id, n * 2 AS z FROM big ORDER BY z LIMIT 5) AS x FROM one", pass],
  ["SELECT id, (SELECT name, count() AS c FROM big GROUP BY name ORDER BY c, name LIMIT 5) AS x FROM one", pass],
  ["SELECT id FROM one WHERE array::len((SELECT VALUE n FROM big WHERE n > 3 LIMIT 2000)) > 5", pass],
  ["SELECT id FROM one WHERE n IN (SELECT VALUE n FROM big WHERE n * 2 > 6)", pass],
  ["SELECT id, n, (SELECT VALUE n FROM big WHERE n * 2 > $parent.n) AS x FROM one ORDER BY n LIMIT 2", 2 * pass],
  [
    "SELECT id, (SELECT VALUE math::max((SELECT VALUE n FROM big WHERE n * 3 > $parent.n)) FROM one) AS x FROM one",
    pass
  ],
  // Two results for each row: the first is kept while the second is filled.
  [
    "SELECT id, (SELECT VALUE n FROM big WHERE n * 2 > $parent.n) AS x, (SELECT VALUE n FROM big WHERE n * 3 < $parent.n) AS y FROM one",
    6 * pass
  ]
]

const world = (): Desk =>
  new Desk(new Engine()).sendAll([
    ...Array.from({ length: 3 }, (_, i) => change(`one:${i}`, { n: i * 1_000 })),
    ...Array.from({ length: count }, (_, i) => change(`big:${i}`, { n: (i * 7919) % count, name: `x${i % 50}` }))
  ])

/** Changes of rows that have been looked at, of those that have not, and of the one that waits. */
const write = (desk: Desk, pauses: number): void => {
  if (pauses % 7 === 0) desk.put(`big:${count + pauses}`, { n: pauses / 2, name: "y" })
  if (pauses % 7 === 1) desk.put(`one:${pauses % 3}`, { n: pauses * 10 }, "UPDATE")
  if (pauses % 7 === 3) desk.put(`big:${pauses}`, { n: -pauses, name: "z" }, "UPDATE")
  if (pauses % 7 === 4) desk.put(`one:${3 + (pauses % 2)}`, { n: pauses }, "UPDATE")
  if (pauses % 7 === 5) desk.remove(`big:${2 * pauses}`)
  if (pauses % 14 === 6) desk.remove("one:3")
}

describe("D48 a row that needs a result over many rows", () => {
  it.each(queries)("is filled with pauses, and is right whatever comes in them: %s", (query, least) => {
    expect(stepped(acquiring(world(), query))[1], "pauses").toBeGreaterThanOrEqual(least)
    const desk = world()
    const view = Either.getOrThrow(stepped(acquiring(desk, query), (pauses) => write(desk, pauses))[0])
    const isRight = (): void => {
      const anew = filledAnew(desk, query)
      expect(shown(view)).toEqual(shown(anew))
      expect(view.hash()).toBe(anew.hash())
      expect(view.errors()).toEqual([])
    }
    isRight()
    for (let i = 0; i < 14; i++) write(desk, i)
    isRight()
  })

  it.each(queries)("leaves nothing behind when its fill is given up, or all is cleared: %s", (query) => {
    const desk = world()
    desk.engine.acquire(Either.getOrThrow(parseSelect("SELECT * FROM one")), {})
    const before = holdingsOf(desk.engine.kept)
    const slices = acquiring(desk, query)
    for (let i = 0; i < 5; i++) slices.next()
    slices.return(Either.left(undefined))
    for (let i = 0; i < 7; i++) desk.put("one:1", { n: i }, "UPDATE")
    expect(holdingsOf(desk.engine.kept)).toEqual(before)

    const again = acquiring(desk, query)
    for (let i = 0; i < 5; i++) again.next()
    desk.engine.clear()
    desk.put("one:7", { n: 5_000 })
    const view = Either.getOrThrow(stepped(again)[0])
    expect(shown(view)).toEqual(shown(filledAnew(desk, query)))
  })

  it("is waited for by two fills at once, of which one is given up", () => {
    const [[query]] = queries as readonly [readonly [string, number]]
    const desk = world()
    const other = query.replace("FROM one", "FROM one WHERE n >= 0")
    const slices = [acquiring(desk, query), acquiring(desk, other)] as const
    for (let i = 0; i < 5; i++) for (const each of slices) each.next()
    slices[0].return(Either.left(undefined))
    const view = Either.getOrThrow(stepped(slices[1], (pauses) => write(desk, pauses))[0])
    expect(shown(view)).toEqual(shown(filledAnew(desk, other)))
  })
})
