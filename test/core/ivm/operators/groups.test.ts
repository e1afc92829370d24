/**
 * GROUP BY and GROUP ALL by hand: what aggregates answer when rows leave again, and how many groups a change builds.
 *
 * Why by hand: the laws test compares with the plain evaluator, these cases say what the answer is; and each stands for
 * a way in which running aggregates go wrong.
 */
import { Either } from "effect"
import { expect, test } from "vitest"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import { newWorkCounters } from "../../../../src/core/ivm/workCounters.ts"
import { parseSelect } from "../../../../src/core/surql/syntax/parse.ts"
import { parseDecimal } from "../../../../src/core/surql/values/number.ts"
import { render } from "../../../../src/core/surql/values/text.ts"
import { float, type Obj, type Value } from "../../../../src/core/surql/values/value.ts"
import { change, Desk, type Watching } from "../desk.ts"
import { decode } from "../runCase.ts"

/** Rows with every type told apart. */
const texts = (watching: Watching): ReadonlyArray<string> => watching.view.rows().map((row) => render(row.value()))

/** A record with values that JSON has no type for. */
const put = (desk: Desk, id: string, doc: Obj): void => {
  const written = decode(change(id, {}))
  const [write] = desk.engine.plan([{ ...written, doc: { ...doc, id: written.id } } as typeof written])
  if (write !== undefined) desk.engine.apply(write)
}

const grouped = (desk: Desk, query: string): Watching => {
  const watching = desk.watch(query)
  expect(watching.view.plan().map((row) => row.operator)).toContain("group")
  return watching
}

const dec = (text: string): Value => parseDecimal(text)!

test("L1 floats that were rounded while a large value was there are whole again when it leaves", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT math::sum(n) AS s, math::mean(n) AS m FROM t GROUP ALL")
  desk.put("t:1", { n: 0.1 }).put("t:2", { n: 1e300 }).put("t:3", { n: 0.2 })
  desk.remove("t:2")
  expect(texts(view)).toEqual(["{ m: 0.15000000000000002f, s: 0.30000000000000004f }"])
  desk.remove("t:1").put("t:3", { n: 0.5 }).put("t:4", { n: 2 })
  expect(texts(view)).toEqual(["{ m: 1.25f, s: 2.5f }"])
  desk.remove("t:3")
  expect(texts(view)).toEqual(["{ m: 2f, s: 2 }"])
  desk.remove("t:4")
  expect(texts(view)).toEqual(["{ m: NaN, s: 0 }"])
})

test("L1 a spread follows its least and greatest values and keeps their kinds", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT math::spread(n) AS s FROM t GROUP ALL")
  const shown = (): string => texts(view)[0] ?? ""
  expect(shown()).toBe("{ s: NaN }")
  desk.put("t:1", { n: 3 }).put("t:2", { n: 10 }).put("t:3", { n: 4 }).put("t:4", { n: "text" })
  expect(shown()).toBe("{ s: 7 }")
  desk.remove("t:2")
  expect(shown()).toBe("{ s: 1 }")
  put(desk, "t:5", { n: float(4) })
  expect(shown(), "of 4 and 4f the last").toBe("{ s: 1f }")
  put(desk, "t:6", { n: dec("4.5") })
  expect(shown()).toBe("{ s: 1.5dec }")
  expect(view.view.plan().every((row) => row.incremental)).toBe(true)
})

test("L1 sums of floats are taken in the order of the records, whatever the order of the changes", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT g, math::sum(n) AS s FROM t GROUP BY g")
  desk
    .put("t:4", { g: 1, n: 1 })
    .put("t:3", { g: 1, n: -1e16 })
    .put("t:1", { g: 1, n: 1e16 })
    .put("t:2", { g: 1, n: 1 })
  expect(texts(view)).toEqual(["{ g: 1, s: 1f }"])
  desk.put("t:2", { g: 1, n: 4 })
  expect(texts(view)).toEqual(["{ g: 1, s: 5f }"])
})

