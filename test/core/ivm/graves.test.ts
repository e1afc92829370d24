/**
 * Deleted records in the order of their deletion, whatever came back meanwhile and was deleted again.
 *
 * Why here and not through the store: it forgets the oldest of a million.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { Graves } from "../../../src/core/ivm/store/tombstones.ts"
import { Place } from "../../../src/core/ivm/store/recordSlot.ts"
import { Table } from "../../../src/core/ivm/store/table.ts"
import * as Ids from "../../../src/core/surql/recordId.ts"

const step = FastCheck.oneof(
  { weight: 9, arbitrary: FastCheck.record({ flips: FastCheck.nat(7), again: FastCheck.constantFrom(1, 1, 1, 400) }) },
  { weight: 1, arbitrary: FastCheck.record({ oldest: FastCheck.nat(4) }) }
)

test("D4 the graves hold each deleted record once, the longest deleted first", () => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(step, { maxLength: 120, size: "max" }), (steps) => {
      const table = new Table("t"), graves = new Graves(), plain = new Set<Place>()
      const places = Array.from({ length: 8 }, (_, key) => new Place(table, Ids.make("t", key), 1, key))
      const flip = (place: Place): void => {
        table.put(place, place.id, plain.has(place) ? { id: place.id } : undefined, 1)
        if (plain.delete(place)) graves.remove()
        else {
          plain.add(place)
          graves.add(place)
        }
      }
      for (const one of steps) {
        if ("flips" in one) for (let i = 0; i < one.again; i++) flip(places[one.flips]!)
        else {
          const first = [...plain].slice(0, one.oldest)
          expect(graves.oldest(one.oldest)).toEqual(first)
          // Forgotten: what comes next under the same id is another place.
          for (const place of first) {
            plain.delete(place)
            places[places.indexOf(place)] = new Place(table, place.id, 1, place.number)
          }
        }
        expect(graves.size).toBe(plain.size)
      }
      expect(graves.oldest(8)).toEqual([...plain])
      expect(graves.size).toBe(0)
    }),
    { numRuns: 300 }
  )
})
