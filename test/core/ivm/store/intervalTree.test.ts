/**
 * The interval tree against a plain list of intervals, with bounds of all kinds; and how little of it a question looks
 * at.
 *
 * Why apart from the views that use it: here intervals share bounds and differ in one edge, come and go by the
 * thousand, and every comparison can be counted.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { holdsValue, type Interval, IntervalTree, intersection } from "../../../../src/core/ivm/store/intervalTree.ts"
import { Datetime, type Value } from "../../../../src/core/surql/values/value.ts"

const bound = FastCheck.option(
  FastCheck.record({
    value: FastCheck.constantFrom<Array<Value>>(undefined, null, 1, 2, 3, 4, 5, "x"),
    inclusive: FastCheck.boolean()
  }),
  { nil: undefined }
)
const interval: FastCheck.Arbitrary<Interval> = FastCheck.record({ from: bound, to: bound })
const probes: ReadonlyArray<Value> = [undefined, null, false, 0, 1, 1.5, 2, 3, 4, 5, 6, "", "x", "y"]

test("L1 an interval tree finds the intervals that hold a value, whatever came and went", () => {
  let found = 0
  FastCheck.assert(
    FastCheck.property(
      FastCheck.array(FastCheck.tuple(interval, FastCheck.boolean(), FastCheck.nat()), {
        minLength: 5,
        maxLength: 80,
        size: "max"
      }),
      (steps) => {
        const tree = new IntervalTree<{ readonly interval: Interval }>()
        const held: Array<{ readonly interval: Interval }> = []
        for (const [next, adds, which] of steps) {
          if (adds || held.length === 0) {
            const item = { interval: next }
            held.push(item)
            tree.add(next, item)
          } else {
            const [item] = held.splice(which % held.length, 1)
            tree.remove(item!.interval, item!)
          }
          expect(tree.isEmpty).toBe(held.length === 0)
        }
        for (const value of probes) {
          const seen: Array<unknown> = []
          tree.find(value, (item) => seen.push(item))
          expect(new Set(seen)).toEqual(new Set(held.filter((item) => holdsValue(item.interval, value))))
          expect(new Set(seen).size).toBe(seen.length)
          found += seen.length
        }
      }
    ),
    { numRuns: 300 }
  )
  expect(found).toBeGreaterThan(4_000)
})

test("L1 an intersection holds what both intervals hold", () => {
  FastCheck.assert(
    FastCheck.property(interval, interval, (a, b) => {
      for (const value of probes)
        expect(holdsValue(intersection(a, b), value)).toBe(holdsValue(a, value) && holdsValue(b, value))
    }),
    { numRuns: 500 }
  )
})

test("L4 of 10,000 intervals a question looks at a few and at those it finds, and so does a change", () => {
  let looks = 0
  const counted = (n: number): Value =>
    Object.defineProperty(new Datetime(0, 0), "seconds", { get: () => (looks++, n) })
  const size = 10_000
  const shapes: { readonly [what: string]: (i: number) => Interval } = {
    lower: (i) => ({ from: { value: counted(i), inclusive: true }, to: undefined }),
    upper: (i) => ({ from: undefined, to: { value: counted(i), inclusive: false } }),
    disjoint: (i) => ({
      from: { value: counted(2 * i), inclusive: true },
      to: { value: counted(2 * i + 1), inclusive: true }
    }),
    nested: (i) => ({
      from: { value: counted(size - i), inclusive: true },
      to: { value: counted(size + i), inclusive: true }
    }),
    longAmongShort: (i) => ({
      from: { value: counted(i), inclusive: true },
      to: { value: counted(i % 1000 === 0 ? size : i), inclusive: true }
    })
  }
  for (const [what, make] of Object.entries(shapes)) {
    const tree = new IntervalTree<{ readonly interval: Interval }>()
    const items = Array.from({ length: size }, (_, i) => ({ interval: make((i * 7919) % size) }))
    for (const item of items) tree.add(item.interval, item)
    for (const n of [-1, 0, 5, 99, 5_000, 19_990, 30_000]) {
      const value = counted(n)
      let found = 0
      looks = 0
      tree.find(value, () => found++)
      expect(looks, `${what} at ${n}: ${found} found`).toBeLessThan(
        150 * (what === "longAmongShort" ? found + 1 : 1) + 12 * found
      )
    }
    looks = 0
    tree.remove(items[17]!.interval, items[17]!)
    tree.add(items[17]!.interval, items[17]!)
    expect(looks, `${what}: out and in`).toBeLessThan(600)
  }
})
