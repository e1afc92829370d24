/**
 * Hashes of rows that are told apart by little: a letter, a digit, a version.
 *
 * Why: neighbours in all three are what a real result is made of, and a hash that mixes them badly fails just there.
 */
import { expect, test } from "vitest"
import { rowHash } from "../../../src/core/ivm/delta/hash.ts"

test("L5 rows that differ in a letter, a digit and a version have hashes of their own", () => {
  const seen = new Set<string>()
  let rows = 0
  for (const table of "abcdefghijklmnopqrstuvwxyz") {
    for (let key = 0; key < 12; key++) {
      for (let version = 0; version < 200; version++) {
        const { high, low } = rowHash(`${table}:${key}`, version, undefined)
        seen.add(`${high} ${low}`)
        rows++
      }
    }
  }
  expect(seen.size).toBe(rows)
})
