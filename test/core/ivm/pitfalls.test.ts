/**
 * The mistakes that live-query engines are known to make, one test each, with the answer written by hand.
 *
 * Why by hand: the random tests compare the engine with an evaluator; these say what must come out, whatever evaluates
 * it.
 */
import { Either } from "effect"
import { describe, expect, test } from "vitest"
import type { Delta } from "../../../src/core/ivm/delta/delta.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { change, Desk } from "./desk.ts"
import { decode } from "./runCase.ts"

const nothing: Delta = { additions: [], updates: [], removals: [], subqueries: [] }

/** Three people, three posts and who wrote them. */
const threads = (): Desk => {
  const desk = new Desk()
  for (const name of ["ann", "bob", "cleo"]) desk.put(`user:${name}`, { name })
  desk
    .put("post:1", { author: "user:ann", n: 1 })
    .put("post:2", { author: "user:ann", n: 2 })
    .put("post:3", { author: "user:bob", n: 3 })
  return desk
}

const withPosts = "SELECT id, (SELECT VALUE id FROM post WHERE author = $parent.id) AS posts FROM user"

test("L1 what a row reads beside itself is not followed: ranges of records and links in a filter are", () => {
  const desk = new Desk().put("q:1", { links: ["p:1", "p:9"] })
  const exists = desk.watch("SELECT record::exists(p:1..3) AS x FROM q")
  const linked = desk.watch("SELECT id FROM q WHERE links[WHERE $this.a = 1]")
  const seen = (step: Desk): ReadonlyArray<unknown> => (expect(step).toBe(desk), [exists.rows(), linked.rows()])
  expect(seen(desk)).toEqual([[{ x: false }], []])
  expect(seen(desk.put("p:2", { a: 1 }))).toEqual([[{ x: true }], []])
  expect(seen(desk.put("p:9", { a: 1 }))).toEqual([[{ x: true }], [{ id: "q:1" }]])
  expect(seen(desk.remove("p:2").remove("p:9"))).toEqual([[{ x: false }], []])
})

test("L1 links that a value is made of, and what stands behind one, are not followed: they are", () => {
  const desk = threads()
  const authors = desk.watch("SELECT VALUE author FROM post FETCH author")
  // Behind a link there is no row: `$parent` is NONE, so the subquery has the posts without `n`.
  const behind = desk.watch(
    "SELECT id, author.name.chain(|$name| [$name, n, (SELECT VALUE n FROM post WHERE n = $parent.n)]) AS x FROM post"
  )
  const inside = desk.watch("SELECT VALUE author.{ name, x: tags[WHERE $this = 'b'] } FROM post")
  const ann = { id: "user:ann", name: "ann" },
    bob = { id: "user:bob", name: "bob" }
  expect(authors.rows()).toEqual([ann, ann, bob])
  expect(behind.rows().map((row) => (row as { readonly x: unknown }).x)).toEqual([
    ["ann", null, []],
    ["ann", null, []],
    ["bob", null, []]
  ])
  expect(inside.rows()).toEqual([
    { name: "ann", x: [] },
    { name: "ann", x: [] },
    { name: "bob", x: [] }
  ])
  desk.put("user:ann", { name: "Ann", tags: ["a", "b"] }, "UPDATE").put("post:3", { author: "user:cleo" }, "UPDATE")
  expect(authors.rows()).toEqual([
    { ...ann, name: "Ann", tags: ["a", "b"] },
    { ...ann, name: "Ann", tags: ["a", "b"] },
    { id: "user:cleo", name: "cleo" }
  ])
  expect(behind.rows().map((row) => (row as { readonly x: unknown }).x)).toEqual([
    ["Ann", null, [null]],
    ["Ann", null, [null]],
    ["cleo", null, [null]]
  ])
  expect(inside.rows()[0]).toEqual({ name: "Ann", x: ["b"] })
})

