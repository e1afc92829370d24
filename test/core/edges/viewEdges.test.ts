/**
 * The edges of a view against its result: what deltas lead to is what the result asks for, however often a record is
 * shown.
 *
 * Why a model that only keeps the last word: that is what the database does with the operations, in the order they
 * come.
 */
import { expect, test } from "vitest"
import { rng, runs, seeded } from "../../../kit/data/random.ts"
import { difference, type EdgeOp, nameOf, ViewEdgeState } from "../../../src/core/edges/viewEdges.ts"
import { Desk, type Watching } from "../ivm/desk.ts"

const apply = (there: Map<string, EdgeOp>, ops: Iterable<EdgeOp>): void => {
  for (const op of ops) {
    if (op.version === undefined) there.delete(nameOf(op))
    else there.set(nameOf(op), op)
  }
}

const shown = (ops: Iterable<EdgeOp>): ReadonlyArray<string> =>
  [
    ...new Set(
      Array.from(
        ops,
        ({ out, parent, path, version }) => `${path === "" ? "" : `${parent} ${path} `}${out} v${version}`
      )
    )
  ].sort()

const threads = (): Desk => {
  const desk = new Desk()
  desk.put("user:1", { tags: ["a", "b"] }).put("user:2", { tags: [] })
  return desk
    .put("post:1", { by: "user:1" })
    .put("post:2", { by: "user:2" })
    .put("comment:1", { on: "post:1" })
    .put("comment:2", { on: "post:1" })
}

const nested =
  "SELECT id, (SELECT id, (SELECT id FROM comment WHERE on = $parent.id) AS comments FROM post WHERE by = $parent.id) AS posts FROM user"

test("D21 an edge for every row, alias path and parent; none for rows that are no records", () => {
  const desk = threads()
  const edges = (query: string): ReadonlyArray<string> => shown(new ViewEdgeState(desk.watch(query).view).all())
  expect(edges(nested)).toEqual([
    "post:1 posts.comments comment:1 v1",
    "post:1 posts.comments comment:2 v1",
    "user:1 posts post:1 v1",
    "user:1 v1",
    "user:2 posts post:2 v1",
    "user:2 v1"
  ])
  expect(edges("SELECT * FROM user SPLIT tags")).toEqual(["user:1 v1"])
  for (const none of [
    "SELECT count() AS n FROM user GROUP ALL",
    "SELECT by, count() AS n FROM post GROUP BY by",
    "SELECT VALUE by FROM post GROUP BY by"
  ])
    expect(edges(none), none).toEqual([])
})

test("D21 a record shown twice at one place has one edge, which goes with the last of them", () => {
  const desk = threads()
  const view = desk.watch(
    "SELECT id, (SELECT id, (SELECT id FROM comment WHERE on = $parent.id) AS comments FROM post WHERE n = 1) AS posts FROM user"
  )
  const state = new ViewEdgeState(view.view)
  const there = new Map<string, EdgeOp>()
  const step = (change: () => Desk): ReadonlyArray<string> => {
    change()
    const delta = view.delta()
    if (delta !== undefined) apply(there, state.changes(delta))
    return shown(there.values())
  }
  apply(there, state.all())
  expect(step(() => desk.put("post:1", { n: 1 }))).toContain("post:1 posts.comments comment:1 v1")
  expect(step(() => desk.remove("user:2"))).toContain("post:1 posts.comments comment:1 v1")
  expect(step(() => desk.remove("user:1"))).toEqual([])
})

test("D21 what is there already is not written, and what should not be there goes", () => {
  const op = (out: string, version: number | undefined): EdgeOp => ({ path: "", parent: "", out, version })
  const there = new Map([op("a:1", 1), op("a:2", 1), op("a:3", 1)].map((one) => [nameOf(one), { op: one }]))
  expect(difference([op("a:1", 1), op("a:2", 2), op("a:4", 1)], there, false)).toEqual([
    op("a:3", undefined),
    op("a:2", 2),
    op("a:4", 1)
  ])
  expect(difference([op("a:1", 1)], there, true)).toEqual([op("a:2", undefined), op("a:3", undefined), op("a:1", 1)])
})

const queries = [
  "SELECT * FROM user WHERE n > 1",
  "SELECT * FROM post ORDER BY n LIMIT 2",
  nested,
  "SELECT * FROM user SPLIT tags",
  "SELECT * FROM user SPLIT tags ORDER BY n LIMIT 3",
  "SELECT id, (SELECT id, n FROM post WHERE by = $parent.id ORDER BY n LIMIT 1) AS top, (SELECT id FROM post WHERE n = $parent.n) AS same FROM user WHERE n < 3",
  "SELECT id, (SELECT id, (SELECT id FROM comment WHERE n = $parent.n) AS comments FROM post) AS posts FROM user",
  "SELECT n, count() AS c FROM user GROUP BY n",
  "SELECT * FROM user, post",
  "SELECT * FROM user WHERE array::len((SELECT * FROM post)) > 1"
]

seeded(
  "D21 deltas lead to the edges that the result asks for, for every kind of view",
  "test/core/edges/viewEdges.test.ts",
  (random) => {
    let changes = 0,
      children = 0
    for (let round = 0; round < runs(3); round++) {
      const own = rng(random.below(2 ** 31))
      const desk = threads()
      const views = queries.map((query): readonly [string, Watching, ViewEdgeState, Map<string, EdgeOp>] => {
        const view = desk.watch(query)
        const state = new ViewEdgeState(view.view)
        const there = new Map<string, EdgeOp>()
        apply(there, state.all())
        return [query, view, state, there]
      })
      for (let i = 0; i < 60; i++) {
        const id = `${own.pick(["user", "post", "comment"])}:${own.below(4)}`
        if (own.chance(0.25)) desk.remove(id)
        else
          desk.put(id, {
            n: own.below(4),
            by: `user:${own.below(3)}`,
            on: `post:${own.below(3)}`,
            tags: ["a", "b", "a"].slice(own.below(4))
          })
        for (const [query, view, state, there] of views) {
          const delta = view.delta()
          if (delta === undefined) continue
          const ops = state.changes(delta)
          changes += ops.length
          children += ops.filter(({ path }) => path !== "").length
          apply(there, ops)
          expect(shown(there.values()), `${query}, round ${round}, step ${i}`).toEqual(
            shown(new ViewEdgeState(view.view).all())
          )
        }
      }
    }
    expect(changes).toBeGreaterThan(runs(3) * 100)
    expect(children).toBeGreaterThan(runs(3) * 30)
  }
)
