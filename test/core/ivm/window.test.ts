/**
 * The window against a plain sorted array: same rows, and its reports turn the old window into the new one.
 *
 * Random histories over all starts and limits, because every fault of a window sits at one of its two edges.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { Window } from "../../../src/core/ivm/window.ts"

interface Item {
  readonly id: number
  readonly rank: number
}

const compare = (a: Item, b: Item): number => a.rank - b.rank || a.id - b.id

const step = FastCheck.record({ id: FastCheck.integer({ min: 0, max: 12 }), rank: FastCheck.option(FastCheck.integer({ min: 0, max: 5 })) })

test("L2 a window reports exactly the rows that cross its edges, for every START and LIMIT", () => {
  let crossings = 0
  FastCheck.assert(
    FastCheck.property(
      FastCheck.integer({ min: 0, max: 4 }),
      FastCheck.constantFrom(0, 1, 2, 3, 5, Infinity),
      FastCheck.array(step, { minLength: 10, maxLength: 60, size: "max" }),
      (start, limit, steps) => {
        const rows = new Map<number, Item>()
        const shown = new Set<number>()
        const window = new Window<Item>(compare, start, limit, {
          entered: (row) => {
            crossings++
            expect(shown.has(row.id), "entered twice").toBe(false)
            shown.add(row.id)
          },
          left: (row) => expect(shown.delete(row.id), "left without being in").toBe(true)
        })
        for (const { id, rank } of steps) {
          const before = rows.get(id)
          const after = rank === null ? undefined : { id, rank }
          if (before !== undefined && after !== undefined && compare(before, after) === 0) window.replace(before, after)
          else {
            if (before !== undefined) window.remove(before)
            if (after !== undefined) window.insert(after)
          }
          if (after === undefined) rows.delete(id)
          else rows.set(id, after)
          const expected = [...rows.values()].sort(compare).slice(start, start + limit)
          expect([...window.rows()]).toEqual(expected)
          expect(window.size).toBe(expected.length)
          expect(window.held).toBe(rows.size)
          expect([...shown].sort()).toEqual(expected.map((row) => row.id).sort())
        }
      }
    ),
    { numRuns: 600 }
  )
  expect(crossings).toBeGreaterThan(5_000)
})
