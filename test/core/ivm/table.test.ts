/**
 * What a change finds of its record, whatever the keys are and in whatever order they come: counted ones lead to it by
 * arrays, all others by maps, and a record that was there before its key was counted comes along.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import type { Change } from "../../../src/core/change.ts"
import { Store } from "../../../src/core/ivm/store.ts"
import * as Ids from "../../../src/core/surql/recordId.ts"
import type { Obj, RecordKey } from "../../../src/core/surql/value.ts"

const key: FastCheck.Arbitrary<RecordKey> = FastCheck.oneof<Array<FastCheck.Arbitrary<RecordKey>>>(
  FastCheck.nat(10), FastCheck.nat(400), FastCheck.nat(), FastCheck.constantFrom<Array<RecordKey>>(-1, 10n ** 17n, "5", "ann", [1, "x"], { a: 1 }, [5])
)
const change = FastCheck.tuple(key, FastCheck.integer({ min: -1, max: 2 }))

test("a change finds the state that the last one left, and says nothing where it leaves the same", () => {
  let same = 0, gone = 0
  FastCheck.assert(
    FastCheck.property(FastCheck.array(change, { maxLength: 300, size: "max" }), FastCheck.boolean(), (changes, cleared) => {
      const store = new Store()
      const known = new Map<string, Obj>()
      const send = (key: RecordKey, n: number): void => {
        const id = Ids.make("t", key), before = known.get(id.text)
        const next: Change = { op: n < 0 ? "DELETE" : "UPDATE", id, doc: n < 0 ? { id } : { id, n }, version: undefined, position: undefined, jobAssignee: undefined }
        const [write] = store.plan([next])
        expect(store.docOf(id)).toBe(before)
        if (n < 0 ? before === undefined : before?.["n"] === n) {
          same++
          expect(write).toBeUndefined()
          return
        }
        expect(write!.before).toBe(before)
        store.apply(write!)
        if (n >= 0) known.set(id.text, next.doc)
        else if (known.delete(id.text)) gone++
      }
      for (const [key, n] of changes) send(key, n)
      expect(new Set(Array.from(store.rows("t"), ({ doc }) => doc))).toEqual(new Set(known.values()))
      expect(store.size("t")).toBe(known.size)
      if (!cleared) return
      store.clear()
      known.clear()
      for (const [key, n] of changes) send(key, n)
      expect(store.size("t")).toBe(known.size)
    }),
    { numRuns: 200 }
  )
  expect([same > 1_000, gone > 1_000]).toEqual([true, true])
})
