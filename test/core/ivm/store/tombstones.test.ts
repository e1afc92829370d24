/**
 * Deleted records in the order of their deletion, whatever came back meanwhile and was deleted again.
 *
 * Why here and not through the store: it forgets the oldest of a million.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { RecordSlot } from "../../../../src/core/ivm/store/recordSlot.ts"
import { Table } from "../../../../src/core/ivm/store/table.ts"
import { Tombstones } from "../../../../src/core/ivm/store/tombstones.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"

const step = FastCheck.oneof(
  { weight: 9, arbitrary: FastCheck.record({ flips: FastCheck.nat(7), again: FastCheck.constantFrom(1, 1, 1, 400) }) },
  { weight: 1, arbitrary: FastCheck.record({ oldest: FastCheck.nat(4) }) }
)

test("D4 the graves hold each deleted record once, the longest deleted first", () => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(step, { maxLength: 120, size: "max" }), (steps) => {
      const table = new Table("t", 0),
        deleted = new Tombstones(),
        plain = new Set<RecordSlot>()
      const slots = Array.from({ length: 8 }, (_, key) => new RecordSlot(table, Ids.make("t", key), 1))
      const flip = (slot: RecordSlot): void => {
        table.put(slot, plain.has(slot) ? { id: slot.id } : undefined, 1)
        if (plain.delete(slot)) deleted.remove()
        else {
          plain.add(slot)
          deleted.add(slot)
        }
      }
      for (const one of steps) {
        if ("flips" in one) for (let i = 0; i < one.again; i++) flip(slots[one.flips]!)
        else {
          const first = [...plain].slice(0, one.oldest)
          expect(deleted.oldest(one.oldest)).toEqual(first)
          // Forgotten: what comes next under the same id is another place.
          for (const slot of first) {
            plain.delete(slot)
            slots[slots.indexOf(slot)] = new RecordSlot(table, slot.id, 1)
          }
        }
        expect(deleted.size).toBe(plain.size)
      }
      expect(deleted.oldest(8)).toEqual([...plain])
      expect(deleted.size).toBe(0)
    }),
    { numRuns: 300 }
  )
})
