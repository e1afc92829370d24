/**
 * Rows in order, as an index is first built of them, beside the sort of the runtime: order, rows that are met twice and
 * rows that are left out.
 */
import { expect } from "vitest"
import { long, type Rng, runs, seeded } from "../../../../kit/data/random.ts"
import { SortedRows } from "../../../../src/core/ivm/index/sortedRows.ts"
import type { Ordering } from "../../../../src/core/ivm/store/ordering.ts"
import type { RecordSlot } from "../../../../src/core/ivm/store/recordSlot.ts"
import { Store } from "../../../../src/core/ivm/store/store.ts"
import { compare, compareRecords } from "../../../../src/core/surql/values/order.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import { Datetime, field, type Obj, type Value } from "../../../../src/core/surql/values/value.ts"

const backwards = (a: Value, b: Value): number => compare(b, a)

/** How the value of the n-th row of a table is made. */
const tables: { readonly [name: string]: (random: Rng, n: number) => Value } = {
  "in order": (_, n) => n,
  "against it": (_, n) => -n,
  "in order but for some": (random, n) => (random.chance(0.01) ? random.below(9_000) : n),
  "few values": (random) => random.below(7),
  "numbers of all kinds": (random) => random.pick([0, -0, 0.5, -1e300, Infinity, -Infinity, random.below(1000)]),
  "values of all kinds": (random, n) => random.pick<Value>([n, -n, `${n}`, true, undefined, null, [n]]),
  texts: (random) => `${random.below(100_000)}`,
  "whole numbers that leave no room beside them": (random) => random.pick([-1, 1]) * (2 ** 53 - 1 - random.below(3)),
  "large whole numbers": (random) => 2 ** 53 - 1 - random.below(5),
  "whole numbers far apart": (random) => random.below(5) * 2 ** 44,
  "numbers that are not whole": (random) => random.below(50) / 8,
  "numbers of one value": () => 2.5,
  datetimes: (random) => new Datetime(1_700_000_000 - random.below(3), random.below(1_000) * 1e6),
  "datetimes of nanoseconds": (random) => new Datetime(1_700_000_000, random.below(40)),
  "datetimes and numbers": (random, n) => (random.chance(0.5) ? n : new Datetime(n, 0))
}

seeded("L7 many rows are put in order as a sort puts them", "test/core/ivm/index/sortedRows.test.ts", (random) => {
  for (let run = 0; run < runs(1); run++)
    for (const [name, valueOf] of Object.entries(tables))
      for (const count of [1, 9, 2_048, 2_500, ...(long ? [7_000] : [])])
        for (const order of [compare, backwards]) {
          const ordering: Ordering = {
            text: "n, m",
            terms: [
              { field: "n", compare: order },
              { field: "m", compare }
            ],
            lead: { field: "n", compare: order }
          }
          const store = new Store()
          const counted = random.pick([0.5, 1])
          const rows = Array.from({ length: count }, (_, n): RecordSlot => {
            const id = Ids.make("t", random.chance(counted) ? n : `x${n}`)
            const doc: Obj = { id, n: valueOf(random, n), m: random.below(2) }
            const slot = store.slotOf(id)
            store.apply({ id, slot, before: undefined, after: doc, version: 1 })
            return slot
          })
          // As they were made, or in any order.
          const mixed = new Map(rows.map((slot) => [slot, random.next()]))
          const met = random.chance(0.5) ? rows : [...rows].sort((a, b) => mixed.get(a)! - mixed.get(b)!)
          const leftOut = new Set(rows.filter(() => random.chance(0.1)))
          const wanted = rows
            .filter((slot) => !leftOut.has(slot))
            .sort((a, b) => {
              for (const { compare: by, field: of } of ordering.terms) {
                const found = by(field(a.doc!, of), field(b.doc!, of))
                if (found !== 0) return found
              }
              return compareRecords(a.id, b.id)
            })
          const given: Array<RecordSlot> = []
          const slices = new SortedRows(ordering, [...met, ...rows.slice(0, 3)]).all(leftOut, (lead, ref) => {
            const slot = store.table("t").slotOf(ref)
            if (lead !== field(slot.doc!, "n")) throw new Error("another row's value")
            given.push(slot)
          })
          while (slices.next().done !== true);
          const idsOf = (slots: ReadonlyArray<RecordSlot>) => slots.map(({ id }) => id.text)
          expect(idsOf(given), `${count} ${name}`).toEqual(idsOf(wanted).reverse())
        }
})
