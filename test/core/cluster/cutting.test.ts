/** Where a shared log may be cut. */
import { expect, test } from "vitest"
import { cutBefore, type LogCopy } from "../../../src/core/cluster/cutting.ts"

const cut = (wanted: number, own: number, others: ReadonlyArray<LogCopy>, copies: number, snapshot?: number): number =>
  cutBefore(wanted, { own, others, snapshot }, copies)

const other = (synced: number, applied = synced, isNear = true): LogCopy => ({ applied, synced, isNear })

test("D60 a log is cut below what enough replicas have on disk, the leader's among them", () => {
  expect(cut(100, 99, [other(50)], 2)).toBe(51)
  expect(cut(40, 99, [other(50)], 2)).toBe(40)
  expect(cut(100, 30, [other(50)], 2)).toBe(31)
  expect(cut(100, 99, [other(50, 60), other(80)], 2)).toBe(61)
  expect(cut(100, 99, [other(50, 60), other(80)], 3)).toBe(51)
})

test("D60 nothing is cut where there are too few, nor below what one still reads, silent ones included", () => {
  expect(cut(100, 99, [], 2)).toBe(0)
  expect(cut(100, 99, [other(90, 95, false)], 2)).toBe(0)
  expect(cut(100, 99, [other(90), other(5, 7, false)], 2)).toBe(8)
  expect(cut(100, 99, [], 1)).toBe(100)
})

test("D64 a snapshot kept apart is a copy, and nothing is cut that the newest of them lacks", () => {
  expect(cut(100, 99, [], 2, 80)).toBe(81)
  expect(cut(100, 99, [], 3, 80)).toBe(0)
  expect(cut(100, 99, [other(98)], 2, 80)).toBe(81)
  expect(cut(100, 60, [other(70)], 2, 80)).toBe(71)
  expect(cut(100, 60, [other(70)], 3, 80)).toBe(61)
  expect(cut(100, 99, [other(98)], 1, 0)).toBe(1)
})
