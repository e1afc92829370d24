/**
 * A view that is let go leaves nothing in memory: of its rows, of what they had read, of the subqueries they showed
 * (D14, D16, L7).
 *
 * Why by counts: no result ever shows what is left behind. Counted is what the store's structures hold, and everything
 * that can be reached from the engine, whatever holds it.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { long } from "../../../kit/data/random.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { figuresOf, holdingsOf } from "../../../src/core/ivm/holdings.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { stir } from "./churn.ts"
import { Desk } from "./desk.ts"
import { kinds, world } from "./kinds.ts"
import { reachable } from "./reachable.ts"

/** Classes of which an engine without views has none. */
const ofViews = [
  "IncrementalView",
  "PagedView",
  "GroupedView",
  "SharedView",
  "RecomputedView",
  "PlainRow",
  "FullRow",
  "GroupedRow",
  "Groups",
  "ViewRouter",
  "ViewIndex",
  "SubqueryValues",
  "TopRows",
  "OrderedIndex",
  "SecondaryIndex",
  "DeltaBuilder"
]

const holdings = (desk: Desk) => holdingsOf(desk.engine.kept)

const expectNoViews = (desk: Desk): void => {
  const held = reachable(desk.engine)
  expect(ofViews.filter((name) => held.has(name))).toEqual([])
}

describe("a view that is let go", () => {
  for (const { kind, params, query } of kinds) {
    it(`L7 leaves nothing behind: ${kind}`, () => {
      const desk = world()
      const empty = holdings(desk)
      expect(empty).toMatchObject({ instances: 0, heldRows: 0, indexEntries: 0, readingRows: 0, departing: 0 })
      const cycle = (round: number): void => {
        const first = desk.watch(query, params),
          second = desk.watch(query, params)
        expect(holdings(desk).instances).toBeGreaterThan(0)
        if (round % 2 === 0) stir(desk, round)
        desk.engine.release(first.view)
        if (round % 3 === 0) stir(desk, round + 1)
        desk.engine.release(second.view)
      }
      for (let round = 0; round < 2; round++) cycle(round)
      expect(holdings(desk)).toEqual(empty)
      expectNoViews(desk)
      const held = reachable(desk.engine)
      for (let round = 0; round < 12; round++) cycle(round)
      expect(holdings(desk)).toEqual(empty)
      expect(reachable(desk.engine)).toEqual(held)
    })
  }

  it("leaves nothing behind beside views that stay, whichever of all kinds goes first", () => {
    for (const kept of long ? [0, 7, 16, 23] : [7, 23]) {
      const desk = world()
      const staying = desk.watch(kinds[kept]!.query, kinds[kept]!.params)
      const others = kinds.filter((_, i) => i !== kept)
      const cycle = (round: number): void => {
        const watching = others.map(({ params, query }) => desk.watch(query, params).view)
        stir(desk, round)
        for (let i = 0; i < watching.length; i++) desk.engine.release(watching[(i * 7 + round) % watching.length]!)
      }
      cycle(0)
      const before = holdings(desk),
        held = reachable(desk.engine)
      for (let round = 1; round < 6; round++) cycle(round)
      expect({ ...holdings(desk), indexEntries: 0 }, kinds[kept]!.kind).toEqual({ ...before, indexEntries: 0 })
      expect(reachable(desk.engine).get("PlainRow"), kinds[kept]!.kind).toBe(held.get("PlainRow"))
      desk.engine.release(staying.view)
      expect(holdings(desk)).toMatchObject({ instances: 0, heldRows: 0, indexEntries: 0, readingRows: 0, departing: 0 })
      expectNoViews(desk)
    }
  })

  it("D16 a reset lets everything go, views that are half filled too", () => {
    const desk = world()
    for (const { params, query } of kinds) desk.watch(query, params)
    const filling = desk.engine.acquireSliced(Either.getOrThrow(parseSelect("SELECT * FROM post WHERE n >= 0")), {})
    filling.next()
    desk.watch("SELECT * FROM post WHERE kind = 'b'")
    desk.watch("SELECT n FROM post WHERE kind = 'b'")
    desk.watch("SELECT * FROM post WHERE n != 7 ORDER BY n LIMIT 3")
    desk.put("post:b", { n: 1, kind: "b" })
    const held = reachable(desk.engine)
    expect(ofViews.filter((name) => !held.has(name))).toEqual([])
    desk.engine.clear()
    expect(holdings(desk)).toEqual({
      instances: 0,
      heldRows: 0,
      tombstones: 0,
      indexEntries: 0,
      readingRows: 0,
      departing: 0
    })
    expectNoViews(desk)
    desk.put("post:1", { n: 1 })
    const [again] = desk.engine.store.rows("post")
    expect(again?.version).toBe(1)
    expect(desk.engine.shapes()).toEqual([])
  })
})

