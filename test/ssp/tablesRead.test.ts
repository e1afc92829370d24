/**
 * The tables that `/debug/view`, `/debug/deps` and the answer to a scheduler name: those that rows reach by links too, whichever way a query
 * follows them, also before and after the row that links.
 */

import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { ingest } from "../../kit/checks/viewsAsked.ts"
import type { Dependencies } from "../../src/core/ivm/view/dependencies.ts"
import { tablesRead } from "../../src/core/ivm/view/tablesRead.ts"
import type { View } from "../../src/core/ivm/view/view.ts"
import { change, registration, ticking, withViews } from "./viewsKit.ts"

const records = [
  ["author:1", { name: "Ann", city: "city:1" }],
  ["city:1", { name: "Ulm" }],
  ["odd:⟨a:b⟩", { name: "odd" }],
  ["post:1", { author: "author:1", refs: ["odd:⟨a:b⟩"], n: 1 }],
  ["likes:1", { in: "author:1", out: "post:1" }]
] as const

const queries: { readonly [query: string]: ReadonlyArray<string> } = {
  "SELECT n FROM post": ["post"],
  "SELECT author.name FROM post": ["author", "post"],
  "SELECT author.city.name AS city FROM post": ["author", "city", "post"],
  "SELECT * FROM post FETCH author, refs": ["author", "odd", "post"],
  "SELECT n FROM post WHERE author.city.name = 'Ulm'": ["author", "city", "post"],
  "SELECT n, author.name AS by FROM post ORDER BY by LIMIT 1": ["author", "post"],
  "SELECT ->likes->post.author.name AS names FROM author": ["author", "likes", "post"],
  "SELECT count(), author.city AS city FROM post GROUP BY city": ["author", "post"],
  "SELECT id, (SELECT VALUE author.name FROM post WHERE author = $parent.id) AS names FROM author": ["author", "post"],
  "SELECT id, (SELECT VALUE author.city.name FROM post WHERE n = 1) AS names FROM likes": [
    "author",
    "city",
    "likes",
    "post"
  ]
}

it.effect("D13 every way to follow a link names its tables", () =>
  withViews(({ views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("before", "SELECT author.city.name FROM post"))
      yield* ingest(
        views,
        records.map(([id, record]) => change(id, record))
      )
      let assignment = 0
      for (const [query, tables] of Object.entries(queries)) {
        yield* views.register(registration("view", query))
        expect([...(yield* views.debugView("view")).referenced_tables].sort(), query).toEqual(tables)
        const placed = yield* views.register(registration("placed", query, { assignment: ++assignment }))
        expect("tables" in placed && [...placed.tables].sort(), query).toEqual(tables)
        const { dependency_map } = yield* views.debugDeps
        expect(
          Object.keys(dependency_map)
            .filter((table) => dependency_map[table]!.includes("view"))
            .sort()
        ).toEqual(tables)
      }
      yield* ingest(views, [change("post:1", { n: 1 })])
      expect((yield* views.debugView("before")).referenced_tables).toEqual(["post"])
    })
  )
)

it("D13 no more reads are looked at than are asked for, however many subqueries have read something", () => {
  let looked = 0
  const dependencies = {
    *readsOf(_: unknown, rows: number) {
      for (let n = 0; n < rows; n++) {
        looked += 2
        yield `t${looked}:1`
        yield {}
      }
    }
  } as unknown as Dependencies
  const view = { mainTables: ["post"], otherTables: [] } as unknown as View
  const tables = tablesRead(dependencies, view, 100)
  expect([looked, tables.has("t2"), tables.has("t60")]).toEqual([102, true, true])
})

it.effect("D13 /debug/deps pauses behind each view", () =>
  withViews(
    ({ views }) =>
      Effect.gen(function* () {
        for (const id of ["a", "b", "c"]) yield* views.register(registration(id, `SELECT '${id}' FROM post`))
        const deps = yield* Effect.fork(views.debugDeps)
        yield* Effect.yieldNow()
        expect(Option.isNone(yield* Fiber.poll(deps))).toBe(true)
        expect((yield* Fiber.join(deps)).dependency_map).toEqual({ post: ["a", "b", "c"] })
      }),
    ticking()
  )
)