describe("L2 filters", () => {
  test("a filtered view never loses a deleted row: it does", () => {
    const desk = new Desk().put("t:1", { ok: true }).put("t:2", { ok: true }).put("t:3", { ok: false })
    const view = desk.watch("SELECT id FROM t WHERE ok = true")
    desk.remove("t:1")
    expect(view.delta()).toEqual({ ...nothing, removals: ["t:1"] })
    expect(view.keys()).toEqual(["t:2"])
    desk.remove("t:3")
    expect(view.delta()).toBeUndefined()
  })

  test("an UPDATE never enters or leaves a filter: it does both", () => {
    const desk = new Desk().put("t:1", { n: 1 })
    const views = [
      "SELECT id FROM t WHERE n > 5",
      "SELECT id FROM t WHERE n = 9",
      "SELECT id FROM t WHERE n + 0 = 9",
      "SELECT id FROM t WHERE n IN [8, 9]"
    ].map((query) => desk.watch(query))
    desk.put("t:1", { n: 9 }, "UPDATE")
    for (const view of views)
      expect([view.delta(), view.keys()]).toEqual([{ ...nothing, additions: [["t:1", 2]] }, ["t:1"]])
    desk.put("t:1", { n: 2 }, "UPDATE")
    for (const view of views) expect([view.delta(), view.keys()]).toEqual([{ ...nothing, removals: ["t:1"] }, []])
  })

  test("values of different types compare equal: they do not, and numbers of different kinds do", () => {
    const desk = new Desk()
    const same = desk.watch("SELECT VALUE v FROM t WHERE v = 1")
    const text = desk.watch("SELECT VALUE v FROM t WHERE v = '1'")
    const yes = desk.watch("SELECT VALUE v FROM t WHERE v = true")
    const none = desk.watch("SELECT id FROM t WHERE v = NONE")
    const nothing = desk.watch("SELECT id FROM t WHERE v = NULL")
    const values = [1, "1", true, null, 0, "", false, [1], "true"]
    values.forEach((v, i) => desk.put(`t:${i}`, { v }))
    desk.put("t:20", {}).send({ table: "t", id: "t:21", op: "CREATE", record: { v: 1 }, types: { v: "float" } })
    expect([same.rows(), text.rows(), yes.rows(), none.keys(), nothing.keys()]).toEqual([
      [1, 1],
      ["1"],
      [true],
      ["t:20"],
      ["t:3"]
    ])
  })

  test("`1.5` is read as `1`: it is 1.5, in data, constants and parameters", () => {
    const desk = new Desk().put("t:1", { n: 1 }).put("t:2", { n: 1.5 }).put("t:3", { n: 2 })
    expect(desk.watch("SELECT id FROM t WHERE n = 1.5").keys()).toEqual(["t:2"])
    expect(desk.watch("SELECT id FROM t WHERE n > 1.25 AND n < $p", { p: 1.75 }).keys()).toEqual(["t:2"])
    expect(desk.watch("SELECT VALUE n FROM t WHERE n = $p", { p: 1.5 }).rows()).toEqual([1.5])
    expect(Either.isLeft(new Engine().acquire(Either.getOrThrow(parseSelect("SELECT * FROM t LIMIT 1.5")), {}))).toBe(
      true
    )
  })

  test("`CONTAINS` acts as `=`: it looks inside arrays and strings", () => {
    const desk = new Desk()
    const view = desk.watch("SELECT id FROM t WHERE tags CONTAINS 'a'")
    desk
      .put("t:1", { tags: ["b", "a"] })
      .put("t:2", { tags: "a" })
      .put("t:3", { tags: "bar" })
      .put("t:4", { tags: ["b"] })
      .put("t:5", { tags: [["a"]] })
      .put("t:6", {})
    expect(view.keys()).toEqual(["t:1", "t:2", "t:3"])
    desk.put("t:1", { tags: ["b"] }).put("t:4", { tags: ["a"] })
    expect(view.keys()).toEqual(["t:2", "t:3", "t:4"])
  })

  test("`!=` on a missing field is false: it is true", () => {
    const desk = new Desk()
    const view = desk.watch("SELECT id FROM t WHERE state != 'done'")
    desk.put("t:1", {}).put("t:2", { state: null }).put("t:3", { state: "done" }).put("t:4", { state: "open" })
    expect(view.keys()).toEqual(["t:1", "t:2", "t:4"])
    expect(desk.put("t:3", {}) && view.keys()).toEqual(["t:1", "t:2", "t:3", "t:4"])
    expect(desk.put("t:1", { state: "done" }) && view.keys()).toEqual(["t:2", "t:3", "t:4"])
  })
})

