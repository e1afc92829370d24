/**
 * Views of one filter that keep their rows once: what is kept, who is told, and who may go first (L2, L4, L7).
 */
import { Either } from "effect"
import { describe, expect, it, test } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { holdingsOf } from "../../../src/core/ivm/holdings.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { newWorkCounters } from "../../../src/core/ivm/workCounters.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { change, Desk } from "./desk.ts"

/** Rows of records held, and views that hold any. */
const held = (desk: Desk): readonly [rows: number, instances: number] => {
  const { heldRows, instances } = holdingsOf(desk.engine.kept)
  return [heldRows, instances]
}

const filled = (rows: number, engine = new Engine()): Desk => {
  const desk = new Desk(engine)
  for (let i = 0; i < rows; i++) desk.put(`t:${i}`, { g: i % 2, n: i, s: `s${i % 3}`, in: { g: i % 2 } })
  return desk
}

describe("unbounded views of one filter", () => {
  const queries = [
    "SELECT * FROM t WHERE g = 1",
    "SELECT id, n FROM t WHERE g = 1",
    "SELECT VALUE n FROM t WHERE g = 1",
    "SELECT n AS m FROM t WHERE g = 1 ORDER BY m DESC",
    "SELECT * OMIT s FROM t WHERE 1 = g ORDER BY s, n DESC"
  ]

  it("L7 keep each row once, whatever they project and however they order", () => {
    const desk = filled(100)
    for (const query of queries) desk.watch(query)
    // The last one says the same in another way: it is a filter of its own.
    expect(held(desk)).toEqual([100, queries.length])
    desk.put("t:200", { g: 1 })
    expect(held(desk)[0]).toBe(102)
  })

  it("L4 a change is evaluated once for all of them", () => {
    const counters = newWorkCounters()
    const desk = filled(100, new Engine({ counters }))
    for (let i = 0; i < 50; i++) desk.watch(`SELECT id, n AS a${i} FROM t WHERE g = 1 ORDER BY a${i}`)
    Object.assign(counters, newWorkCounters())
    desk.put("t:1", { g: 1, n: 7 })
    expect([counters.views, counters.rows, desk.affected]).toEqual([1, 1, 50])
  })

  it("L2 L3 each is told of its change with its own generation, hash and rows", () => {
    const desk = filled(10)
    const [first, , values, sorted] = queries.map((query) => desk.watch(query))
    desk.put("t:1", { g: 1, n: 99 })
    for (const one of [first!, values!, sorted!]) {
      expect(one.delta()).toMatchObject({ updates: [["t:1", 2]], additions: [], removals: [] })
      expect([one.view.generation, one.hash()]).toEqual([2, first!.hash()])
    }
    expect(values!.rows()).toEqual([99, 3, 5, 7, 9])
    expect(sorted!.rows()).toEqual([99, 9, 7, 5, 3].map((m) => ({ m })))
    desk.put("t:3", { g: 0, n: 3 })
    expect(sorted!.delta()).toMatchObject({ removals: ["t:3"] })
    expect(sorted!.keys()).toEqual(["t:1", "t:9", "t:7", "t:5"])
    desk.put("t:4", { g: 0, n: 77 })
    expect([sorted!.delta(), sorted!.view.generation]).toEqual([undefined, 3])
  })

  it("L7 the rows stay as long as one view shows them, and not only as long as the first, and go with the last", () => {
    const desk = filled(100)
    const [first, second] = [desk.watch(queries[0]!), desk.watch(queries[3]!)]
    desk.engine.release(first.view)
    expect(held(desk)).toEqual([50, 2])
    desk.put("t:1", { g: 1, n: 99 })
    expect([desk.affected, second.rows()[0]]).toEqual([1, { m: 99 }])
    expect(first.view.generation).toBe(second.view.generation)
    // Asked for again, the first is the one that is there.
    const again = desk.watch(queries[0]!)
    expect(again.view).toBe(first.view)
    desk.engine.release(again.view)
    desk.engine.release(second.view)
    expect(held(desk)).toEqual([0, 0])
    expect(desk.engine.shapes()).toEqual([])
    desk.put("t:1", { g: 1, n: 100 })
    expect(desk.affected).toBe(0)
  })

  it("list the same failing records, of a filter that can fail and reads other records", () => {
    const desk = filled(10)
    desk.put("user:1", { age: 5 })
    const both = ["SELECT n, id FROM t WHERE by.age + n > 7 ORDER BY n", "SELECT id FROM t WHERE by.age + n > 7"].map(
      (query) => desk.watch(query)
    )
    desk.send({ ...(change("t:1", { n: 3, by: "user:1" }) as object), types: { by: "record" } })
    const errors = both.map(({ view }) => view.errors().map(({ id }) => id))
    expect(errors[0]).toHaveLength(9)
    expect(errors[1]).toEqual(errors[0])
    // The first is no lender, since its order is evaluated beside its filter: a third view, which has no holder, is.
    expect(held(desk)[1]).toBe(3)
    expect(both.map((one) => one.keys())).toEqual([["t:1"], ["t:1"]])
    desk.put("user:1", { age: 1 })
    expect(both.map((one) => [one.keys(), one.delta()?.removals])).toEqual([
      [[], ["t:1"]],
      [[], ["t:1"]]
    ])
    for (const { view } of both) desk.engine.release(view)
    expect(held(desk)).toEqual([0, 0])
  })

  it("share by arguments: views of one shape with others do not", () => {
    const desk = filled(100)
    const views = [0, 1].flatMap((g) =>
      ["*", "id"].map((shown) => desk.watch(`SELECT ${shown} FROM t WHERE g = $g`, { g }))
    )
    expect(held(desk)).toEqual([100, 4])
    desk.put("t:1", { g: 1 })
    expect(views.map((one) => one.delta() !== undefined)).toEqual([false, false, true, true])
  })

  it("tell apart views of one shape by parameters that they show alone", () => {
    const desk = filled(10)
    const [one, two] = [1, 2].map((p) => desk.watch("SELECT id, $p AS p FROM t WHERE g = 1", { p }))
    expect([held(desk)[0], one!.rows()[0], two!.rows()[0]]).toEqual([5, { id: "t:1", p: 1 }, { id: "t:1", p: 2 }])
  })

  it("say in their plan that the rows are kept once, and for how many", () => {
    const desk = filled(10)
    const views = queries.slice(0, 3).map((query) => desk.watch(query))
    for (const { view } of views)
      expect(view.plan()).toContainEqual(
        expect.objectContaining({ operator: "rows of the filter, kept once for 3 views", rows: 5, incremental: true })
      )
    desk.engine.release(views[1]!.view)
    desk.engine.release(views[2]!.view)
    expect(
      views[0]!.view
        .plan()
        .map(({ operator }) => operator)
        .join()
    ).not.toContain("kept once")
  })

  it("keep rows of their own where showing a row can fail, reads elsewhere, or where there is a window", () => {
    const desk = filled(10)
    for (const query of [
      "SELECT * FROM t WHERE g = 1",
      "SELECT n + 1 AS m FROM t WHERE g = 1",
      "SELECT in.g AS m FROM t WHERE g = 1",
      "SELECT * FROM t WHERE g = 1 ORDER BY n LIMIT 5",
      "SELECT * FROM t WHERE g = 1 SPLIT s"
    ])
      desk.watch(query)
    expect(held(desk)[0]).toBe(25)
  })
})

