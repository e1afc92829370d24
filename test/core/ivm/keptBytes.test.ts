/**
 * What rows of all views keep of their own is bounded, and given back with the views (D48).
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { keptSetting } from "../../../src/core/ivm/keptBytes.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { newWorkCounters } from "../../../src/core/ivm/workCounters.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { noSlot } from "../../../src/core/view/watch.ts"
import { change, Desk } from "./desk.ts"

const viewBytesTotal = 150_000

const filled = (rows: number): Desk => {
  const desk = new Desk(new Engine({ viewBytesTotal }))
  desk.put("u:1", { k: 1 })
  for (let n = 0; n < rows; n++) put(desk, n)
  return desk
}

const put = (desk: Desk, n: number): Desk => desk.put(`t:${n}`, { n, tags: Array.from({ length: 50 }, (_, k) => k) })

const acquired = (engine: Engine, query: string): View =>
  Either.getOrThrow(engine.acquire(Either.getOrThrow(parseSelect(query)), {}))

/** Each keeps some kilobytes for a row; `?` makes a query of its own of each. */
const queries: ReadonlyArray<readonly [what: string, query: string]> = [
  ["pieces of SPLIT", "SELECT tags, n + ? AS m FROM t SPLIT tags"],
  ["computed sort values", "SELECT id, array::range(n, n + 500 + ?) AS w FROM t ORDER BY w LIMIT 90"],
  ["what rows bring to groups", "SELECT array::range(n, n + 500 + ?) AS k, count() FROM t GROUP BY k"],
  ["rows of groups", "SELECT n, array::range(0, 500 + ?) AS w FROM t GROUP BY n"],
  ["results of subqueries", "SELECT * FROM u WHERE k IN (SELECT VALUE array::range(n, n + 500 + ?) FROM t)"],
  ["results that are run whole", "SELECT VALUE array::range(n, n + 500 + ?) FROM t, type::table('t') LIMIT 20"]
]

describe("what rows of views keep", () => {
  it.each(queries)("D48 %s: what has no room is left out and named, and makes room when it goes", (_, query) => {
    const { engine } = filled(4)
    const views: Array<View> = []
    const refused = (): string | undefined => views.map((view) => engine.noRoomFor(view)).find(Boolean)
    // Small ones fit; many of them do not.
    views.push(acquired(engine, query.replace("?", "0")))
    expect(refused()).toBeUndefined()
    const kept = engine.keptBytes.used
    expect(kept).toBeGreaterThan(1000)
    expect(kept).toBeLessThan(viewBytesTotal)
    while (engine.keptBytes.refused === 0 && views.length < 100)
      views.push(acquired(engine, query.replace("?", String(views.length))))
    expect(engine.keptBytes.used).toBeLessThanOrEqual(viewBytesTotal)
    expect(engine.keptBytes.reason).toContain(keptSetting)
    expect(views.length).toBeLessThan(100)
    for (const view of views.splice(1)) engine.release(view)
    expect(engine.keptBytes.used).toBe(kept)
    for (const view of views) engine.release(view)
    expect(engine.keptBytes.used).toBe(0)
  })

  it.each(queries.slice(0, 4))(
    "D48 %s of records that come later: the row is named, the others are shown",
    (_, query) => {
      const desk = filled(0),
        { engine } = desk
      const view = acquired(engine, query.replace("?", "0"))
      for (let n = 0; n < 100; n++) put(desk, n)
      expect(engine.keptBytes.used).toBeLessThanOrEqual(viewBytesTotal)
      expect(view.size).toBeGreaterThan(0)
      expect(engine.noRoomFor(view)).toContain(keptSetting)
      engine.clear()
      expect(engine.keptBytes.used).toBe(0)
    }
  )
})

it.each(queries.slice(0, 3))("D48 %s: a view that is to be refused is not filled to its end", (_, query) => {
  const fill = (needsRoom: boolean): number => {
    const counters = newWorkCounters()
    const desk = new Desk(new Engine({ viewBytesTotal: 20_000, counters }))
    desk.sendAll(
      Array.from({ length: 5_000 }, (_row, n) =>
        change(`t:${n}`, { n, tags: Array.from({ length: 50 }, (_tag, k) => k) })
      )
    )
    Object.assign(counters, newWorkCounters())
    const { engine } = desk
    const select = Either.getOrThrow(parseSelect(query.replace("?", "0")))
    const view = Either.getOrThrow(drain(engine.acquireSliced(select, {}, 1, noSlot, needsRoom)))
    expect(engine.noRoomFor(view)).toContain(keptSetting)
    engine.release(view)
    expect(engine.keptBytes.used).toBe(0)
    return counters.rows
  }
  expect(fill(false)).toBeGreaterThanOrEqual(5_000)
  expect(fill(true)).toBeLessThan(1_000)
})

describe("D48 what rows have read elsewhere", () => {
  const linked = (rows: number): Desk =>
    filled(0).sendAll(
      Array.from({ length: rows }, (_, n) => [
        change(`t:${n}`, { n, o: `o:${n}` }),
        change(`o:${n}`, { n }),
        change(`e:${n}`, { in: `t:${n}`, out: "o:1" })
      ]).flat()
    )

  it.each([
    "SELECT n, o.n AS m FROM t",
    "SELECT n FROM t WHERE o.n >= 0",
    "SELECT n, o.n AS m FROM t ORDER BY n LIMIT 900"
  ])("counts, is given back, and a row without room for it is named: %s", (query) => {
    const few = linked(20).engine
    const small = acquired(few, query)
    expect(few.keptBytes.used).toBeGreaterThan(20 * 250)
    expect(few.noRoomFor(small)).toBeUndefined()
    few.release(small)
    expect(few.keptBytes.used).toBe(0)

    const desk = linked(1_000),
      { engine } = desk
    const view = acquired(engine, query)
    expect(engine.keptBytes.used).toBeLessThanOrEqual(viewBytesTotal)
    expect(engine.noRoomFor(view)).toContain(keptSetting)
    expect(view.size + view.errors().length).toBe(1_000)
    // A row that is shown changes, though there is no room for more.
    const { key } = [...view.each()][0]!
    const before = view.size
    desk.put(key, { n: -1, o: "o:3" }, "UPDATE")
    expect(view.size).toBe(before)
    engine.release(view)
    expect(engine.keptBytes.used).toBe(0)
  })

  it("leaves less room for rows where edges are indexed, until edges go", () => {
    const desk = linked(200),
      { engine } = desk
    const { edgeBytes } = engine.store
    expect(edgeBytes).toBe(0)
    engine.release(acquired(engine, "SELECT ->e AS m FROM t:1"))
    const whole = engine.store.edgeBytes
    expect(whole).toBeGreaterThan(200 * 400)
    expect(engine.keptBytes.fits(viewBytesTotal - whole)).toBe(true)
    expect(engine.keptBytes.fits(viewBytesTotal - whole + 1)).toBe(false)
    for (let n = 0; n < 200; n++) desk.remove(`e:${n}`)
    expect(engine.store.edgeBytes).toBe(0)
  })
})
