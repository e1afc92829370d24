/** When views end where the clock is set meanwhile (D73). */
import { expect, it } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { Deadlines } from "../../../src/core/view/deadlines.ts"

it("D73 a view ends after its time to live has gone by, wherever the clock was set", () => {
  for (const setByMs of [-3_600_000, 0, 3_600_000]) {
    const deadlines = new Deadlines()
    const view = { lastActiveAtMs: 10_000_000, ttlMs: 60_000 }
    expect(deadlines.isOver(view, 10_000_000, 0)).toBe(false)
    expect([59_000, 62_000].map((atMs) => deadlines.isOver(view, 10_000_000 + setByMs + atMs, atMs))).toEqual([
      false,
      true
    ])
    // An activity that is written down is a new object.
    const active = { ...view, lastActiveAtMs: 10_000_000 + setByMs + 62_000 }
    expect([62_000, 121_000, 124_000].map((atMs) => deadlines.isOver(active, 0, atMs))).toEqual([false, false, true])
  }
})

it("D73 a view that came before the clock was set, and is looked at behind it, has all of its time", () => {
  for (const setByMs of [-3_600_000, 3_600_000]) {
    const deadlines = new Deadlines()
    deadlines.look(10_000_000, 0)
    const [before, behind] = [10_000_500, 10_000_500 + setByMs].map((lastActiveAtMs) => ({
      lastActiveAtMs,
      ttlMs: 60_000
    }))
    const ends = (atMs: number) =>
      [before!, behind!].map((view) => deadlines.isOver(view, 10_000_000 + setByMs + atMs, atMs))
    expect([1_000, 60_000, 63_000].map(ends)).toEqual([
      [false, false],
      [false, false],
      [true, true]
    ])
  }
})

it("D73 what is left after a restart is by the time of day, and never more than all of it", () => {
  const view = { lastActiveAtMs: 1_000_000, ttlMs: 60_000 }
  const endOf = (nowMs: number): number => {
    const deadlines = new Deadlines()
    deadlines.isOver(view, nowMs, 0)
    return Array.from({ length: 70 }, (_, secs) => secs * 1_000).findIndex((atMs) =>
      deadlines.isOver(view, nowMs, atMs)
    )
  }
  expect([endOf(1_040_000), endOf(2_000_000), endOf(1_000_000), endOf(0)]).toEqual([21, 0, 61, 61])
})

seeded(
  "D73 no setting of the clock keeps a view for longer than twice its time, or ends one before",
  "test/core/view/deadlines.test.ts",
  (random) => {
    for (let run = 0; run < runs(200); run++) {
      const deadlines = new Deadlines()
      let apartMs = random.below(1_000_000)
      const view = { lastActiveAtMs: apartMs, ttlMs: 1_000 + random.below(60_000) }
      const firstMs = random.below(500)
      deadlines.isOver(view, apartMs, firstMs)
      for (let atMs = firstMs; atMs < 2 * view.ttlMs + 3_000; atMs += 500) {
        if (random.below(3) === 0) apartMs += random.below(2_000_000) - 1_000_000
        const isOver = deadlines.isOver(view, apartMs + atMs, atMs)
        if (atMs - firstMs < view.ttlMs) expect(isOver).toBe(false)
        if (atMs - firstMs > view.ttlMs + 1_000) expect(isOver).toBe(true)
      }
    }
  }
)
