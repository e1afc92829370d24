/**
 * SPLIT by hand: pieces that come, change and go with their record, under names that stay.
 *
 * Why by hand: the laws test compares contents with the plain evaluator; which piece a delta speaks of is said here.
 */
import { expect, test } from "vitest"
import { Desk, type Watching } from "./desk.ts"

const split = (desk: Desk, query: string): Watching => {
  const watching = desk.watch(query)
  expect(watching.view.plan().map((row) => row.operator)).toContain("split")
  return watching
}

test("L2 a record grows and shrinks by pieces: only they come and go", () => {
  const desk = new Desk()
  const view = split(desk, "SELECT id, tag FROM t SPLIT tag")
  desk.put("t:1", { tag: ["a", "b"] })
  expect(view.delta()?.additions).toEqual([
    ["t:1", 1],
    ["t:1#2", 1]
  ])
  expect(view.rows()).toEqual([
    { id: "t:1", tag: "a" },
    { id: "t:1", tag: "b" }
  ])
  desk.put("t:1", { tag: ["a", "b", "c"] })
  expect(view.delta()).toEqual({
    additions: [["t:1#3", 2]],
    updates: [
      ["t:1", 2],
      ["t:1#2", 2]
    ],
    removals: [],
    subqueries: []
  })
  desk.put("t:1", { tag: ["x"] })
  expect(view.delta()).toEqual({ additions: [], updates: [["t:1", 3]], removals: ["t:1#2", "t:1#3"], subqueries: [] })
  desk.put("t:1", { tag: "no array" })
  expect(view.rows()).toEqual([{ id: "t:1", tag: "no array" }])
  desk.put("t:1", { tag: [] })
  expect(view.delta()?.removals).toEqual(["t:1"])
  expect(view.rows()).toEqual([])
  desk.put("t:1", { tag: ["y"] }).remove("t:1")
  expect(view.delta()?.removals).toEqual(["t:1"])
})

test("L1 ORDER BY moves pieces and leaves them their names", () => {
  const desk = new Desk()
  const view = split(desk, "SELECT id, tag FROM t SPLIT tag ORDER BY tag DESC")
  desk.put("t:1", { tag: [1, 3] }).put("t:2", { tag: [2, 3] })
  expect(view.keys()).toEqual(["t:1#2", "t:2#2", "t:2", "t:1"])
  desk.put("t:1", { tag: [5, 0] })
  expect(view.keys()).toEqual(["t:1", "t:2#2", "t:2", "t:1#2"])
})

test("L2 pieces cross the edges of a window", () => {
  const desk = new Desk()
  const view = split(desk, "SELECT id, tag FROM t SPLIT tag ORDER BY tag LIMIT 2 START 1")
  desk.put("t:1", { tag: [1, 4] }).put("t:2", { tag: [2, 3] })
  expect(view.rows()).toEqual([
    { id: "t:2", tag: 2 },
    { id: "t:2", tag: 3 }
  ])
  desk.put("t:3", { tag: [0] })
  expect(view.rows()).toEqual([
    { id: "t:1", tag: 1 },
    { id: "t:2", tag: 2 }
  ])
  expect(view.delta()).toMatchObject({ additions: [["t:1", 1]], removals: ["t:2#2"], updates: [] })
  desk.remove("t:2")
  expect(view.delta()).toMatchObject({ additions: [["t:1#2", 1]], removals: ["t:2"], updates: [] })
})

test("L1 two paths split each other's pieces, VALUE splits the document", () => {
  const desk = new Desk()
  const both = split(desk, "SELECT a, b FROM t SPLIT a, b")
  const values = split(desk, "SELECT VALUE a FROM t SPLIT a")
  desk.put("t:1", { a: [1, 2], b: ["x", "y"] })
  expect(both.rows()).toEqual([
    { a: 1, b: "x" },
    { a: 1, b: "y" },
    { a: 2, b: "x" },
    { a: 2, b: "y" }
  ])
  expect(both.keys()).toEqual(["t:1", "t:1#2", "t:1#3", "t:1#4"])
  expect(values.rows()).toEqual([1, 2])
})

test("D2a a piece that fails is left out alone, and the others keep their names", () => {
  const desk = new Desk()
  const view = split(desk, "SELECT VALUE string::len(a) AS a FROM t SPLIT a")
  desk.put("t:1", { a: ["x", 1, "xyz"] })
  expect([view.keys(), view.rows()]).toEqual([
    ["t:1", "t:1#3"],
    [1, 3]
  ])
  expect(view.view.errors().map(({ id }) => id)).toEqual(["t:1"])
  desk.put("t:1", { a: ["x", "xy", "xyz"] })
  expect([view.keys(), view.view.errors()]).toEqual([["t:1", "t:1#2", "t:1#3"], []])
  expect(view.delta()?.additions).toEqual([["t:1#2", 2]])
})

test("L1 pieces that show other records change with them, those that do not stay quiet", () => {
  const desk = new Desk()
  desk
    .put("p:1", { name: "Ann" })
    .put("p:2", { name: "Bea" })
    .put("t:1", { who: ["p:1", "p:2"] })
  const view = split(desk, "SELECT id, who FROM t SPLIT who FETCH who")
  expect(view.rows()).toEqual([
    { id: "t:1", who: { id: "p:1", name: "Ann" } },
    { id: "t:1", who: { id: "p:2", name: "Bea" } }
  ])
  desk.put("p:2", { name: "Cid" })
  expect(view.delta()).toEqual({ additions: [], updates: [["t:1#2", 1]], removals: [], subqueries: [] })
  desk.put("p:3", { name: "Dee" })
  expect(view.delta()).toBeUndefined()
})

test("L1 SPLIT in a subquery fails where it is shown, as the database does", () => {
  const desk = new Desk()
  desk.put("p:1", {}).put("p:2", {})
  const view = desk.watch(
    "SELECT id, (SELECT tag FROM c WHERE p = $parent.id SPLIT tag ORDER BY tag LIMIT 2) AS tags, (SELECT VALUE string::len(tag) AS tag FROM c WHERE p = $parent.id SPLIT tag LIMIT 1) AS first FROM p"
  )
  desk.put("c:1", { p: "p:1", tag: ["b", "a"] })
  expect(view.rows()).toEqual([
    { id: "p:1", tags: [{ tag: "a" }, { tag: "b" }], first: [1] },
    { id: "p:2", tags: [], first: [] }
  ])
  desk.put("c:1", { p: "p:1", tag: ["b", 7] })
  // The piece that fails lies behind the window, and is not looked at.
  expect(view.rows()).toEqual([
    { id: "p:1", tags: [{ tag: 7 }, { tag: "b" }], first: [1] },
    { id: "p:2", tags: [], first: [] }
  ])
  desk.put("c:1", { p: "p:1", tag: [7, "b"] })
  expect(view.rows()).toEqual([{ id: "p:2", tags: [], first: [] }])
  expect(view.view.errors().map(({ id }) => id)).toEqual(["p:1"])
})