test("L1 -0, NaN, infinities, decimals and what is no number come and go", () => {
  const desk = new Desk()
  const view = grouped(
    desk,
    "SELECT math::sum(n) AS s, math::mean(n) AS m, math::min(n) AS least, math::max(n) AS most, count(n) AS c FROM t GROUP ALL"
  )
  put(desk, "t:2", { n: 3 })
  const three = "{ c: 1, least: 3, m: 3f, most: 3, s: 3 }"
  expect(texts(view)).toEqual([three])
  const with_ = (n: Value): string => {
    put(desk, "t:1", { n })
    const [text] = texts(view)
    desk.remove("t:1")
    expect(texts(view), "when it is gone").toEqual([three])
    return text!
  }
  expect(with_(-0)).toBe("{ c: 1, least: -0f, m: 1.5f, most: 3, s: 3f }")
  expect(with_(NaN)).toBe("{ c: 2, least: 3, m: NaN, most: NaN, s: NaN }")
  expect(with_(-Infinity)).toBe(
    "{ c: 2, least: -Infinity, m: -Infinity, most: 3, s: -Infinity }".replaceAll("-Infinity", render(-Infinity))
  )
  expect(with_(dec("0.5"))).toBe("{ c: 2, least: 0.5dec, m: 1.75f, most: 3, s: 3.5dec }")
  expect(with_("text")).toBe("{ c: 2, least: 3, m: 3f, most: 3, s: 3 }")
  expect(with_(undefined)).toBe(three)
})

test("L1 of equal values of different kinds the first record's is the least, the greatest and the key", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT n, math::min(n) AS least, math::max(n) AS most FROM t GROUP BY n")
  put(desk, "t:3", { n: 1 })
  put(desk, "t:2", { n: float(1) })
  expect(texts(view)).toEqual(["{ least: 1f, most: 1f, n: 1f }"])
  put(desk, "t:1", { n: dec("1") })
  expect(texts(view)).toEqual(["{ least: 1dec, most: 1dec, n: 1dec }"])
  desk.remove("t:1").remove("t:2")
  expect(texts(view)).toEqual(["{ least: 1, most: 1, n: 1 }"])
})

test("L1 ints too large for a running sum are added in order, and begin again at the other end of 64 bits", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT g, math::sum(n) AS s FROM t GROUP BY g")
  put(desk, "t:1", { g: 1, n: 9223372036854775807n })
  put(desk, "t:2", { g: 2, n: 1 })
  expect(texts(view)).toEqual(["{ g: 1, s: 9223372036854775807 }", "{ g: 2, s: 1 }"])
  put(desk, "t:3", { g: 1, n: 1 })
  expect(texts(view)).toEqual(["{ g: 1, s: -9223372036854775808 }", "{ g: 2, s: 1 }"])
  put(desk, "t:0", { g: 1, n: -1 })
  expect(texts(view)).toEqual(["{ g: 1, s: 9223372036854775807 }", "{ g: 2, s: 1 }"])
  expect(view.view.errors()).toEqual([])
})

test("L1 a mean of ints too large for a running sum adds floats", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT VALUE math::mean(n) FROM t GROUP ALL")
  for (const id of ["t:1", "t:2", "t:3"]) put(desk, id, { n: 9223372036854775807n })
  expect(texts(view)).toEqual(["9223372036854776000f"])
})

test("D2a a row whose key or argument fails is left out alone", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT string::len(g) AS l, math::sum(n + 1) AS s FROM t GROUP BY l")
  desk
    .put("t:1", { g: "a", n: 1 })
    .put("t:2", { g: 5, n: 1 })
    .put("t:3", { g: "b", n: "x" })
    .put("t:4", { g: "c", n: 3 })
  expect(texts(view)).toEqual(["{ l: 1, s: 6 }"])
  expect(view.view.errors().map(({ id }) => id)).toEqual(["t:2", "t:3"])
  desk.put("t:3", { g: "bb", n: 1 }).remove("t:2")
  expect(texts(view)).toEqual(["{ l: 1, s: 6 }", "{ l: 2, s: 2 }"])
  expect(view.view.errors()).toEqual([])
})