describe("groups of one filter", () => {
  const queries = [
    "SELECT s, count() AS c FROM t WHERE g = 1 GROUP BY s",
    "SELECT s, count() AS number, math::sum(n) AS total FROM t WHERE g = 1 GROUP BY s ORDER BY total DESC",
    "SELECT s, count() AS c FROM t WHERE g = 1 GROUP BY s ORDER BY c DESC, s LIMIT 1",
    "SELECT s, count() AS c FROM t WHERE g = 1 GROUP BY s ORDER BY c DESC, s LIMIT 2 START 1",
    "SELECT n, math::max(n) AS most FROM t WHERE g = 1 GROUP BY n",
    "SELECT count() AS all, count(n > 50) AS many, math::mean(n) AS mean FROM t WHERE g = 1 GROUP ALL"
  ]

  it("L7 have their rows kept once, whatever they group by, aggregate, order and cut", () => {
    const desk = filled(100)
    for (const query of queries) desk.watch(query)
    // The first was alone and has its own; a view without a holder keeps those of all others.
    expect(held(desk)).toEqual([100, queries.length + 1])
    for (let i = 0; i < 20; i++) desk.watch(`SELECT s, math::min(n) AS m${i} FROM t WHERE g = 1 GROUP BY s`)
    expect(held(desk)[0]).toBe(100)
  })

  it("L7 have them from a view that shows them, where there is one, and keep it as long as they stay", () => {
    const desk = filled(100)
    const rows = desk.watch("SELECT * FROM t WHERE g = 1")
    const groups = queries.map((query) => desk.watch(query))
    expect(held(desk)).toEqual([50, queries.length + 1])
    desk.engine.release(rows.view)
    desk.put("t:1", { g: 1, n: 1_000, s: "s1" })
    expect(groups.at(-1)!.rows()).toEqual([{ all: 50, many: 26, mean: 3_499 / 50 }])
    for (const { view } of groups) desk.engine.release(view)
    expect(held(desk)).toEqual([0, 0])
  })

  it("L4 a change is looked at once, and what it brings once for those that ask the same", () => {
    const counters = newWorkCounters()
    const desk = filled(100, new Engine({ counters }))
    desk.watch("SELECT * FROM t WHERE g = 1")
    for (let i = 0; i < 20; i++)
      desk.watch(`SELECT s, count() AS c${i}, math::sum(n) AS t${i} FROM t WHERE g = 1 GROUP BY s LIMIT ${20 + i}`)
    Object.assign(counters, newWorkCounters())
    desk.put("t:1", { g: 1, n: 1_000, s: "s1" })
    expect([counters.views, counters.rows, counters.groups, desk.affected]).toEqual([1, 2, 20, 21])
    // A field that no group asks for changes none of them.
    Object.assign(counters, newWorkCounters())
    desk.put("t:1", { g: 1, n: 1_000, s: "s1", more: true })
    expect([counters.views, counters.rows, counters.groups, desk.affected]).toEqual([1, 2, 0, 1])
  })

  it("L1 L2 follow rows that come, change groups and go, one by one and several in a step", () => {
    const desk = filled(0)
    const lone = desk.watch("SELECT s, count() AS c, math::sum(n) AS total FROM t WHERE g = 1 GROUP BY s")
    const shared = desk.watch("SELECT s, count() AS c, math::sum(n) AS total FROM t WHERE g = 1 GROUP BY s LIMIT 100")
    const random = (i: number): number => (i * 7919) % 101
    for (let step = 0; step < 200; step++) {
      const changes = Array.from({ length: step % 3 === 0 ? 12 : 1 }, (_, i) => {
        const at = random(step * 12 + i)
        return change(`t:${at % 20}`, at % 4 === 0 ? undefined : { g: at % 3, n: at, s: `s${at % 5}` })
      })
      desk.sendAll(changes)
      expect(shared.rows()).toEqual(lone.rows())
      expect(shared.hash()).toBe(lone.hash())
      expect(shared.delta()).toEqual(lone.delta())
      expect(shared.view.generation).toBe(lone.view.generation)
    }
    expect(held(desk)[1]).toBe(3)
  })

  it("list rows that their filter fails on, and rows whose key fails", () => {
    const desk = filled(4)
    const query = "SELECT string::len(s) AS l, count() AS c FROM t WHERE n + 1 > 0 GROUP BY l"
    const [lone, shared] = [desk.watch(query), desk.watch(`${query} LIMIT 9`)]
    desk.put("t:8", { n: "text", s: "s" })
    desk.put("t:9", { n: 9, s: 5 })
    expect(shared!.view.errors().map(({ id }) => id)).toEqual(["t:8", "t:9"])
    expect(shared!.view.errors()).toEqual(lone!.view.errors())
    expect(shared!.rows()).toEqual([{ l: 2, c: 4 }])
    desk.put("t:9", { n: 9, s: "five" })
    desk.remove("t:8")
    expect([shared!.view.errors(), shared!.rows()]).toEqual([[], lone!.rows()])
    desk.remove("t:9")
    expect(shared!.rows()).toEqual([{ l: 2, c: 4 }])
  })

  it("put equal keys in the order of their rows, and add up floats as the scan does", () => {
    const desk = filled(0)
    const text = "SELECT n, math::sum(f) AS f FROM t GROUP BY n"
    const [lone, shared] = [desk.watch(text), desk.watch(`${text} LIMIT 10`)]
    for (let i = 0; i < 30; i++) desk.put(`t:${(i * 7) % 30}`, { n: i % 2 === 0 ? 1 : 1.0, f: 0.1 * i + 1e-9 })
    desk.put("t:0", { n: 2, f: 0.3 })
    for (let i = 5; i < 15; i++) desk.remove(`t:${i}`)
    expect(shared!.rows()).toEqual(lone!.rows())
    expect(shared!.hash()).toBe(lone!.hash())
  })

  it("keep rows of their own where a row brings what can be kept only with it, or what other records say", () => {
    const desk = filled(100)
    desk.watch("SELECT * FROM t WHERE g = 1")
    for (const query of [
      "SELECT s, array::distinct(n) AS a FROM t WHERE g = 1 GROUP BY s",
      "SELECT s, math::max(n * 2) AS a FROM t WHERE g = 1 GROUP BY s",
      "SELECT in.g AS k, count() AS a FROM t WHERE g = 1 GROUP BY k"
    ])
      desk.watch(query)
    expect(held(desk)[0]).toBe(200)
  })

  it("say in their plan that the rows are kept once", () => {
    const desk = filled(100)
    const views = queries.slice(0, 3).map((query) => desk.watch(query))
    const operators = views.map(({ view }) => view.plan().map(({ operator, rows }) => `${operator}: ${rows}`))
    expect(operators[0]!.join()).not.toContain("kept once")
    expect(operators[2]).toEqual([
      "source t: 50",
      "index g: 50",
      "rows of the filter, kept once for 2 views: 50",
      "group: 3",
      "window: 3",
      "project: 1"
    ])
  })
})

