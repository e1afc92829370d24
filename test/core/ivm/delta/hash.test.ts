/**
 * Hashes of rows that are told apart by little: a letter, a digit, a version.
 *
 * Why: neighbours in all three are what a real result is made of, and a hash that mixes them badly fails just there.
 */
import { expect, test } from "vitest"
import { recordHash, rowHash } from "../../../../src/core/ivm/delta/hash.ts"
import { make } from "../../../../src/core/surql/values/recordId.ts"

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

test("L5 a record without a text hashes as its text does", () => {
  for (const table of ["t", "a table"])
    for (const key of [0, 7, 10, 909, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -1, "a", "10", "a b", [1, "b"]])
      for (const version of [0, 1, 2 ** 32 + 5]) {
        const id = make(table, key)
        expect(recordHash(id, version)).toEqual(rowHash(id.text, version, undefined))
      }
})
