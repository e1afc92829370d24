/**
 * Rows take over the new states of their records where they stand. What was told or handed out before does not change
 * with them, and what a step announces is what it did in all.
 */
import { expect, test } from "vitest"
import { change, Desk } from "../desk.ts"

const desk = (): Desk =>
  new Desk().put("t:1", { n: 1, a: "p" }).put("t:2", { n: 2, a: "q" }).put("t:3", { n: 3, a: "r" })

test.each([
  "SELECT * FROM t",
  "SELECT * FROM t ORDER BY n",
  "SELECT * FROM t ORDER BY n LIMIT 3",
  "SELECT VALUE a FROM t ORDER BY a LIMIT 3"
])("L3 rows that were read stay what they were when their records change: %s", (query) => {
  const on = desk()
  const { view, rows } = on.watch(query)
  const were = view.rows()
  const values = were.map((row) => row.value())
  const again = view.rows()
  on.put("t:2", { n: 2, a: "changed" }, "UPDATE").put("t:1", { n: 9, a: "moved" }, "UPDATE").remove("t:3")
  expect(again.map((row) => [row.version, row.value()])).toEqual(were.map((row, i) => [row.version, values[i]]))
  expect(rows()).toEqual(
    new Desk().put("t:2", { n: 2, a: "changed" }).put("t:1", { n: 9, a: "moved" }).watch(query).rows()
  )
})

test("L2 a row that leaves a window, changes behind it and comes back in one step is announced as the update it is", () => {
  const on = desk()
  const view = on.watch("SELECT * FROM t ORDER BY n START 1 LIMIT 1")
  expect(view.keys()).toEqual(["t:2"])
  on.sendAll([change("t:0", { n: 0 }), change("t:2", { n: 2, a: "changed" }, "UPDATE"), change("t:1", undefined)])
  expect(view.delta()).toEqual({ additions: [], updates: [["t:2", 2]], removals: [], subqueries: [] })
  expect([view.rows(), view.hash()]).toEqual([
    [{ id: "t:2", n: 2, a: "changed" }],
    on.watch("SELECT * FROM t ORDER BY n, id START 1 LIMIT 1").hash()
  ])
})

test("L2 a row that leaves a window and comes back unchanged in one step is not announced", () => {
  const on = desk()
  const view = on.watch("SELECT * FROM t ORDER BY n START 1 LIMIT 1")
  on.sendAll([change("t:0", { n: 0 }), change("t:1", undefined)])
  expect([view.keys(), view.delta()]).toEqual([["t:2"], undefined])
})

test("L2 a row that changes inside a window and then leaves it goes, and one that changes behind it and then enters comes", () => {
  const on = desk()
  const view = on.watch("SELECT * FROM t ORDER BY n LIMIT 2")
  on.sendAll([change("t:2", { n: 2, a: "changed" }, "UPDATE"), change("t:0", { n: 0 })])
  expect(view.delta()).toEqual({ additions: [["t:0", 1]], updates: [], removals: ["t:2"], subqueries: [] })
  on.sendAll([change("t:2", { n: 2, a: "again" }, "UPDATE"), change("t:0", undefined)])
  expect(view.delta()).toEqual({ additions: [["t:2", 3]], updates: [], removals: ["t:0"], subqueries: [] })
  expect(view.hash()).toBe(on.watch("SELECT * FROM t ORDER BY n, id LIMIT 2").hash())
})

test("L4 a row that changes and stays is looked for nowhere: neither its window nor the list of its view exchanges it", () => {
  const on = desk()
  const { view } = on.watch("SELECT * FROM t WHERE n + 0 != 99 ORDER BY n LIMIT 2")
  const held = (): unknown => Reflect.get(view, "cells")
  const before = [...(held() as ReadonlyArray<unknown>)]
  on.put("t:1", { n: 1, a: "changed" }, "UPDATE").put("t:3", { n: 3, a: "changed" }, "UPDATE")
  expect((held() as ReadonlyArray<unknown>).every((cell, i) => cell === before[i])).toBe(true)
})
