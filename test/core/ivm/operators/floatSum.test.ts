/**
 * Sums of a scan against adding up number after number, on values chosen to hurt: ties, binades that are left and
 * entered again, signs that cancel, ints among floats, decimals, NaN, infinities.
 *
 * Why bit by bit: a sum that is one ulp off is another answer than the database's.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { same, sameList } from "../../../../kit/checks/same.ts"
import { type SummedColumn, sumInOrder } from "../../../../src/core/ivm/operators/floatSum.ts"
import { type GroupEntry, GroupScan } from "../../../../src/core/ivm/operators/groupScan.ts"
import { add } from "../../../../src/core/surql/evaluate/arithmetic.ts"
import { aggregatedPart } from "../../../../src/core/surql/evaluate/select/group.ts"
import { encode } from "../../../../src/core/surql/values/encode.ts"
import { parseDecimal } from "../../../../src/core/surql/values/number.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import { float, type Value } from "../../../../src/core/surql/values/value.ts"

const entry = (at: number, value: Value): GroupEntry => ({
  id: Ids.make("t", at),
  sourceIndex: 0,
  group: undefined,
  key: [],
  values: [value]
})

const summing: SummedColumn = { call: 0, column: 0, take: aggregatedPart("math::sum") }

const plainly = (entries: Iterable<GroupEntry>): string => {
  let sum: Value = 0
  for (const { values } of entries) {
    const value = summing.take(values[0])
    if (value !== undefined) sum = add(sum, value)
  }
  return encode(sum)
}

/** Numbers of one temper per history, so that whole chunks keep inside a binade as well as leave it. */
const tempers: ReadonlyArray<(n: number) => Value> = [
  (n) => float((n % 100_000) / 100),
  (n) => float(((n % 100_000) - 50_000) / 100),
  // Halves and quarters of ulps of a large sum: ties.
  (n) => float(n % 7 === 0 ? 2 ** 52 : (n % 9) / 2),
  (n) => float((n % 3 === 0 ? -1 : 1) * 2 ** ((n % 60) - 30)),
  (n) => (n % 5 === 0 ? float(n / 3) : n % 1000),
  (n) => (n % 11 === 0 ? float(-0) : float((n % 17) * 0.1)),
  (n) => (n % 997 === 0 ? 9007199254740000 : n % 89 === 0 ? "no number" : float((n % 1000) / 8))
]

test("L1 a sum in scan order is bit for bit what adding up gives, after every change", () => {
  let changes = 0
  FastCheck.assert(
    FastCheck.property(
      FastCheck.nat(tempers.length - 1),
      FastCheck.integer({ min: 0, max: 2500 }),
      FastCheck.array(FastCheck.tuple(FastCheck.nat(3000), FastCheck.nat(), FastCheck.nat(3)), { maxLength: 12 }),
      FastCheck.nat(),
      (temper, count, steps, seed) => {
        const value = (n: number): Value => tempers[temper]!(n)
        const held = new Map<number, GroupEntry>()
        for (let i = 0; i < count; i++) held.set(i, entry(i, value(Math.imul(i + seed, 2654435761) >>> 4)))
        const scan = new GroupScan([...held.values()])
        const check = (): void =>
          same(encode(sumInOrder(scan.chunks, summing)), plainly([...held].sort(([a], [b]) => a - b).map(([, e]) => e)))
        check()
        for (const [at, n, kind] of steps) {
          const before = held.get(at)
          const after = kind === 0 ? undefined : entry(at, value(n))
          if (before !== undefined && after !== undefined) scan.replace(before, after)
          else if (before !== undefined) scan.remove(before)
          else if (after !== undefined) scan.add(after)
          if (after === undefined) held.delete(at)
          else held.set(at, after)
          changes++
          check()
          sameList(
            [...scan.entries()].map(({ id }) => id.key),
            [...held.keys()].sort((a, b) => a - b)
          )
        }
      }
    ),
    { numRuns: 250 }
  )
  expect(changes).toBeGreaterThan(800)
})

test("L1 NaN, infinities, decimals and ints that overflow are added in order too", () => {
  const sum = (...values: ReadonlyArray<Value>): string =>
    encode(sumInOrder(new GroupScan(values.map((value, i) => entry(i, value))).chunks, summing))
  expect(sum()).toBe("0")
  expect(sum(float(-0))).toBe(encode(float(0)))
  expect(sum(1, float(0.5), NaN, 3)).toBe(encode(NaN))
  expect(sum(Infinity, 1, -Infinity)).toBe(encode(NaN))
  expect(sum(float(0.1), parseDecimal("0.2")!)).toBe(encode(parseDecimal("0.3")!))
  expect(sum(9223372036854775807n, 1)).toBe(encode(-9223372036854775808n))
  expect(sum(9223372036854775807n, 1, -1)).toBe(encode(9223372036854775807n))
  expect(sum(9223372036854775807n, -1, 1)).toBe(encode(9223372036854775807n))
  expect(sum(9007199254740991, 1, float(0.5))).toBe(encode(float(9007199254740992)))
})

test("L4 a chunk in which the sum keeps its binade is not added up again", () => {
  const entries = Array.from({ length: 4000 }, (_, i) => entry(i, float((i % 100_000) / 100)))
  const scan = new GroupScan(entries)
  sumInOrder(scan.chunks, summing)
  const kept = scan.chunks.slice(3).filter(({ runs: [known] }) => known?.run.even === true).length
  expect(kept).toBeGreaterThan(scan.chunks.length - 8)
})