describe("L1 windows", () => {
  test("a changed sort key does not reorder a LIMIT: it does", () => {
    const desk = new Desk()
    for (let i = 1; i <= 5; i++) desk.put(`t:${i}`, { n: i * 10 })
    const view = desk.watch("SELECT id, n FROM t ORDER BY n LIMIT 3")
    expect(view.keys()).toEqual(["t:1", "t:2", "t:3"])
    desk.put("t:1", { n: 25 }, "UPDATE")
    expect(view.keys()).toEqual(["t:2", "t:1", "t:3"])
    expect(view.delta()).toEqual({ ...nothing, updates: [["t:1", 2]] })
    desk.put("t:1", { n: 99 }, "UPDATE")
    expect(view.keys()).toEqual(["t:2", "t:3", "t:4"])
    expect(view.delta()).toEqual({ ...nothing, additions: [["t:4", 1]], removals: ["t:1"] })
  })

  test("ORDER BY a string DESC returns the lowest: it returns the highest", () => {
    const desk = new Desk()
    const view = desk.watch("SELECT id, s FROM t ORDER BY s DESC LIMIT 2")
    const worded = ["b", "é", "a", "Z", "z", "10", "9"]
    worded.forEach((s, i) => desk.put(`t:${i}`, { s }))
    expect(view.rows()).toEqual([
      { id: "t:1", s: "é" },
      { id: "t:4", s: "z" }
    ])
    desk.remove("t:1")
    expect(view.rows()).toEqual([
      { id: "t:4", s: "z" },
      { id: "t:0", s: "b" }
    ])
  })

  test("ORDER BY ... COLLATE puts scripts beyond Latin last: all scripts are sorted as they are transliterated", () => {
    const desk = new Desk()
    const worded = ["Nancy", "李雷", "Oslo", "Жук", "émile", "Jim"]
    worded.forEach((s, i) => desk.put(`t:${i}`, { s }))
    const view = desk.watch("SELECT VALUE s FROM t ORDER BY s COLLATE LIMIT 3 START 1")
    const grouped = desk.watch("SELECT s FROM t GROUP BY s ORDER BY s COLLATE DESC LIMIT 2")
    expect(view.rows()).toEqual(["Jim", "李雷", "Nancy"])
    expect(grouped.rows()).toEqual([{ s: "Жук" }, { s: "Oslo" }])
    desk.put("t:9", { s: "김" })
    expect(view.rows()).toEqual(["김", "Jim", "李雷"])
    expect(view.delta()).toEqual({ ...nothing, additions: [["t:9", 1]], removals: ["t:0"] })
    desk.put("t:5", { s: "ß" }, "UPDATE")
    expect(view.rows()).toEqual(["김", "李雷", "Nancy"])
    desk.put("t:4", { s: "-" }, "UPDATE").put("t:3", { s: "ah" }, "UPDATE")
    expect(view.rows()).toEqual(["ah", "김", "李雷"])
    expect(grouped.rows()).toEqual([{ s: "ß" }, { s: "Oslo" }])
  })

  test("a set is neither split nor looked into: SPLIT and ORDER BY go by its items", () => {
    const desk = new Desk()
    desk.put("t:1", { l: [3, 1] }).put("t:2", { l: [2] })
    const pieces = desk.watch("SELECT id, <set> l AS l FROM t SPLIT l")
    const lowest = desk.watch("SELECT id, (<set> l)[0] AS low FROM t ORDER BY low LIMIT 1")
    expect(pieces.rows()).toEqual([
      { id: "t:1", l: 1 },
      { id: "t:1", l: 3 },
      { id: "t:2", l: 2 }
    ])
    expect(lowest.keys()).toEqual(["t:1"])
    desk.put("t:1", { l: [7, 4, 7] }, "UPDATE")
    expect(pieces.rows()).toEqual([
      { id: "t:1", l: 4 },
      { id: "t:1", l: 7 },
      { id: "t:2", l: 2 }
    ])
    expect(lowest.keys()).toEqual(["t:2"])
  })

  test("an UPDATE of the same key inside, into, out of and at the edge of a window: each is announced as what it is", () => {
    const desk = new Desk()
    for (let i = 1; i <= 6; i++) desk.put(`t:${i}`, { n: i * 10 })
    const view = desk.watch("SELECT * FROM t ORDER BY n LIMIT 2 START 2")
    const step = (id: string, n: number, note = 0) => {
      desk.put(id, { n, note }, "UPDATE")
      const delta = view.delta()
      return [view.keys(), delta?.additions.map(([key]) => key), delta?.updates.map(([key]) => key), delta?.removals]
    }
    expect(view.keys()).toEqual(["t:3", "t:4"])
    expect(step("t:3", 30, 1), "inside, same place").toEqual([["t:3", "t:4"], [], ["t:3"], []])
    expect(step("t:3", 45), "inside, last place now").toEqual([["t:4", "t:3"], [], ["t:3"], []])
    expect(step("t:6", 42), "into, from behind").toEqual([["t:4", "t:6"], ["t:6"], [], ["t:3"]])
    expect(step("t:6", 5), "out, to before").toEqual([["t:2", "t:4"], ["t:2"], [], ["t:6"]])
    expect(step("t:2", 20, 1), "at the first edge").toEqual([["t:2", "t:4"], [], ["t:2"], []])
    expect(step("t:4", 100), "out, from the last edge").toEqual([["t:2", "t:3"], ["t:3"], [], ["t:4"]])
    expect(step("t:1", 1), "before the window, still before").toEqual([["t:2", "t:3"], undefined, undefined, undefined])
    expect(step("t:5", 44), "into, at the last edge").toEqual([["t:2", "t:5"], ["t:5"], [], ["t:3"]])
  })
})

