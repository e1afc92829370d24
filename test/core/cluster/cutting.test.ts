/** Where a shared log may be cut. */
import { expect, test } from "vitest"
import { type Copy, cutBefore } from "../../../src/core/cluster/cutting.ts"

const other = (synced: number, applied = synced, isNear = true): Copy => ({ applied, synced, isNear })

test("D60 a log is cut below what enough replicas have on disk, the leader's among them", () => {
  expect(cutBefore(100, 99, [other(50)], 2)).toBe(51)
  expect(cutBefore(40, 99, [other(50)], 2)).toBe(40)
  expect(cutBefore(100, 30, [other(50)], 2)).toBe(31)
  expect(cutBefore(100, 99, [other(50, 60), other(80)], 2)).toBe(61)
  expect(cutBefore(100, 99, [other(50, 60), other(80)], 3)).toBe(51)
})

test("D60 nothing is cut where there are too few, nor below what one still reads, silent ones included", () => {
  expect(cutBefore(100, 99, [], 2)).toBe(0)
  expect(cutBefore(100, 99, [other(90, 95, false)], 2)).toBe(0)
  expect(cutBefore(100, 99, [other(90), other(5, 7, false)], 2)).toBe(8)
  expect(cutBefore(100, 99, [], 1)).toBe(100)
})
