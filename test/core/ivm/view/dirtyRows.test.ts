/**
 * Rows whose subqueries move while they themselves stay: nothing of the row is made anew, so its hash, its place in a
 * window and what is announced must be what a view that is made now would have.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { campaign, rounds } from "../../../../kit/data/random.ts"
import { toJson } from "../../../../src/core/surql/values/json.ts"
import { change, Desk, type Watching } from "../desk.ts"

const queries: ReadonlyArray<string> = [
  "SELECT id, (SELECT id, n FROM post WHERE author = $parent.id) AS posts FROM user",
  // The same shape thrice, one of them with the same arguments: which one has moved has to be looked up.
  "SELECT id, (SELECT id FROM post WHERE author = $parent.a) AS x, (SELECT id FROM post WHERE author = $parent.b) AS y, (SELECT id FROM post WHERE author = $parent.a) AS z FROM user",
  "SELECT id, n, (SELECT id, n FROM post WHERE author = $parent.id ORDER BY n LIMIT 2) AS first, (SELECT id FROM team WHERE id = $parent.a) AS team FROM user ORDER BY n LIMIT 2",
  "SELECT id, n, (SELECT id FROM post WHERE author = $parent.id) AS posts FROM user ORDER BY n START 1 LIMIT 1",
  "SELECT id, (SELECT id FROM post WHERE author = $parent.id) AS posts FROM ONLY user WHERE n = 1 LIMIT 1",
  // One result under all rows: a step that moves it may bring rows into the window and out of it as well.
  "SELECT id, n, (SELECT id FROM post) AS posts FROM user ORDER BY n LIMIT 2",
  "SELECT id, (SELECT id FROM user) AS users FROM user LIMIT 2 START 1",
  "SELECT id, (SELECT id, (SELECT id, n FROM post WHERE author = $parent.id) AS posts FROM user WHERE a = $parent.id) AS users FROM team"
]

const nat = (max: number): FastCheck.Arbitrary<number> => FastCheck.nat(max)
const anyChange = FastCheck.oneof(
  FastCheck.tuple(nat(3), nat(2), nat(2), nat(3)).map(([id, a, b, n]) =>
    change(`user:${id}`, { a: `team:${a}`, b: `team:${b}`, n })
  ),
  FastCheck.tuple(nat(5), nat(3), nat(3)).map(([id, author, n]) =>
    change(`post:${id}`, { author: `user:${author}`, n })
  ),
  FastCheck.tuple(nat(5), nat(2), nat(3)).map(([id, author, n]) =>
    change(`post:${id}`, { author: `team:${author}`, n })
  ),
  FastCheck.tuple(nat(2), nat(1)).map(([id, n]) => change(`team:${id}`, { n })),
  FastCheck.tuple(FastCheck.constantFrom("user", "post", "team"), nat(3)).map(([table, id]) =>
    change(`${table}:${id}`, undefined)
  )
)

/** The rows as text by key. */
const shown = ({ view }: Watching): ReadonlyMap<string, string> =>
  new Map(view.rows().map((row) => [row.key, JSON.stringify([row.version, toJson(row.value())])]))

/** What is wrong with what was told of a step: a child that changed where it is not shown is an update all the same. */
const wrong = (
  view: Watching,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>
): ReadonlyArray<string> => {
  const { additions = [], removals = [], updates = [] } = view.delta() ?? {}
  const came = additions.map(([key]) => key),
    changed = updates.map(([key]) => key)
  const all = [...came, ...changed, ...removals]
  return [
    ...all.filter((key, i) => all.indexOf(key) !== i).map((key) => `${key} twice`),
    ...[...after.keys()]
      .filter((key) =>
        before.has(key) ? before.get(key) !== after.get(key) && !changed.includes(key) : !came.includes(key)
      )
      .map((key) => `${key} not told`),
    ...[...before.keys()]
      .filter((key) => !after.has(key) && !removals.includes(key))
      .map((key) => `${key} not taken away`),
    ...came.filter((key) => before.has(key) || !after.has(key)).map((key) => `${key} did not come`),
    ...changed.filter((key) => !before.has(key) || !after.has(key)).map((key) => `${key} did not stay`),
    ...removals.filter((key) => !before.has(key) || after.has(key)).map((key) => `${key} did not go`)
  ]
}

