/**
 * Views behind `IN (SELECT VALUE ...)`: who is followed decides what is shown, and a change on either side costs what
 * it touches.
 *
 * Results are compared with a fresh run after every change; work is counted by the engine itself.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { rounds, seeded } from "../../../../kit/data/random.ts"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import { rerun } from "../../../../src/core/ivm/view/rerun.ts"
import { StoreSource } from "../../../../src/core/ivm/view/source.ts"
import { newWorkCounters } from "../../../../src/core/ivm/workCounters.ts"
import { decodeChange } from "../../../../src/core/record/change.ts"
import { drain, rowBudget } from "../../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../../../src/core/surql/values/json.ts"
import type { Value } from "../../../../src/core/surql/values/value.ts"

const file = "test/core/ivm/index/subqueryValues.test.ts"

const desk = () => {
  const counters = newWorkCounters()
  const engine = new Engine({ counters })
  const write = (
    op: "UPDATE" | "DELETE",
    id: string,
    record: object
  ): { readonly views: number; readonly rows: number } => {
    const before = { ...counters }
    const change = Either.getOrThrow(decodeChange({ table: id.slice(0, id.indexOf(":")), op, id, record }))
    for (const planned of engine.plan([change])) if (planned !== undefined) engine.apply(planned)
    return { views: counters.views - before.views, rows: counters.rows - before.rows }
  }
  const watch = (text: string, params: { readonly [name: string]: Value } = {}) => {
    const select = Either.getOrThrow(parseSelect(text))
    const view = Either.getOrThrow(engine.acquire(select, params))
    const source = new StoreSource(engine.store)
    const keys = (): ReadonlyArray<string> => view.rows().map((row) => row.key)
    const check = (): void => {
      const fresh = drain(rerun(select, params, source, engine.store, () => rowBudget())())
      expect(
        view.rows().map((row) => [row.key, toJson(row.value())]),
        text
      ).toEqual(fresh.rows.map((row) => [row.key, toJson(row.value)]))
    }
    return { view, keys, check }
  }
  return { engine, write, watch }
}

const following = "SELECT * FROM post WHERE author IN (SELECT VALUE out FROM follows WHERE in = $me)"

describe("L4 IN (SELECT VALUE ...)", () => {
  it("a post is shown to those who follow its author, and looked at by nobody else", () => {
    const { engine, watch, write } = desk()
    for (let i = 0; i < 1_000; i++) write("UPDATE", `follows:${i}`, { in: `user:${i}`, out: `star:${i % 500}` })
    const views = Array.from({ length: 1_000 }, (_, i) => watch(following, { me: `user:${i}` }))
    expect(engine.shapes().map(({ instances }) => instances)).toEqual([1_000, 1_000])
    expect(write("UPDATE", "post:1", { author: "star:7" })).toEqual({ views: 2, rows: 2 })
    expect(views.flatMap((view, i) => (view.keys().length > 0 ? [i] : []))).toEqual([7, 507])
    expect(write("UPDATE", "post:2", { author: "nobody:1" })).toEqual({ views: 0, rows: 0 })
    expect(write("DELETE", "post:1", {}).views).toBe(2)
  })

  it("following someone looks at their posts only", () => {
    const { watch, write } = desk()
    for (let i = 0; i < 1_000; i++) write("UPDATE", `post:${i}`, { author: `star:${i % 100}` })
    const view = watch(following, { me: "user:1" })
    const other = watch(following, { me: "user:2" })
    // One row of the subquery, and the ten posts it brings.
    expect(write("UPDATE", "follows:1", { in: "user:1", out: "star:3" })).toEqual({ views: 11, rows: 11 })
    expect([view.keys().length, other.keys().length]).toEqual([10, 0])
    // Followed twice over, and once no more: nothing to look at.
    expect(write("UPDATE", "follows:2", { in: "user:1", out: "star:3" }).views).toBe(1)
    expect(write("DELETE", "follows:1", {}).views).toBe(1)
    expect(view.keys().length).toBe(10)
    write("DELETE", "follows:2", {})
    expect(view.keys()).toEqual([])
  })

  it("the subquery goes with the last view that needs it", () => {
    const { engine, watch, write } = desk()
    write("UPDATE", "follows:1", { in: "user:1", out: "star:1" })
    const views = [
      watch(following, { me: "user:1" }),
      watch(following, { me: "user:1" }),
      watch(following, { me: "user:2" })
    ]
    expect(views[0]!.view).toBe(views[1]!.view)
    for (const { view } of views) engine.release(view)
    expect(engine.shapes()).toEqual([])
  })

  it("values that only match or have no exact key are not filed by, and the answer is right all the same", () => {
    const { watch, write } = desk()
    const view = watch("SELECT * FROM post WHERE tag IN (SELECT VALUE tag FROM wanted)")
    const steps: ReadonlyArray<readonly [string, object]> = [
      ["wanted:1", { tag: "a" }],
      ["post:1", { tag: "a" }],
      ["post:2", { tag: { type: "Point", coordinates: [1, 2] } }],
      ["post:3", {}],
      ["wanted:2", { tag: { type: "Point", coordinates: [1, 2] } }],
      ["wanted:3", {}],
      ["post:4", { tag: "a" }],
      ["wanted:2", { tag: "b" }],
      ["post:1", { tag: "b" }],
      ["wanted:1", { tag: [1] }],
      ["post:2", { tag: [1] }]
    ]
    for (const [id, record] of steps) {
      write("UPDATE", id, record)
      view.check()
    }
  })
})

seeded("L1 whichever view follows another, each is what a fresh run gives", file, (random) => {
  const queries = [
    following,
    "SELECT id, n FROM post WHERE published = true AND author IN (SELECT VALUE out FROM follows WHERE in = $me) ORDER BY n LIMIT 3",
    "SELECT id, author FROM post WHERE author IN (SELECT VALUE author FROM post WHERE n > 2)",
    "SELECT id, (SELECT id FROM post WHERE author IN (SELECT VALUE out FROM follows WHERE w = 1) AND n = $parent.n) AS p FROM user",
    "SELECT count() AS c FROM post WHERE author IN (SELECT VALUE out FROM follows WHERE in = $me AND w IN (SELECT VALUE n FROM post WHERE published = true)) GROUP ALL"
  ]
  let shown = 0
  for (let round = 0; round < rounds(5); round++) {
    const { watch, write } = desk()
    const views: Array<ReturnType<typeof watch>> = []
    for (let step = 0; step < 150; step++) {
      if (step % 15 === 0) views.push(watch(random.pick(queries), { me: `user:${random.below(3)}` }))
      const gone = random.chance(0.2)
      const kind = random.pick(["post", "follows", "user"])
      const record =
        kind === "post"
          ? { author: `user:${random.below(4)}`, n: random.below(5), published: random.chance(0.5) }
          : kind === "user"
            ? { n: random.below(5) }
            : { in: `user:${random.below(3)}`, out: `user:${random.below(4)}`, w: random.below(3) }
      write(gone ? "DELETE" : "UPDATE", `${kind}:${random.below(8)}`, gone ? {} : record)
      for (const view of views) {
        view.check()
        shown += view.keys().length
      }
    }
  }
  expect(shown).toBeGreaterThan(400 * rounds(5))
})