describe("D3 arrival", () => {
  test("a duplicate CREATE leaves a phantom after DELETE: nothing is left", () => {
    const desk = new Desk()
    const views = [
      "SELECT * FROM t",
      "SELECT * FROM t WHERE n = 1",
      "SELECT * FROM t ORDER BY n LIMIT 3",
      "SELECT count() AS c FROM t GROUP ALL"
    ].map((query) => desk.watch(query))
    desk.put("t:1", { n: 1 }).put("t:1", { n: 1 })
    for (const view of views) expect(view.delta()).toBeUndefined()
    desk.put("t:1", { n: 1, again: true }).remove("t:1")
    expect(views.map((view) => view.rows())).toEqual([[], [], [], [{ c: 0 }]])
    expect(desk.watch("SELECT * FROM t WHERE n != 2").rows()).toEqual([])
  })

  test("DELETE before CREATE hides the row from later views: it does not", () => {
    const desk = new Desk().remove("t:1").put("t:1", { n: 1 })
    expect(desk.watch("SELECT id FROM t").keys()).toEqual(["t:1"])
    desk.remove("t:1").remove("t:1").put("t:1", { n: 2 })
    expect(desk.watch("SELECT id, n FROM t WHERE n = 2").keys()).toEqual(["t:1"])
  })
})

