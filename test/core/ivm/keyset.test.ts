/**
 * Pages behind a row, by its id or by a field and its id, which parameters give as JSON carries it: as text.
 */
import { expect, test } from "vitest"
import { Desk } from "./desk.ts"
import type { Json } from "./generateData.ts"

const created = (id: string, at: number): unknown => ({
  table: "t",
  op: "CREATE",
  id,
  record: { at, ref: id === "t:bb" ? "t:a" : id, name: id },
  types: { ref: "record" }
})

const filled = (): Desk =>
  new Desk().sendAll(["t:a", "t:b", "t:c", "t:d"].map((id) => created(id, id === "t:d" ? 6 : 5)))

const keyset = "SELECT id, at FROM t WHERE at < $at OR at = $at AND id < $before ORDER BY at DESC, id DESC LIMIT 2"

const cases: ReadonlyArray<readonly [query: string, params: Json, ...answers: ReadonlyArray<ReadonlyArray<string>>]> = [
  ["SELECT id FROM t WHERE id > $after ORDER BY id LIMIT 2", { after: "t:b" }, ["c", "d"], ["d"], ["bb", "d"]],
  [
    "SELECT id FROM t WHERE $before > id ORDER BY id DESC LIMIT 2",
    { before: "t:c" },
    ["b", "a"],
    ["b", "a"],
    ["bb", "b"]
  ],
  [keyset, { at: 5, before: "t:c" }, ["b", "a"], ["b", "a"], ["bb", "b"]],
  ["SELECT id FROM t WHERE ref >= $r", { r: "t:b" }, ["b", "c", "d"], ["b", "d"], ["b", "d"]],
  ["SELECT id FROM t WHERE name >= $r", { r: "t:b" }, ["b", "c", "d"], ["b", "d"], ["b", "bb", "d"]],
  ["SELECT id FROM t WHERE ref < 't:b' AND at = 5", {}, ["a"], ["a"], ["a", "bb"]],
  ["SELECT id FROM t WHERE id > $o", { o: "other:b" }, ["a", "b", "c", "d"], ["a", "b", "d"], ["a", "b", "bb", "d"]],
  ["SELECT id FROM t WHERE id < $o", { o: "t" }, [], [], []],
  ["SELECT id FROM t WHERE id > type::record($after) LIMIT 2", { after: "t:b" }, ["c", "d"], ["d"], ["bb", "d"]],
  ["SELECT id FROM (SELECT * FROM t) WHERE id > $after", { after: "t:b" }, ["c", "d"], ["d"], ["bb", "d"]]
]

test("L1 D67 a text that is an id of a table is that id beside its records", () => {
  const desk = filled()
  const views = cases.map(([query, params]) => desk.watch(query, params))
  const wanted = (step: number) =>
    cases.map(([query, , ...answers]) => [query, answers[step]!.map((key) => `t:${key}`)])
  const shown = () => views.map((view, i) => [cases[i]![0], view.rows().map((row) => (row as { id: string }).id)])
  const fresh = () =>
    cases.map(([query, params]) => [
      query,
      desk
        .watch(query, params)
        .rows()
        .map((row) => (row as { id: string }).id)
    ])
  expect(shown()).toEqual(wanted(0))
  desk.remove("t:c")
  expect(shown()).toEqual(wanted(1))
  desk.send(created("t:bb", 5))
  expect(shown()).toEqual(wanted(2))
  expect(fresh()).toEqual(wanted(2))
})

test("L4 a page behind a row by fields and its id is a range of the index of the first field", () => {
  const desk = new Desk()
  for (let i = 0; i < 3_000; i++) desk.send(created(`t:${i}`, i >> 3))
  const pages = [
    desk.watch(keyset, { at: 100, before: "t:804" }),
    desk.watch(
      "SELECT id, at, name FROM t WHERE at > $at OR (at = $at AND name > $name) OR (at = $at AND name = $name AND id > $id) ORDER BY at, name, id LIMIT 3",
      { at: 100, name: "t:803", id: "t:803" }
    )
  ]
  expect(pages.map((page) => page.keys())).toEqual([
    ["t:803", "t:802"],
    ["t:804", "t:805", "t:806"]
  ])
  for (const [i, fields] of ["at, id", "at, name"].entries()) {
    const plan = pages[i]!.view.plan()
    expect(plan.map(({ operator }) => operator)).toContain(`page of an index by ${fields}, read by 1 views`)
    // Of the rows with the same value, and of no others before the page.
    expect(plan.find(({ operator }) => operator.startsWith("walk over the index"))!.rows).toBeLessThan(9)
  }
})