describe("D16 what is left of a large view", () => {
  /** A world of 5,000 records, and what is left to do in it. */
  const large = () => {
    const left: Array<Iterator<undefined, void>> = []
    const desk = new Desk(new Engine({ later: (work) => void left.push(work()) }))
    for (let i = 0; i < 5_000; i++) desk.put(`item:${i}`, { n: i })
    return { desk, left }
  }

  it("is taken back in pieces: no more than 512 rows at once, 128 between two pauses", () => {
    const { desk, left } = large()
    desk.engine.release(desk.watch("SELECT * FROM item WHERE n >= 0").view)
    expect(holdings(desk)).toMatchObject({ instances: 1, departing: 1, heldRows: 5_000 - 512 })
    expect(left).toHaveLength(1)
    left[0]!.next()
    expect(holdings(desk).heldRows).toBe(5_000 - 512 - 128)
    // Counted without a look at the records it is the same.
    expect(figuresOf(desk.engine.kept)).toMatchObject({ instances: 1, heldRows: 5_000 - 512 - 128 })
    while (left[0]!.next().done !== true);
    expect(holdings(desk)).toMatchObject({ instances: 0, departing: 0, heldRows: 0 })
  })

  it("changes nothing for changes, and a view acquired again meanwhile is another", () => {
    const { desk, left } = large()
    const first = desk.watch("SELECT * FROM item WHERE n >= 100")
    desk.engine.release(first.view)
    left[0]!.next()
    desk.put("item:4000", { n: 1 }).remove("item:4001").put("item:4002", { n: 7_000 })
    expect(desk.affected).toBe(0)
    const second = desk.watch("SELECT * FROM item WHERE n >= 100")
    expect(second.view).not.toBe(first.view)
    desk.put("item:4001", { n: 9_000 }).remove("item:3").remove("item:3000").put("item:3000", { n: 3_000 })
    while (left.length > 0) if (left[0]!.next().done === true) left.shift()
    expect(second.keys()).toHaveLength(4_899)
    expect(holdings(desk)).toMatchObject({ instances: 1, departing: 0, heldRows: 4_899 })
    desk.remove("item:4001")
    expect(second.delta()?.removals).toEqual(["item:4001"])
  })

  it("never grows, though no timer takes it back: filling a view takes back twice as much", () => {
    const { desk } = large()
    for (let round = 0; round < 20; round++) {
      desk.engine.release(desk.watch(`SELECT * FROM item WHERE n >= ${-round}`).view)
      expect(holdings(desk).heldRows).toBeLessThan(5_000)
    }
  })
})

describe("D4 deleted records that are remembered", () => {
  it("are as many as the setting says, and a version never falls", () => {
    const desk = new Desk(new Engine({ maxTombstones: 50 }))
    const version = (id: string): number => [...desk.engine.store.rows("t")].find((row) => row.id.text === id)!.version
    for (let i = 0; i < 500; i++) {
      desk.put(`t:${i}`, { n: 0 })
      for (let n = 1; n <= i % 7; n++) desk.put(`t:${i}`, { n })
      const last = version(`t:${i}`)
      desk.remove(`t:${i}`)
      expect(desk.engine.store.tombstones).toBeLessThanOrEqual(50)
      if (i % 3 > 0) continue
      desk.put(`t:${i}`, { n: -1 })
      expect(version(`t:${i}`)).toBeGreaterThan(last)
      desk.remove(`t:${i}`)
    }
    // The first ones are forgotten: they go on from the highest of those.
    desk.put("t:5", { n: 1 })
    expect(version("t:5")).toBeGreaterThan(6)
  })
})
