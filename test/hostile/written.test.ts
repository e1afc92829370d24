/**
 * Views that write out more than they hold (D48): a part that is shared is a reference in memory, and text as often as
 * it is shown.
 *
 * What is checked is counted: bytes a value is charged for beside those it is written as, rows that are left out, and
 * what a row holds of a long text. On the built process it is `storm.campaign.test.ts`.
 */

import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { ingest } from "../../kit/checks/viewsAsked.ts"
import * as Hostile from "../../kit/data/hostile.ts"
import { runs, seeded } from "../../kit/data/random.ts"
import { digestOf } from "../../src/core/ivm/delta/hash.ts"
import { Engine } from "../../src/core/ivm/engine.ts"
import type { IncrementalView } from "../../src/core/ivm/view/incrementalView.ts"
import { decodeChange } from "../../src/core/record/change.ts"
import { run } from "../../src/core/surql/evaluate/evaluate.ts"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { drain, makeBudget, queryBudget } from "../../src/core/surql/evaluate/scope.ts"
import { evaluateSliced } from "../../src/core/surql/evaluate/select/select.ts"
import { parseSelect, parseStatements } from "../../src/core/surql/syntax/parse.ts"
import { encode } from "../../src/core/surql/values/encode.ts"
import { stringify } from "../../src/core/surql/values/json.ts"
import type { Value } from "../../src/core/surql/values/value.ts"
import { bytesWritten, writeOut } from "../../src/core/surql/written/paid.ts"
import * as Values from "../core/surql/scalarValues.ts"
import { change, registration, withViews } from "../ssp/viewsKit.ts"

/** More than anything takes. */
const everything = 1e12

const valueOf = (text: string): Value => {
  const [statement] = Either.getOrThrow(parseStatements(`RETURN ${text}`))
  const made = drain(
    evaluateSliced(statement!, { source: fromRecords([]), params: {}, budget: queryBudget(), maxRows: 1 })
  )
  return Either.getOrElse(made, () => null)
}

seeded(
  "D48 a value is charged for no less than it is written as, however its parts are shared",
  "test/hostile/written.test.ts",
  (random) => {
    for (let n = 0; n < runs(500); n++) {
      const part: Value = random.chance(0.5) ? valueOf(Values.any(random)) : Hostile.content(random)
      const value = Array.from({ length: 1 + random.below(50) }, () => part)
      const text = Math.max(encode(value).length, stringify(value).length)
      expect(bytesWritten(value, everything), encode(part)).toBeGreaterThanOrEqual(text)
      const most = random.below(2 * text)
      expect(bytesWritten(value, most)).toBe(Math.min(bytesWritten(value, everything), most + 1))
    }
  }
)

describe("writing out", () => {
  it("D48 is paid for before it is done: no part is read beyond what the budget has", () => {
    let read = 0
    const part = {
      get a() {
        read++
        return "text"
      }
    }
    const b = makeBudget(1_000_000, "steps", Infinity, 10_000)
    const parts = Array.from({ length: 400 }, () => part)
    const scope = { doc: undefined, params: {}, parent: undefined, source: fromRecords([]), budget: b }
    const refused = Either.getOrThrow(Either.flip(run(() => writeOut(b, parts), scope)))
    expect(refused.reason).toBe("The query makes more than 10000 bytes; raise SVC_QUERY_BYTES to allow it")
    // Once for the steps of each part, then as far as the bytes go.
    expect(read).toBeLessThan(400 + 10_000 / 4)
  })

  it("D48 a long digest is short, and differs where the text does", () => {
    const text = "x".repeat(5_000)
    const digests = [[text], [`${text}y`], [`y${text.slice(1)}`], [text, text], [`${text}\u0000`]].map(digestOf)
    for (const digest of digests) expect(digest.length).toBeLessThan(60)
    expect(new Set(digests).size).toBe(digests.length)
    expect(digestOf(["a", "b"])).toBe("a\nb")
  })
})

const shared = "array::repeat((SELECT VALUE { a: 'a text that is shared', n: n } FROM t), 5000)"