test("L2 groups come, change, are renamed and go, and say so", () => {
  const desk = new Desk()
  const view = grouped(desk, "SELECT g, count() AS n FROM t GROUP BY g")
  desk.put("t:1", { g: "a" })
  expect(view.delta()).toEqual({ additions: [['["a"]', 2]], updates: [], removals: [], subqueries: [] })
  desk.put("t:2", { g: "a" })
  expect(view.delta()?.updates).toEqual([['["a"]', 3]])
  desk.put("t:2", { g: "b" })
  expect(view.delta()).toEqual({ additions: [['["b"]', 4]], updates: [['["a"]', 4]], removals: [], subqueries: [] })
  desk.put("t:2", { g: "b", other: 1 })
  expect(view.delta()).toBeUndefined()
  desk.remove("t:2")
  expect(view.delta()?.removals).toEqual(['["b"]'])
  expect(view.rows()).toEqual([{ g: "a", n: 1 }])
})

test("L1 GROUP ALL over nothing is one row", () => {
  const desk = new Desk()
  const view = grouped(
    desk,
    "SELECT count() AS n, math::max(x) AS m, array::group(x) AS all FROM t WHERE x > 1 GROUP ALL"
  )
  expect(texts(view)).toEqual([`{ all: [], m: ${render(-Infinity)}, n: 0 }`])
  const empty = view.hash()
  desk.put("t:1", { x: 2 }).put("t:0", { x: 3 })
  expect(texts(view)).toEqual(["{ all: [3, 2], m: 3, n: 2 }"])
  desk.put("t:0", { x: 1 }).remove("t:1")
  expect(view.hash()).toBe(empty)
  expect(view.view.size).toBe(1)
  expect(desk.watch("SELECT count() AS n FROM t GROUP ALL LIMIT 0").rows()).toEqual([])
})

test("L2 ORDER BY an aggregate with LIMIT: a group moves in and out of the window", () => {
  const desk = new Desk()
  for (const [i, g] of [..."aaabbc"].entries()) desk.put(`t:${i}`, { g })
  const view = grouped(desk, "SELECT g, count() AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 2")
  expect(view.rows()).toEqual([
    { g: "a", n: 3 },
    { g: "b", n: 2 }
  ])
  desk.sendAll([change("t:6", { g: "c" }), change("t:7", { g: "c" })])
  expect(view.rows()).toEqual([
    { g: "a", n: 3 },
    { g: "c", n: 3 }
  ])
  expect(view.delta()).toMatchObject({ additions: [['["c"]', 2]], removals: ['["b"]'], updates: [] })
  desk.remove("t:0").remove("t:1")
  expect(view.rows()).toEqual([
    { g: "c", n: 3 },
    { g: "b", n: 2 }
  ])
})

test("L4 a change builds the groups it leaves and enters, once each, whatever the size of the table", () => {
  for (const size of [100, 3000]) {
    const counters = newWorkCounters()
    const desk = new Desk(new Engine({ counters }))
    for (let i = 0; i < size; i++) desk.put(`t:${i}`, { g: i % 10, n: i % 7, note: "" })
    desk.watch("SELECT g, count() AS c, math::sum(n) AS s, math::max(n) AS m FROM t GROUP BY g")
    const built = (act: () => void): number => {
      const before = counters.groups
      act()
      return counters.groups - before
    }
    expect(built(() => desk.put("t:5", { g: 5, n: 100, note: "" }))).toBe(1)
    expect(built(() => desk.put("t:5", { g: 6, n: 100, note: "" }))).toBe(2)
    expect(
      built(() => desk.put("t:5", { g: 6, n: 100, note: "changed" })),
      "nothing a group shows"
    ).toBe(0)
    expect(
      built(() =>
        desk.sendAll([change("t:16", { g: 6, n: 1 }), change("t:26", { g: 6, n: 1 }), change("t:36", undefined)])
      )
    ).toBe(1)
  }
})

