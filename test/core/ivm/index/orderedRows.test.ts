/**
 * The counted tree of rows against a plain sorted array: order, ranks, and what is there, while rows come and go.
 */
import { expect, it } from "vitest"
import { runs, seeded } from "../../../../kit/data/random.ts"
import { maxNode, noRank, OrderedRows, tableOrderOf } from "../../../../src/core/ivm/index/orderedRows.ts"
import { leadOf, type Ordering } from "../../../../src/core/ivm/store/ordering.ts"
import type { RecordSlot, SlotRef } from "../../../../src/core/ivm/store/recordSlot.ts"
import { Store } from "../../../../src/core/ivm/store/store.ts"
import { compare, compareRecords } from "../../../../src/core/surql/values/order.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import { field, type Obj, type Value } from "../../../../src/core/surql/values/value.ts"

interface Tree {
  readonly children: ReadonlyArray<Tree> | undefined
}

const leavesOf = ({ children }: Tree): number =>
  children === undefined ? 1 : children.reduce((sum, child) => sum + leavesOf(child), 0)

const backwards = (a: Value, b: Value): number => compare(b, a)

const orderingOf = (text: string, ...terms: Ordering["terms"]): Ordering => ({ text, terms, lead: terms[0] })

const orderings: ReadonlyArray<Ordering> = [
  orderingOf("id"),
  orderingOf("n", { field: "n", compare }),
  orderingOf("n, m desc", { field: "n", compare }, { field: "m", compare: backwards })
]

seeded(
  "L7 ordered rows are where a sort puts them, under every rank, whatever comes, goes and moves",
  "test/core/ivm/index/orderedRows.test.ts",
  (random) => {
    for (let run = 0; run < runs(6); run++) {
      const ordering = orderings[run % orderings.length]!
      const store = new Store()
      const table = store.table("t")
      // A slot keeps its place while an index follows its table.
      table.indexes.push({ move: () => undefined })
      const rows = new OrderedRows(tableOrderOf(ordering, table))
      const read = (rank: number, count: number, leads: Array<Value>): ReadonlyArray<RecordSlot> => {
        const refs: Array<SlotRef> = []
        rows.read(rank, count, refs, leads)
        return refs.map((ref) => table.slotOf(ref))
      }
      const here = new Set<RecordSlot>()
      const put = (slot: RecordSlot, doc: Obj | undefined): void => {
        const before = slot.doc
        store.apply({ id: slot.id, slot, before, after: doc, version: slot.version + 1 })
        // An assertion of the runner for each change would take most of the time.
        if (before !== undefined && rows.remove({ lead: leadOf(ordering, before), doc: before, slot }) < 0)
          expect.fail(`${slot.id.text} was not there`)
        if (doc !== undefined && rows.at(rows.add({ lead: leadOf(ordering, doc), doc, slot })) !== slot)
          expect.fail(`${slot.id.text} is not at its rank`)
        if (doc === undefined) here.delete(slot)
        else here.add(slot)
      }
      const sorted = (): ReadonlyArray<RecordSlot> =>
        [...here].sort((a, b) => {
          for (const { compare: order, field: name } of ordering.terms) {
            const found = order(field(a.doc!, name), field(b.doc!, name))
            if (found !== 0) return found
          }
          return compareRecords(a.id, b.id)
        })
      // Grows to several levels, changes there, and shrinks to nothing.
      for (const [steps, gone] of [
        [6_000, 0.1],
        [3_000, 0.5],
        [9_000, 0.95]
      ] as const) {
        for (let i = 0; i < steps; i++) {
          const id = Ids.make("t", random.below(6_000))
          const slot = store.slotOf(id)
          const doc: Obj = { id, n: random.below(40), m: random.below(3) }
          put(slot, random.chance(gone) ? undefined : doc)
        }
        const wanted = sorted()
        expect(read(0, rows.size, []).map(({ id }) => id.text)).toEqual(wanted.map(({ id }) => id.text))
        for (let i = 0; i < 50; i++) {
          const rank = random.below(wanted.length + 2),
            count = 1 + random.below(200)
          const leads: Array<Value> = []
          const slots = read(rank, count, leads)
          expect(slots.map(({ id }) => id.text)).toEqual(wanted.slice(rank, rank + count).map(({ id }) => id.text))
          expect(leads).toEqual(slots.map((slot) => leadOf(ordering, slot.doc!)))
        }
        if (ordering.terms.length > 0)
          for (let bound = -1; bound <= 41; bound++)
            expect(rows.rankOf((lead) => compare(lead, bound) < 0)).toBe(
              wanted.filter(({ doc }) => compare(field(doc!, "n"), bound) < 0).length
            )
      }
      // What has shrunk takes no more room than it needs: a leaf holds 16 to 64 rows.
      expect(leavesOf(Reflect.get(rows, "root") as Tree)).toBeLessThanOrEqual(1 + here.size / 8)
      const [any] = here
      if (any !== undefined)
        expect(rows.add({ lead: leadOf(ordering, any.doc!), doc: any.doc!, slot: any }), "twice").toBe(noRank)
    }
  }
)

it("L7 rows that fit into one leaf are filled into one, and more are under every rank as they came", () => {
  const ordering = orderings[1]!
  for (const count of [0, 1, maxNode - 1, maxNode, maxNode + 1, 5 * maxNode]) {
    const store = new Store()
    const table = store.table("t")
    table.indexes.push({ move: () => undefined })
    const probes = Array.from({ length: count }, (_, i) => {
      const id = Ids.make("t", count - i)
      const slot = store.slotOf(id)
      const doc: Obj = { id, n: count - i }
      store.apply({ id: slot.id, slot, before: undefined, after: doc, version: 1 })
      return { lead: leadOf(ordering, doc), doc, slot }
    })
    const rows = new OrderedRows(tableOrderOf(ordering, table))
    rows.fillWith(probes)
    expect(rows.size).toBe(count)
    expect(probes.map(({ slot }, i) => rows.at(count - 1 - i) === slot)).not.toContain(false)
    expect(leavesOf(Reflect.get(rows, "root") as Tree) === 1, `${count} rows`).toBe(count <= maxNode)
  }
})