test("L1 L2 L5 a row whose subquery moved hashes and shows what it does in a view made afterwards, and is announced once, alone or in a batch", () => {
  let refreshed = 0
  FastCheck.assert(
    FastCheck.property(
      FastCheck.array(FastCheck.array(anyChange, { minLength: 1, maxLength: 3 }), {
        minLength: 5,
        maxLength: 40,
        size: "max"
      }),
      (batches) => {
        const desk = new Desk()
        const views = queries.map((query) => desk.watch(query))
        const past: Array<ReadonlyArray<unknown>> = []
        for (const batch of batches) {
          const before = views.map(shown)
          if (batch.length === 1) desk.send(batch[0])
          else desk.sendAll(batch)
          past.push(batch)
          for (const [i, view] of views.entries())
            expect([queries[i], wrong(view, before[i]!, shown(view))]).toEqual([queries[i], []])
          refreshed += views.filter((view) => (view.delta()?.subqueries.length ?? 0) > 0).length
          if (past.length % 4 !== 0) continue
          const later = new Desk()
          for (const one of past) later.sendAll(one)
          for (const [i, query] of queries.entries()) {
            const made = later.watch(query)
            expect([query, views[i]!.rows()]).toEqual([query, made.rows()])
            expect([query, views[i]!.hash()]).toEqual([query, made.hash()])
          }
        }
      }
    ),
    { numRuns: rounds(campaign ? 60 : 25) }
  )
  expect(refreshed).toBeGreaterThan(40 * rounds(25))
})

test("L2 a child is announced under each alias that shows it, and under no other", () => {
  const desk = new Desk().put("user:1", { a: "team:1", b: "team:2" }).put("user:2", { a: "team:3", b: "team:1" })
  const view = desk.watch(queries[1]!)
  desk.put("post:1", { author: "team:1" })
  expect(view.delta()?.updates).toEqual([
    ["user:1", 1],
    ["user:2", 1]
  ])
  expect(view.delta()?.subqueries.map(({ alias, id, op, parent }) => [parent, alias, id, op])).toEqual([
    ["user:1", "x", "post:1", "add"],
    ["user:1", "z", "post:1", "add"],
    ["user:2", "y", "post:1", "add"]
  ])
  desk.remove("post:1")
  expect(view.delta()?.subqueries.map(({ alias, op, parent }) => [parent, alias, op])).toEqual([
    ["user:1", "x", "remove"],
    ["user:1", "z", "remove"],
    ["user:2", "y", "remove"]
  ])
})

test("L2 behind a window nothing is announced, and the row comes in with the children it has then", () => {
  const desk = new Desk().put("user:1", { n: 1 }).put("user:2", { n: 2 }).put("user:3", { n: 3 })
  const view = desk.watch(
    "SELECT id, n, (SELECT id FROM post WHERE author = $parent.id) AS posts FROM user ORDER BY n LIMIT 2"
  )
  const before = view.hash()
  desk.put("post:1", { author: "user:3" })
  expect([view.delta(), view.hash()]).toEqual([undefined, before])
  desk.remove("user:1")
  expect(view.rows()).toEqual([
    { id: "user:2", n: 2, posts: [] },
    { id: "user:3", n: 3, posts: [{ id: "post:1" }] }
  ])
  expect(view.hash()).toBe(
    desk
      .watch(
        "SELECT id, n, (SELECT id FROM post WHERE author = $parent.id) AS posts FROM user WHERE n > 0 ORDER BY n LIMIT 2"
      )
      .hash()
  )
})

test("two rows that exchange their children are not what they were", () => {
  const desk = new Desk()
    .put("user:1", {})
    .put("user:2", {})
    .put("post:1", { author: "user:1" })
    .put("post:2", { author: "user:2" })
  const hashes = new Set<string>()
  const shown = "SELECT id, (SELECT VALUE n FROM post WHERE author = $parent.id) AS posts FROM user"
  const view = desk.watch(shown)
  hashes.add(view.hash())
  desk.sendAll([change("post:1", { author: "user:2" }), change("post:2", { author: "user:1" })])
  hashes.add(view.hash())
  const straight = new Desk().put("user:1", {}).put("user:2", {})
  straight
    .put("post:1", { author: "user:1" })
    .put("post:1", { author: "user:1", n: 1 })
    .put("post:2", { author: "user:2" })
    .put("post:2", { author: "user:2", n: 1 })
  hashes.add(straight.watch(shown).hash())
  expect(hashes.size).toBe(3)
})