test("L6 an aggregate without an accumulator says that it is computed again over its group", () => {
  const plan = new Desk().watch("SELECT g, math::median(n) AS m, n, math::sum(n) AS s FROM t GROUP BY g").view.plan()
  expect(plan.filter((row) => !row.incremental).map((row) => [row.operator, row.reason])).toEqual([
    ["aggregate math::median", "computed again over its group"],
    ["aggregate list of values", "computed again over its group"]
  ])
})

test("L1 a group whose row reads another record is built again when that changes", () => {
  const desk = new Desk()
  desk.put("p:1", { name: "Ann" }).put("t:1", { who: "p:1" }).put("t:2", { who: "p:1" })
  const view = grouped(desk, "SELECT array::distinct(who).name AS names, count() AS n FROM t GROUP ALL")
  const names = (): unknown => view.rows()
  desk.put("p:1", { name: "Bea" })
  expect(names()).toEqual(
    desk.watch("SELECT array::distinct(who).name AS names, count() AS n FROM t WHERE true GROUP ALL").rows()
  )
  expect(JSON.stringify(names())).toContain("Bea")
})

test("L1 counts of children as a subquery: one group per row around it, strict about failures", () => {
  const desk = new Desk()
  desk.put("p:1", {}).put("p:2", {})
  const view = desk.watch(
    "SELECT id, (SELECT count() AS n, math::sum(x + 1) AS s FROM c WHERE p = $parent.id GROUP ALL) AS k, (SELECT VALUE count() FROM c WHERE p = $parent.id GROUP ALL)[0] AS n FROM p"
  )
  const none = { k: [{ n: 0, s: 0 }], n: 0 }
  expect(view.rows()).toEqual([
    { id: "p:1", ...none },
    { id: "p:2", ...none }
  ])
  desk.put("c:1", { p: "p:1", x: 1 })
  expect(view.delta()?.updates.map(([id]) => id)).toEqual(["p:1"])
  desk.put("c:2", { p: "p:1", x: 5 })
  expect(view.rows()).toEqual([
    { id: "p:1", k: [{ n: 2, s: 8 }], n: 2 },
    { id: "p:2", ...none }
  ])
  desk.put("c:2", { p: "p:1", x: "text" })
  expect(view.rows()).toEqual([{ id: "p:2", ...none }])
  expect(view.view.errors().map(({ id }) => id)).toEqual(["p:1"])
  desk.put("c:2", { p: "p:2", x: 1 })
  expect(view.rows()).toEqual([
    { id: "p:1", k: [{ n: 1, s: 2 }], n: 1 },
    { id: "p:2", k: [{ n: 1, s: 2 }], n: 1 }
  ])
})

test("L5 an instance filled from the records and one that followed the changes are the same", () => {
  const query = "SELECT g, math::sum(n) AS s, math::mean(n) AS m, n FROM t GROUP BY g ORDER BY s"
  const desk = new Desk()
  const followed = grouped(desk, query)
  for (let i = 0; i < 60; i++) desk.put(`t:${(i * 7) % 30}`, { g: i % 3, n: ((i * 37) % 11) / 10 })
  const fresh = new Engine()
  for (const row of desk.engine.store.rows("t")) fresh.load(row.id, row.version, row.doc)
  const filled = Either.getOrThrow(fresh.acquire(Either.getOrThrow(parseSelect(query)), {}))
  expect(filled.hash()).toBe(followed.hash())
  expect(filled.rows().map((row) => [row.key, render(row.value())])).toEqual(
    followed.view.rows().map((row) => [row.key, render(row.value())])
  )
})