const acquired = (desk: Desk, query: string): ReturnType<Engine["acquireSliced"]> =>
  desk.engine.acquireSliced(Either.getOrThrow(parseSelect(query)), {})

test("a view that comes while the first of its filter is filled shows what that shows, changes meanwhile included", () => {
  const desk = filled(2_000)
  const first = acquired(desk, "SELECT * FROM t WHERE n >= 0")
  expect(first.next().done).toBe(false)
  const second = acquired(desk, "SELECT id FROM t WHERE n >= 0")
  expect(second.next().done).toBe(false)
  desk.put("t:1999", { n: 7 })
  desk.remove("t:0")
  // The first is given up, and what it has filled is filled on for the second.
  first.return(Either.left({ reason: "gone", at: 0 }))
  const view: View = Either.getOrThrow(drain(second))
  expect(view.size).toBe(1_999)
  desk.put("t:1", { n: -1 })
  expect([view.size, view.generation, desk.affected]).toEqual([1_998, 2, 1])
  desk.engine.release(view)
  expect(held(desk)).toEqual([0, 0])
})

test.each([
  ["", 1],
  [" and round", 0.1]
])("L2 groups that are filled in slices%s take over what moves meanwhile, whatever was looked at already", (_, n) => {
  const desk = filled(3_000)
  for (let i = 0; i < 3_000; i += 100) desk.put(`t:${i}`, { g: i % 7, n })
  desk.watch("SELECT * FROM t WHERE n >= 0")
  const grouped = "SELECT g, count() AS c, math::sum(n) AS total FROM t WHERE n >= 0 GROUP BY g"
  const filling = acquired(desk, grouped)
  for (let slice = 0; filling.next().done === false; slice++) {
    desk.put(`t:${slice}`, { g: 2, n })
    desk.put(`t:${slice}`, { g: 3, n: 2 * n })
    desk.put(`t:${2_999 - slice}`, { g: 4, n: 5 * n })
    desk.remove(`t:${1_500 + slice}`)
    desk.put(`t:${5_000 + slice}`, { g: 5, n: 7 * n })
    if (slice % 2 === 0) desk.remove(`t:${5_000 + slice}`)
    desk.put(`t:${1_500 + slice}`, { g: 6, n })
    expect(slice).toBeLessThan(100)
  }
  const [view, plain] = ["", " LIMIT 50"].map((limit) => desk.watch(`${grouped}${limit}`))
  expect(view!.rows()).toHaveLength(7)
  expect(view!.rows()).toEqual(plain!.rows())
  desk.put("t:1", { g: 2, n: 100 * n })
  expect(view!.rows()).toEqual(plain!.rows())
})