describe("L1 joins and subqueries", () => {
  test("joins never see deletes: they do, over links, edges and subqueries", () => {
    const desk = threads().put("likes:1", { in: "user:cleo", out: "post:3" })
    const link = desk.watch("SELECT id, author.name AS by FROM post ORDER BY id")
    const child = desk.watch(withPosts)
    const graph = desk.watch("SELECT id, ->likes->post.n AS liked FROM user WHERE id = user:cleo")
    desk.remove("user:ann")
    expect(link.rows()).toEqual([{ id: "post:1" }, { id: "post:2" }, { id: "post:3", by: "bob" }])
    expect(
      link
        .delta()
        ?.updates.map(([key]) => key)
        .sort()
    ).toEqual(["post:1", "post:2"])
    desk.remove("post:3")
    expect(child.rows()).toEqual([
      { id: "user:bob", posts: [] },
      { id: "user:cleo", posts: [] }
    ])
    expect(graph.rows()).toEqual([{ id: "user:cleo", liked: [null] }])
    desk.remove("likes:1")
    expect(graph.rows()).toEqual([{ id: "user:cleo", liked: [] }])
  })

  test("a child under two parents is tracked once: it is counted", () => {
    const desk = new Desk()
      .put("list:1", { members: ["user:ann", "user:bob"] })
      .put("list:2", { members: ["user:ann"] })
      .put("user:ann", { n: 1 })
      .put("user:bob", { n: 2 })
    const view = desk.watch(
      "SELECT id, (SELECT id, n FROM user WHERE id IN $parent.members) AS who, (SELECT VALUE n FROM user WHERE id IN $parent.members) AS ns FROM list"
    )
    const ann = { id: "user:ann", n: 1 },
      bob = { id: "user:bob", n: 2 }
    expect(view.rows()).toEqual([
      { id: "list:1", who: [ann, bob], ns: [1, 2] },
      { id: "list:2", who: [ann], ns: [1] }
    ])
    desk.put("list:2", { members: [] })
    expect(view.rows()).toEqual([
      { id: "list:1", who: [ann, bob], ns: [1, 2] },
      { id: "list:2", who: [], ns: [] }
    ])
    desk.put("user:ann", { n: 5 })
    expect(view.rows()).toEqual([
      { id: "list:1", who: [{ ...ann, n: 5 }, bob], ns: [5, 2] },
      { id: "list:2", who: [], ns: [] }
    ])
    expect(view.delta()?.updates.map(([key]) => key)).toEqual(["list:1"])
    desk.put("list:2", { members: ["user:ann"] }).remove("list:1")
    expect(view.rows()).toEqual([{ id: "list:2", who: [{ ...ann, n: 5 }], ns: [5] }])
    desk.remove("user:ann")
    expect(view.rows()).toEqual([{ id: "list:2", who: [], ns: [] }])
  })

  test("a changed foreign key leaves the old child attached: it goes", () => {
    const desk = threads()
    const view = desk.watch(withPosts)
    desk.put("post:1", { author: "user:cleo", n: 1 }, "UPDATE")
    expect(view.rows()).toEqual([
      { id: "user:ann", posts: ["post:2"] },
      { id: "user:bob", posts: ["post:3"] },
      { id: "user:cleo", posts: ["post:1"] }
    ])
    expect(
      view
        .delta()
        ?.updates.map(([key]) => key)
        .sort()
    ).toEqual(["user:ann", "user:cleo"])
  })

  test("D11 one child insert reports every parent as updated: it reports its own", () => {
    const desk = threads()
    const views = [
      withPosts,
      "SELECT id, (SELECT VALUE count() FROM post WHERE author = $parent.id GROUP ALL) AS posts FROM user",
      "SELECT id, (SELECT id, (SELECT VALUE id FROM comment WHERE post = $parent.id) AS comments FROM post WHERE author = $parent.id) AS posts FROM user"
    ].map((query) => desk.watch(query))
    desk.put("post:4", { author: "user:bob" })
    for (const view of views)
      expect(view.delta()).toEqual({ ...nothing, updates: [["user:bob", 1]], subqueries: view.delta()?.subqueries })
    expect(views[0]!.delta()?.subqueries).toEqual([
      { alias: "posts", parent: "user:bob", id: "post:4", version: 1, op: "add" }
    ])
    desk.put("comment:1", { post: "post:1" })
    expect(views.map((view) => view.delta()?.updates)).toEqual([undefined, undefined, [["user:ann", 1]]])
  })

  test("a subquery's filter or limit is ignored: both hold, and its order", () => {
    const desk = threads()
    const view = desk.watch(
      "SELECT id, (SELECT id, n FROM post WHERE author = $parent.id AND n > 1 ORDER BY n DESC LIMIT 1) AS top FROM user WHERE id = user:ann"
    )
    const top = () =>
      view
        .rows()
        .flatMap((row) => (row as { readonly top: ReadonlyArray<{ readonly id: string }> }).top.map(({ id }) => id))
    expect(top()).toEqual(["post:2"])
    desk.put("post:4", { author: "user:ann", n: 1 })
    expect([top(), view.delta()]).toEqual([["post:2"], undefined])
    desk.put("post:5", { author: "user:ann", n: 9 })
    expect(top()).toEqual(["post:5"])
    desk.put("post:5", { author: "user:ann", n: 0 })
    expect(top()).toEqual(["post:2"])
  })

  test("LIMIT inside a subquery is ignored: the window of each parent is its own", () => {
    const desk = threads().put("post:4", { author: "user:ann", n: 4 }).put("post:5", { author: "user:bob", n: 5 })
    const view = desk.watch(
      "SELECT id, (SELECT id, n FROM post WHERE author = $parent.id ORDER BY n DESC LIMIT 2) AS latest FROM user"
    )
    const latest = () =>
      view
        .rows()
        .map((row) => (row as { readonly latest: ReadonlyArray<{ readonly n: number }> }).latest.map(({ n }) => n))
    expect(latest()).toEqual([[4, 2], [5, 3], []])
    desk.remove("post:4")
    expect(latest()).toEqual([[2, 1], [5, 3], []])
    desk.put("post:6", { author: "user:bob", n: 0 })
    expect([latest(), view.delta()]).toEqual([[[2, 1], [5, 3], []], undefined])
  })
})

