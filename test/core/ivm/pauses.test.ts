/**
 * Work of a registration that is done for all rows at once, beside the rows that its fill looks at, has pauses too, and
 * whatever changes in them is in what comes of it (D48).
 *
 * What is checked is counted: pauses against rows.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { change, Desk } from "./desk.ts"
import { acquiring, filledAnew, shown, stepped } from "./stepped.ts"

const count = 30_000

const world = (): Desk =>
  new Desk(new Engine()).sendAll(
    Array.from({ length: count }, (_, i) => change(`big:${i}`, { n: (i * 7919) % count, k: i % 3 }))
  )

/** Changes of rows that are filed, of rows that are not, and of one without a fixed key. */
const write = (desk: Desk, pauses: number): void => {
  const id = (pauses * 1_009) % count
  if (pauses % 4 === 0) desk.put(`big:${id}`, { n: pauses, k: 1 }, "UPDATE")
  if (pauses % 4 === 1) desk.remove(`big:${id}`)
  if (pauses % 4 === 2) desk.put(`big:${count + pauses}`, { n: pauses, k: 1 })
  if (pauses % 4 === 3) desk.put(`big:${id}`, { n: 20, k: [1] }, "UPDATE")
}

describe("D48 an index of ranges", () => {
  const query = (most: number) => `SELECT * FROM big WHERE k = 1 AND n > 10 AND n < ${most}`
  /** The index is filled for the second view. */
  const filing = (desk: Desk, most = 80) => {
    desk.watch(query(90))
    return acquiring(desk, query(most))
  }

  it("is filled with pauses, and is right whatever comes in them", () => {
    expect(stepped(filing(world()))[1], "pauses").toBeGreaterThanOrEqual(Math.floor(count / 4_096))
    const desk = world()
    const view = Either.getOrThrow(stepped(filing(desk), (pauses) => write(desk, pauses))[0])
    const isRight = () => expect(shown(view)).toEqual(shown(filledAnew(desk, query(80))))
    isRight()
    for (let i = 0; i < 12; i++) write(desk, i)
    isRight()
    expect(shown(desk.watch(query(200)).view)).toEqual(shown(filledAnew(desk, query(200))))
  })

  it("is filled by the other view that needs it, where a registration is given up", () => {
    const desk = world()
    const slices = filing(desk)
    for (let i = 0; i < 3; i++) slices.next()
    const other = acquiring(desk, query(70))
    for (let i = 0; i < 3; i++) other.next()
    slices.return(Either.left(undefined))
    for (let i = 0; i < 12; i++) write(desk, i)
    const view = Either.getOrThrow(stepped(other, (pauses) => write(desk, pauses))[0])
    expect(shown(view)).toEqual(shown(filledAnew(desk, query(70))))
  })
})

describe("D48 a row of a query that is run whole", () => {
  const large = "SELECT VALUE n FROM big WHERE n * 2 > $parent.n"
  const one = (shown: string) => `SELECT VALUE x FROM (SELECT ${shown} AS x FROM big WHERE n < 2)`
  const query = one(`array::len((${large})) + array::len((SELECT VALUE k FROM big WHERE k = $parent.k))`)
  const counts = (desk: Desk) => {
    const rows = desk.watch("SELECT * FROM big").rows() as ReadonlyArray<{ n: number; k: number }>
    return rows
      .filter(({ n }) => n < 2)
      .map(({ k, n }) => rows.filter((row) => row.n * 2 > n).length + rows.filter((row) => row.k === k).length)
  }

  it("pauses within its subqueries, each of which is run once", () => {
    const desk = world()
    const [made, pauses] = stepped(acquiring(desk, query))
    // The table is one pass over all rows, which pauses for each of 256. Each of the two rows has three and two thirds
    // more: two subqueries read it, and project all rows or two thirds of one.
    const passes = pauses / Math.floor(count / 256)
    expect(passes).toBeGreaterThan(7)
    expect(passes).toBeLessThan(9)
    expect(shown(Either.getOrThrow(made)).map(([, value]) => value)).toEqual(counts(desk))
  })

  it("is paid for once", () => {
    const cost = (shownAs: string) => {
      const view = Either.getOrThrow(stepped(acquiring(world(), one(shownAs)))[0])
      return (view.plan()[0] as { last_cost: number }).last_cost
    }
    const [first, second] = [`(${large})`, "(SELECT VALUE k FROM big WHERE k >= $parent.k)"]
    const none = cost("[n, n]")
    const apart = cost(`[${first}, n]`) - none + (cost(`[n, ${second}]`) - none)
    // A list of two subqueries costs some steps more than its parts; a second run of one would cost 60,000.
    expect(Math.abs(cost(`[${first}, ${second}]`) - none - apart)).toBeLessThan(10)
  })

  it("fails with the failure of its subquery", () => {
    const view = Either.getOrThrow(stepped(acquiring(world(), one("(SELECT VALUE n + 'x' FROM big WHERE n > 2)")))[0])
    expect(view.errors().map(({ failure }) => failure.reason)).toEqual([
      expect.stringMatching(/^Cannot perform addition/)
    ])
  })
})

describe("D48 a value of many rows", () => {
  const query = "SELECT id, array::len((SELECT VALUE n FROM big)) AS c FROM one"
  const filled = (): Desk => world().sendAll([change("one:1", { n: 1 }), change("one:2", { n: 2 })])
  const pass = Math.floor(count / 256)

  it("is put in order and projected with pauses, and once for all rows", () => {
    const desk = filled()
    const [made, pauses] = stepped(acquiring(desk, query))
    expect(pauses).toBeGreaterThanOrEqual(2 * pass - 4)
    expect(stepped(acquiring(filled().remove("one:2"), query))[1]).toBeGreaterThan(pauses - 4)
    expect(shown(Either.getOrThrow(made))).toEqual(["one:1", "one:2"].map((id) => [id, { id, c: count }]))
  })

  it("is right whatever comes in the pauses", () => {
    const desk = filled()
    const changing = (pauses: number) => (pauses % 50 === 49 ? write(desk, Math.floor(pauses / 50)) : undefined)
    const view = Either.getOrThrow(stepped(acquiring(desk, query), changing)[0])
    expect(shown(view)).toEqual(shown(filledAnew(desk, query)))
    for (let i = 0; i < 8; i++) write(desk, i)
    expect(shown(view)).toEqual(shown(filledAnew(desk, query)))
  })
})
