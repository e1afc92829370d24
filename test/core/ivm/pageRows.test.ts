/**
 * The rows that a page makes of its records: the one that left last is taken for the one that comes next, be it the
 * same record in whatever state, or another.
 */
import { expect, test } from "vitest"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { Desk } from "./desk.ts"

const query = "SELECT * FROM t WHERE list = 0 ORDER BY at DESC LIMIT 2"

const desk = (): Desk => {
  const on = new Desk()
  for (let at = 1; at <= 5; at++) on.put(`t:${at}`, { list: 0, at, text: "first" })
  return on
}

/** What the page hashes to where it is made now. */
const freshHash = (on: Desk): string => {
  const fresh = new Desk()
  for (const { doc, id, version } of on.engine.store.rows("t")) fresh.engine.load(id, version, doc)
  return fresh.watch(query).hash()
}

test("L5 a record that comes back to a page comes in the state it has by then", () => {
  const on = desk(),
    page = on.watch(query)
  on.put("t:9", { list: 0, at: 9, text: "first" })
  on.put("t:4", { list: 0, at: 4, text: "second" }, "UPDATE").remove("t:9")
  expect(page.delta()).toMatchObject({ additions: [["t:4", 2]], removals: ["t:9"] })
  expect(page.rows().at(-1)).toMatchObject({ id: "t:4", text: "second" })
  expect(page.hash()).toBe(freshHash(on))
})

test("L2 L5 another record that comes to a page takes nothing over from the one that left", () => {
  const on = desk(),
    page = on.watch(query)
  const read = page.view.rows()
  on.remove("t:5")
  expect(page.delta()).toMatchObject({ additions: [["t:3", 1]], removals: ["t:5"] })
  on.put("t:8", { list: 0, at: 8, text: "first" })
  expect(page.delta()).toMatchObject({ additions: [["t:8", 1]], removals: ["t:3"] })
  on.put("t:8", { list: 0, at: 0, text: "first" }, "UPDATE")
  expect(page.delta()).toMatchObject({ additions: [["t:3", 1]], removals: ["t:8"] })
  expect(page.hash()).toBe(freshHash(on))
  // What was read before is what was shown before.
  expect(read.map((row) => [row.key, row.version, (row.value() as { at: number }).at])).toEqual([
    ["t:5", 1, 5],
    ["t:4", 1, 4]
  ])
})

test("L7 the row that left last is kept, and no other", () => {
  const on = desk(),
    { view } = on.watch(query)
  const rowOf = (text: string): object | undefined => on.engine.store.slotOf(Ids.parse(text)!).heldBy(view)
  const [first, second] = [rowOf("t:5"), rowOf("t:4")]
  on.put("t:8", { list: 0, at: 8, text: "first" })
  const third = rowOf("t:8")
  expect([rowOf("t:5"), rowOf("t:4")]).toEqual([first, undefined])
  on.remove("t:8")
  expect(rowOf("t:4")).toBe(second)
  on.put("t:9", { list: 0, at: 9, text: "first" })
  expect(rowOf("t:9")).toBe(third)
  expect(on.engine.store.holdings()).toBe(2)
})

test.each([
  ["n > 1 ORDER BY n", [2, 3, 4], 2, [3, 4, 4.5]],
  ["n < 8 ORDER BY n DESC", [7, 6, 5], 7, [6, 5, 4.5]]
])(
  "L1 where the end of a page of a range moves on, %s, what comes before it is taken in",
  (rest, first, gone, last) => {
    const on = new Desk()
    for (let n = 0; n < 10; n++) on.put(`post:${n}`, { n })
    const view = on.watch(`SELECT VALUE n FROM post WHERE ${rest} LIMIT 3`)
    expect(view.rows()).toEqual(first)
    on.remove(`post:${gone}`).put("post:20", { n: 4.5 })
    expect(view.rows()).toEqual(last)
  }
)