describe("L6 what is not understood", () => {
  test("unknown query tails are ignored: they are refused where they stand", () => {
    for (const query of [
      "SELECT * FROM t LIMITED 5",
      "SELECT * FROM t WHERE n = 1 nonsense",
      "SELECT * FROM t ORDER n DESCENDING FIRST",
      "SELECT * FROM t; DELETE t",
      "SELECT * FROM t WHERE"
    ]) {
      expect(Either.isLeft(parseSelect(query)), query).toBe(true)
    }
    const volatile = new Engine().acquire(Either.getOrThrow(parseSelect("SELECT * FROM t WHERE at < time::now()")), {})
    expect(Either.isLeft(volatile) && [volatile.left.at, volatile.left.reason]).toEqual([
      27,
      expect.stringContaining("time::now()")
    ])
  })
})

describe("L5 state", () => {
  test("restore loses operator state: a restored engine goes on as if nothing had happened", () => {
    const queries = [
      "SELECT * FROM t WHERE g = 'a' ORDER BY n LIMIT 2",
      "SELECT g, count() AS c, math::max(n) AS top FROM t GROUP BY g",
      "SELECT id, (SELECT VALUE id FROM t WHERE up = $parent.id ORDER BY id LIMIT 1) AS down FROM t",
      "SELECT id, up.n AS above FROM t"
    ]
    const before = new Desk()
    for (let i = 1; i <= 6; i++) before.put(`t:${i}`, { n: i, g: i % 2 === 0 ? "a" : "b", up: `t:${i - 1}` })
    before.remove("t:6")
    const kept = queries.map((query) => before.watch(query))
    const after = new Desk()
    for (const row of before.engine.store.rows("t")) after.engine.load(row.id, row.version, row.doc)
    after.engine.load(decode(change("t:6", undefined)).id, 1, undefined)
    const restored = queries.map((query) => after.watch(query))
    expect(restored.map((view) => [view.rows(), view.hash()])).toEqual(kept.map((view) => [view.rows(), view.hash()]))
    for (const json of [
      change("t:2", undefined),
      change("t:4", { n: 0, g: "b", up: "t:5" }),
      change("t:6", { n: 6, g: "a", up: "t:3" }),
      change("t:1", { n: 100, g: "a" })
    ]) {
      before.send(json)
      after.send(json)
      expect(restored.map((view) => [view.rows(), view.hash(), view.delta()])).toEqual(
        kept.map((view) => [view.rows(), view.hash(), view.delta()])
      )
    }
    expect(kept[0]!.keys()).toEqual(["t:6", "t:1"])
  })

  test("result hash unchanged by a content change: every visible change changes it", () => {
    const desk = threads()
    const views = [
      "SELECT * FROM post",
      "SELECT n FROM post",
      "SELECT id, author.name AS by FROM post",
      withPosts,
      "SELECT math::sum(n) AS s FROM post GROUP ALL",
      "SELECT id, author.name FROM post ORDER BY author.name"
    ].map((query) => desk.watch(query))
    const hashes = views.map((view) => new Set([view.hash()]))
    const seen = (step: Desk): ReadonlyArray<number> => (
      expect(step).toBe(desk), views.map((view, i) => hashes[i]!.add(view.hash()).size)
    )
    expect(seen(desk.put("post:1", { author: "user:ann", n: 7 }))).toEqual([2, 2, 2, 2, 2, 2])
    expect(seen(desk.put("user:ann", { name: "anna" }))).toEqual([2, 2, 3, 3, 2, 3])
    expect(seen(desk.put("post:4", { author: "user:cleo", n: 0 }))).toEqual([3, 3, 4, 4, 2, 4])
    expect(seen(desk.remove("post:4"))).toEqual([3, 3, 4, 4, 2, 4])
  })
})
