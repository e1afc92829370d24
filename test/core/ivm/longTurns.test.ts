/**
 * A large view is filled, put in order and read with pauses, whatever its kind, and changes that come in them are in
 * what comes of it (D48).
 *
 * What is checked is counted: pauses against rows, groups and what is sorted.
 */
import { Either } from "effect"
import { expect, test } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { RowList } from "../../../src/core/rows/rowList.ts"
import type { Slices } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../../src/core/surql/values/json.ts"
import { change, Desk } from "./desk.ts"

const count = 4_000
const filling = Math.floor(count / 256),
  /** Runs of 512, and merges of them. */
  sorting = Math.floor(count / 512) * 3,
  building = Math.floor(count / 256),
  /** Rows that find their group, and groups of them. */
  ordering = Math.floor(count / 512) * 2

/** Least pauses of the fill, and of putting what it shows in order. */
const kinds: ReadonlyArray<readonly [query: string, fill: number, order: number]> = [
  ["SELECT * FROM t", filling, sorting],
  ["SELECT * FROM t WHERE n >= 0 ORDER BY name, n", filling, sorting],
  ["SELECT *, n * -1 AS m FROM t ORDER BY m, name", filling, sorting],
  ["SELECT *, n * -1 AS m FROM t ORDER BY m LIMIT 3000", filling + sorting + 1, 0],
  ["SELECT * FROM t WHERE n > 1 ORDER BY name, n LIMIT 10", filling, 0],
  ["SELECT n, count() AS c FROM t GROUP BY n", filling + building - 1, sorting],
  ["SELECT n, count() AS c FROM t GROUP BY n ORDER BY c, n DESC LIMIT 2000", filling + building - 1, 0],
  // Few groups of many rows.
  ["SELECT name, array::group(tags) AS all FROM t GROUP BY name", filling + ordering, 0],
  ["SELECT array::group(n) AS all FROM t GROUP ALL", filling + ordering + sorting, 0],
  // Sums that round.
  ["SELECT math::sum(n / 3f) AS sum FROM t GROUP ALL", filling + ordering + sorting, 0],
  // Beside a view whose rows it groups.
  ["SELECT name, array::group(n) AS all FROM t WHERE n > -9999 GROUP BY name", filling + ordering, 0],
  ["SELECT n, tags FROM t SPLIT tags", filling, sorting],
  ["SELECT *, o.n AS m FROM t ORDER BY m, n", filling, sorting],
  ["SELECT * FROM t, o WHERE n >= 0 ORDER BY n LIMIT 2000", filling + sorting, 0]
]

const world = (): Desk => {
  const desk = new Desk(new Engine())
  desk.put("o:1", { n: 1 })
  desk.sendAll(
    Array.from({ length: count }, (_, i) =>
      change(`t:${i}`, { n: (i * 7919) % count, name: `x${i % 50}`, tags: [1, i], o: "o:1" })
    )
  )
  desk.watch("SELECT n, name FROM t WHERE n > -9999")
  return desk
}

const write = (desk: Desk, pauses: number): void => {
  if (pauses % 7 === 0) desk.put(`t:${count + pauses}`, { n: pauses / 2, name: "y", tags: [], o: "o:1" })
  if (pauses % 7 === 3) desk.put(`t:${pauses}`, { n: -pauses, name: "z", tags: [pauses], o: "o:1" }, "UPDATE")
  if (pauses % 7 === 5) desk.remove(`t:${2 * pauses}`)
}

const stepped = <A>(slices: Slices<A>, pause: (pauses: number) => void = () => {}): readonly [A, number] => {
  for (let pauses = 0; ; pauses++) {
    const step = slices.next()
    if (step.done === true) return [step.value, pauses]
    pause(pauses)
  }
}

const acquired = (desk: Desk, query: string) =>
  desk.engine.acquireSliced(Either.getOrThrow(parseSelect(query)), {}) as Slices<Either.Either<View, unknown>>

const shown = (view: View) => Array.from(view.each(), ({ key, value }) => [key, toJson(value())])

test.each(kinds)(
  "D48 %s is filled and put in order with pauses, and is right whatever comes in them",
  (query, fill, order) => {
    const quiet = world()
    const [view, fills] = stepped(acquired(quiet, query))
    expect(fills, "pauses of the fill").toBeGreaterThanOrEqual(fill)
    const [, orders] = stepped(Either.getOrThrow(view).arrange())
    expect(orders, "pauses of its order").toBeGreaterThanOrEqual(order)

    const busy = world()
    const [filled] = stepped(acquired(busy, query), (pauses) => write(busy, pauses))
    const one = Either.getOrThrow(filled)
    stepped(one.arrange(), (pauses) => write(busy, 100 + pauses))
    const other = new Desk(new Engine())
    for (const { doc, id, version } of [...busy.engine.store.rows("t"), ...busy.engine.store.rows("o")])
      other.engine.load(id, version, doc!)
    const [anew] = stepped(acquired(other, query))
    expect(shown(one)).toEqual(shown(Either.getOrThrow(anew)))
    expect(one.hash()).toBe(Either.getOrThrow(anew).hash())
  }
)

test("D50 the list behind streams of rows puts its view in order with pauses", () => {
  const [, query] = kinds.map(([text]) => text)
  const [view] = stepped(acquired(world(), query!))
  const [, pauses] = stepped(new RowList(Either.getOrThrow(view), Number.POSITIVE_INFINITY).fill())
  expect(pauses).toBeGreaterThanOrEqual(sorting)
})

test("D48 the edges of all records are indexed with pauses, and are right whatever comes in them", () => {
  const query = "SELECT n, ->e->o.n AS to, <-e<-t.n AS from FROM t, o WHERE n < 50"
  const linked = (): Desk => {
    const desk = world()
    desk.put("o:2", { n: 2 })
    desk.sendAll(Array.from({ length: count }, (_, i) => change(`e:${i}`, { in: `t:${i}`, out: "o:1" })))
    return desk
  }
  const quiet = linked()
  const [, pauses] = stepped(acquired(quiet, query))
  expect(pauses, "of the index and of the fill").toBeGreaterThanOrEqual(Math.floor((2 * count) / 500) + filling)
  const [, again] = stepped(acquired(quiet, query.replace("50", "51")))
  expect(again, "it is there").toBeLessThan(pauses - Math.floor((2 * count) / 500) + 1)

  const busy = linked()
  const besideQuery = "SELECT ->e->o.n AS to FROM t:1, t:3999"
  let beside: View | undefined
  const [filled] = stepped(acquired(busy, query), (pauses) => {
    busy.put(`e:${3 * pauses}`, { in: `t:${pauses}`, out: "o:2" }, "UPDATE")
    busy.put(`e:${count + pauses}`, { in: "o:2", out: `t:${count - pauses}` })
    busy.remove(`e:${5 * pauses + 1}`)
    write(busy, pauses)
    // Another asks for edges at once while they are indexed.
    if (pauses === 4) beside = Either.getOrThrow(stepped(acquired(busy, besideQuery))[0])
  })
  const one = Either.getOrThrow(filled)
  const other = new Desk(new Engine())
  for (const table of ["t", "o", "e"])
    for (const { doc, id, version } of busy.engine.store.rows(table)) other.engine.load(id, version, doc!)
  const [anew] = stepped(acquired(other, query))
  expect(shown(one)).toEqual(shown(Either.getOrThrow(anew)))
  const [besides] = stepped(acquired(other, besideQuery))
  expect(shown(beside!)).toEqual(shown(Either.getOrThrow(besides)))
})
