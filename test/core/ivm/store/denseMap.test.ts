/**
 * The maps by keys against plain ones: whatever the order in which counted keys come and go, in the array or beside it;
 * and that text of a record id and the id itself are one key (D1).
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { same } from "../../../../kit/checks/same.ts"
import { campaign, runs } from "../../../../kit/data/random.ts"
import { DenseMap, FiledMap, plainKey } from "../../../../src/core/ivm/store/denseMap.ts"
import { keyOfValues } from "../../../../src/core/ivm/store/indexKey.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import type { Value } from "../../../../src/core/surql/values/value.ts"

const key = FastCheck.oneof(
  FastCheck.nat(12),
  FastCheck.nat(300),
  FastCheck.nat(),
  FastCheck.constantFrom<Array<number | string>>(-1, -3, 0.5, 1.5, 2 ** 31, 2 ** 40, "1", "a", "12", "length")
)
const step = FastCheck.tuple(key, FastCheck.integer({ min: 0, max: 3 }))

test.each([1, 2] as const)("a map by record keys holds what a plain map holds, with %s cells for each key", (cells) => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(step, { maxLength: 400, size: "max" }), (steps) => {
      const map = new DenseMap<number, string>(cells),
        plain = new Map<number | string, number>()
      const beside = new Map<number, string>()
      let count = 0
      for (const [key, kind] of steps) {
        if (kind === 0) {
          map.delete(key)
          plain.delete(key)
          beside.delete(key as number)
        } else {
          map.set(key, ++count)
          plain.set(key, count)
          if (cells === 2 && kind === 2 && map.isCounted(key)) {
            map.setBeside(key, `beside ${count}`)
            beside.set(key, `beside ${count}`)
          }
        }
        same(map.get(key), plain.get(key))
        same(map.size, plain.size)
      }
      for (const [key] of steps) {
        same(map.get(key), plain.get(key))
        if (cells === 2 && map.isCounted(key)) same(map.beside(key), beside.get(key))
      }
      expect([...map.values()].sort((a, b) => a - b)).toEqual([...plain.values()].sort((a, b) => a - b))
      map.clear()
      expect([map.size, [...map.values()], map.get(0)]).toEqual([0, [], undefined])
    }),
    { numRuns: runs(campaign ? 300 : 100) }
  )
})

test("a map by record keys takes keys that came out of order into its array once they are many", () => {
  const map = new DenseMap<number>()
  for (let n = 9_999; n >= 0; n--) map.set(n, n)
  for (let n = 10_000; n < 20_000; n++) map.set(n, n)
  expect(map.size).toBe(20_000)
  expect([...map.values()]).toEqual(Array.from({ length: 20_000 }, (_, n) => n))
})

test("D1 a record id and its text are filed as one; other text and other tables are not", () => {
  const keyOf = (value: Value): unknown => keyOfValues([value])
  const map = new FiledMap<string>()
  map.set(keyOf(Ids.make("user", 5)), "user 5")
  map.set(keyOf(Ids.make("post", 5)), "post 5")
  map.set(keyOf("user:ann"), "user ann")
  expect(map.get(keyOf("user:5"))).toBe("user 5")
  expect(map.get(keyOf(Ids.make("post", 5)))).toBe("post 5")
  expect(map.get(keyOf(Ids.make("user", "ann")))).toBe("user ann")
  for (const other of ["user:05", "user:+5", " user:5", "user:5 ", "user:6", "team:5", 5, "5"])
    expect([other, map.get(keyOf(other))]).toEqual([other, undefined])
  expect(plainKey(keyOf("user:5"))).toBe("user:5")
  map.delete(keyOf("user:5"))
  expect([map.get(keyOf(Ids.make("user", 5))), map.get(keyOf("post:5"))]).toEqual([undefined, "post 5"])
})

test("what a map by record keys holds is not missed by who goes through it while others are put in", () => {
  FastCheck.assert(
    FastCheck.property(
      FastCheck.uniqueArray(key, { minLength: 3, maxLength: 120, size: "max" }),
      FastCheck.array(key, { maxLength: 300, size: "max" }),
      FastCheck.nat(120),
      (held, later, pause) => {
        const map = new DenseMap<number | string>()
        for (const one of held) map.set(one, one)
        const seen = new Set<number | string>()
        let count = 0
        for (const value of map.values()) {
          seen.add(value)
          if (count++ === pause) for (const one of later) map.set(one, one)
        }
        expect(held.filter((one) => !seen.has(one))).toEqual([])
      }
    ),
    { numRuns: runs(campaign ? 300 : 100) }
  )
})