/** Where a row's content becomes text. */
const writing: ReadonlyArray<readonly [where: string, query: string]> = [
  ["what a row shows of others", `SELECT ${shared} AS w FROM t`],
  ["a subquery that is run", "SELECT id, (SELECT array::repeat(o, 8000) AS w FROM t, t:1) AS c FROM t"],
  ["pieces of a row", `SELECT ${shared} AS w, [1, 2] AS s FROM t SPLIT s`],
  ["a group's key", "SELECT w, count() FROM (SELECT array::repeat({ a: n }, 20000) AS w FROM t) GROUP BY w"],
  ["a group's key, row by row", "SELECT array::repeat(o, 20000) AS w, count() FROM t GROUP BY w"],
  ["a group's row", "SELECT array::repeat(array::group([n]), 20000) AS w FROM t GROUP ALL"],
  ["a query that is run whole", `SELECT ${shared} AS w FROM t, t:1`]
]

const engineOf = () => {
  const engine = new Engine({ queryBytes: 2_000_000 })
  const write = (n: number, record: object): void => {
    const written = Either.getOrThrow(decodeChange({ table: "t", op: "UPDATE", id: `t:${n}`, record }))
    engine.applyAll(engine.plan([written]).filter((planned) => planned !== undefined))
  }
  return { engine, write }
}

const viewOf = (engine: Engine, query: string) =>
  Either.getOrThrow(engine.acquire(Either.getOrThrow(parseSelect(query)), {}))

describe("a view", () => {
  it.each(writing)("D48 leaves out what would be written out beyond the limit: %s", (_, query) => {
    const { engine, write } = engineOf()
    const acquired = engine.acquire(Either.getOrThrow(parseSelect(query)), {})
    if (Either.isLeft(acquired)) throw new Error(acquired.left.reason)
    const view = acquired.right
    expect(view.errors()).toEqual([])
    for (let n = 0; n < 6; n++) write(n, { n, o: { a: `a text ${n}` } })
    expect(view.rows().length).toBe(0)
    expect(view.errors()[0]?.failure.reason).toMatch(/SVC_QUERY_(BYTES|ROW_STEPS)/)
  })

  it("D48 shows the rows within it, hears of changes in it, and holds no long text", () => {
    const { engine, write } = engineOf()
    for (let n = 0; n < 3; n++) write(n, { n })
    const view = viewOf(engine, `SELECT ${shared} AS w FROM t`) as IncrementalView
    const held = (): number => Math.max(...Array.from(view.shownRows(), ({ digest }) => digest?.length ?? 0))
    expect(encode(view.rows()[0]!.value()).length).toBeGreaterThan(100_000)
    expect([view.rows().length, view.errors(), held() < 100]).toEqual([3, [], true])
    const before = view.hash(),
      { generation } = view
    write(1, { n: 11 })
    expect([view.hash() === before, view.generation]).toEqual([false, generation + 1])
    write(1, { n: 1 })
    expect(held()).toBeLessThan(100)
  })
})

describe("a result", () => {
  const large = "SELECT text FROM t",
    text = "x".repeat(300_000)

  it.effect("D48 that cannot be answered is refused when it is registered, with the setting, and nothing is kept", () =>
    withViews(({ store, views }) =>
      Effect.gen(function* () {
        for (const n of [1, 2, 3, 4]) yield* ingest(views, [change(`t:${n}`, { text })])
        const commits = store.commits.length
        const refused = yield* Effect.flip(views.register(registration("a", large, { format: "tree" })))
        expect(refused).toMatchObject({
          _tag: "QueryRefused",
          message: expect.stringMatching(/more than 1000000 bytes.*raise SVC_VIEW_RESULT_BYTES/)
        })
        expect([store.commits.length, (yield* views.debugDeps).shapes]).toEqual([commits, []])
        expect(yield* views.register(registration("a", large))).toMatchObject({ result_data: { length: 4 } })
      })
    )
  )

  it.effect("D48 that grows beyond it shows no rows and says why, and is there again when it fits", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", large, { format: "tree" }))
        for (const n of [1, 2]) yield* ingest(views, [change(`t:${n}`, { text })])
        expect(yield* views.read("a", undefined)).toMatchObject({ result_data: { length: 2 } })
        for (const n of [3, 4]) yield* ingest(views, [change(`t:${n}`, { text })])
        expect(yield* views.read("a", undefined)).toMatchObject({
          result_data: [],
          errors: [{ id: "", failure: { reason: expect.stringContaining("raise SVC_VIEW_RESULT_BYTES") } }]
        })
        expect(yield* views.read("a", "flat")).toMatchObject({ result_data: { length: 4 } })
        yield* ingest(views, [change("t:4", {}, {}, "DELETE"), change("t:3", {}, {}, "DELETE")])
        const answer = yield* views.read("a", undefined)
        expect([answer.result_data, answer.errors]).toMatchObject([{ length: 2 }, undefined])
      })
    )
  )
})
