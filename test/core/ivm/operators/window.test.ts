/**
 * The window against a plain sorted array: same rows, and its reports turn the old window into the new one.
 *
 * Random histories over all starts and limits, because every fault of a window sits at one of its two edges.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { same, sameList } from "../../../../kit/checks/same.ts"
import { campaign, runs } from "../../../../kit/data/random.ts"
import type { RowOrder } from "../../../../src/core/ivm/operators/sortedLeaf.ts"
import { Window } from "../../../../src/core/ivm/operators/window.ts"

interface Item {
  readonly id: number
  readonly stratum: number
}

const compare = (a: Item, b: Item): number => a.stratum - b.stratum || a.id - b.id

/** A listener that is told of each row that comes into or goes out of the window. */
interface Told {
  readonly entered: (row: Item) => void
  readonly left: (row: Item) => void
  readonly replaced: (before: Item, after: Item) => void
}

/** A window as what has one sees it. */
class Bare extends Window<Item> {
  private readonly told: Told

  constructor(order: RowOrder<Item>, start: number, limit: number, told: Told) {
    super(order, { start, limit })
    this.told = told
  }

  protected entered = (row: Item): void => this.told.entered(row)
  protected left = (row: Item): void => this.told.left(row)
  protected replaced = (before: Item, after: Item): void => this.told.replaced(before, after)
  override settle = (): void => super.settle()
  override take = (row: Item): void => super.take(row)
  override drop = (row: Item): void => super.drop(row)
  override swap = (before: Item, after: Item): void => super.swap(before, after)
  override inside = (): ReadonlyArray<Item> => super.inside()
}

const step = (ids: number) =>
  FastCheck.record({
    id: FastCheck.integer({ min: 0, max: ids }),
    stratum: FastCheck.option(FastCheck.integer({ min: 0, max: 5 }), { freq: 3 })
  })

/**
 * Few rows; then so many that they grow out of the array and back into it; then chunks before, in and behind the
 * window.
 */
test.each([
  {
    ids: 12,
    minLength: 10,
    maxLength: 60,
    starts: [0, 1, 2, 3, 4],
    bounds: [0, 1, 2, 3, 5, Infinity],
    numRuns: runs(campaign ? 600 : 200)
  },
  {
    ids: 110,
    minLength: 300,
    maxLength: 500,
    starts: [0, 1, 2, 3, 4, 40],
    bounds: [0, 1, 20, 70, Infinity],
    numRuns: runs(campaign ? 25 : 10)
  },
  {
    ids: 500,
    minLength: 600,
    maxLength: 900,
    starts: [0, 90, 250],
    bounds: [1, 20, 100, Infinity],
    numRuns: runs(campaign ? 10 : 7)
  }
])(
  "L2 a window over up to $ids rows reports exactly those that cross its edges, for every START and LIMIT",
  ({ bounds, ids, maxLength, minLength, numRuns, starts }) => {
    let crossings = 0
    let most = 0,
      least = Infinity
    FastCheck.assert(
      FastCheck.property(
        FastCheck.constantFrom(...starts),
        FastCheck.constantFrom(...bounds),
        FastCheck.array(step(ids), { minLength, maxLength, size: "max" }),
        FastCheck.uniqueArray(
          step(ids).filter(({ stratum }) => stratum !== null),
          { maxLength: ids, size: "max", selector: ({ id }) => id }
        ),
        (start, limit, steps, loaded) => {
          const rows = new Map<number, Item>()
          const shown = new Set<number>()
          const window = new Bare(
            {
              compare,
              lead: ids > 64 ? ({ stratum }) => stratum : undefined,
              compareLeads: (a, b) => Number(a) - Number(b)
            },
            start,
            limit,
            {
              entered: (row) => {
                crossings++
                same(shown.has(row.id), false, "entered twice")
                shown.add(row.id)
              },
              left: (row) => same(shown.delete(row.id), true, "left without being in"),
              replaced: (before, after) =>
                sameList(
                  [shown.has(before.id), before === after, compare(before, after)],
                  [true, false, 0],
                  "replaced without being in, or by another"
                )
            }
          )
          const expectExact = (): void => {
            const expected = [...rows.values()].sort(compare)
            const inside = expected.slice(start, start + limit)
            sameList(window.inside(), inside)
            sameList(window.known(), expected)
            same(window.knownCount, rows.size)
            for (const position of [0, start + limit - 1, rows.size - 1, rows.size])
              same(window.knownAt(position), expected[position])
            sameList([...shown].sort(), inside.map((row) => row.id).sort())
          }
          for (const { id, stratum } of loaded) {
            rows.set(id, { id, stratum: stratum! })
            window.take(rows.get(id)!)
          }
          expect(shown.size, "told before the end of the fill").toBe(0)
          window.settle()
          expectExact()
          // Half of a long history mostly takes rows away.
          for (const [n, { id, stratum: drawn }] of steps.entries()) {
            const stratum = n > 200 && n % 3 > 0 ? null : drawn
            const before = rows.get(id)
            const after = stratum === null ? undefined : { id, stratum }
            if (before !== undefined && after !== undefined && compare(before, after) === 0) window.swap(before, after)
            else {
              if (before !== undefined) window.drop(before)
              if (after !== undefined) window.take(after)
            }
            if (after === undefined) rows.delete(id)
            else rows.set(id, after)
            expectExact()
            most = Math.max(most, rows.size)
            if (most > 64) least = Math.min(least, rows.size)
          }
          // What chance leaves goes too, so that every history that has grown shrinks again.
          if (ids > 64) {
            for (const row of [...rows.values()]) {
              rows.delete(row.id)
              window.drop(row)
              expectExact()
              if (most > 64) least = Math.min(least, rows.size)
            }
          }
        }
      ),
      // A long history that fails is told as it is: to shorten it would take minutes.
      { numRuns, endOnFailure: ids > 64 }
    )
    if (ids > 64) expect([most > 64, least <= 32], "grown and shrunk").toEqual([true, true])
    expect(crossings).toBeGreaterThan(1_000)
  }
)
