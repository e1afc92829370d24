/**
 * What a change finds of its record, whatever the keys are and in whatever order they come: counted ones lead to it by
 * arrays, all others by maps, and a record that was there before its key was counted comes along.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { same } from "../../../../kit/checks/same.ts"
import { Store } from "../../../../src/core/ivm/store/store.ts"
import type { Change } from "../../../../src/core/record/change.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import type { Obj, RecordKey } from "../../../../src/core/surql/values/value.ts"
import { Desk, change as send } from "../desk.ts"

const key: FastCheck.Arbitrary<RecordKey> = FastCheck.oneof<Array<FastCheck.Arbitrary<RecordKey>>>(
  FastCheck.nat(10),
  FastCheck.nat(400),
  FastCheck.nat(),
  FastCheck.constantFrom<Array<RecordKey>>(-1, 10n ** 17n, "5", "ann", [1, "x"], { a: 1 }, [5])
)
const change = FastCheck.tuple(key, FastCheck.integer({ min: -1, max: 2 }))

test("a change finds the state that the last one left, and says nothing where it leaves the same", () => {
  let unchanged = 0,
    gone = 0
  FastCheck.assert(
    FastCheck.property(
      FastCheck.array(change, { maxLength: 300, size: "max" }),
      FastCheck.boolean(),
      (changes, cleared) => {
        const store = new Store()
        const known = new Map<string, Obj>()
        const send = (key: RecordKey, n: number): void => {
          const id = Ids.make("t", key),
            before = known.get(id.text)
          const next: Change = {
            op: n < 0 ? "DELETE" : "UPDATE",
            id,
            doc: n < 0 ? { id } : { id, n },
            version: undefined,
            position: undefined,
            jobAssignee: undefined
          }
          const [write] = store.plan([next])
          same(store.docOf(id), before)
          if (n < 0 ? before === undefined : before?.["n"] === n) {
            unchanged++
            same(write, undefined)
            return
          }
          same(write!.before, before)
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
      }
    ),
    { numRuns: 200 }
  )
  expect([unchanged > 1_000, gone > 1_000]).toEqual([true, true])
})

test("a record that is deleted and made again in one step under the version it had is the new one", () => {
  const queries = [
    "SELECT * FROM t",
    "SELECT * FROM t ORDER BY n LIMIT 1",
    "SELECT * FROM t ORDER BY n LIMIT 5",
    "SELECT n, count() AS c FROM t GROUP BY n",
    "SELECT * FROM t SPLIT tags"
  ]
  const desk = new Desk().put("t:1", { n: 1, tags: ["a"], _svc_rv: 5 }).put("t:2", { n: 1.5, tags: ["c"] })
  const views = queries.map((query) => desk.watch(query))
  desk.sendAll([send("t:1", undefined), send("t:1", { n: 2, tags: ["b"], _svc_rv: 5 })])
  // A piece of a split record is told by the version of the record.
  for (const [i, view] of views.entries())
    if (!queries[i]!.includes("SPLIT")) expect([queries[i], view.delta()]).toEqual([queries[i], expect.anything()])
  for (const [i, query] of queries.entries())
    expect([query, views[i]!.rows()]).toEqual([
      query,
      desk.watch(`${query} `.replace(" FROM t", " FROM t WHERE n > 0")).rows()
    ])
})

test("tables that nobody follows any more and that hold nothing are forgotten", () => {
  const desk = new Desk().put("kept:1", { n: 1 })
  for (let n = 0; n < 50; n++)
    for (const view of [
      desk.watch(`SELECT * FROM none${n}`),
      desk.watch(`SELECT * FROM none${n} WHERE n = 1`),
      desk.watch(`SELECT * FROM none${n} WHERE n = 2`)
    ])
      desk.engine.release(view.view)
  expect((Reflect.get(desk.engine.store, "tables") as ReadonlyMap<string, unknown>).size).toBe(1)
  desk.remove("none7:1").remove("kept:1")
  expect(desk.watch("SELECT * FROM kept").rows()).toEqual([])
  desk.put("none7:1", { n: 1 })
  expect(desk.watch("SELECT * FROM none7").rows()).toEqual([{ id: "none7:1", n: 1 }])
})

test("a place is the id of its document, and there is none beside it, of a deleted record either", () => {
  for (const key of ["1", "a", "[1, 'b']"]) {
    const id = `t:${key}`
    const desk = new Desk().put(id, { n: 1 })
    const slot = desk.engine.store.slotOf(Ids.parse(id)!)
    for (const n of [2, 3]) {
      desk.put(id, { n }, "UPDATE")
      expect([slot === slot.doc?.["id"], slot === slot.id, slot.doc?.["n"]]).toEqual([true, true, n])
    }
    desk.remove(id)
    expect([slot.id.text, slot.doc, slot.kept]).toEqual([id, undefined, true])
    expect(slot).toBe(slot.id)
    desk.put(id, { n: 4 })
    expect([desk.engine.store.slotOf(Ids.parse(id)!) === slot, slot.version, slot.doc?.["n"]]).toEqual([true, 4, 4])
  }
})

test("L1 ids that are equal as values are records of their own in ranges, lists and pages, behind a deletion too", () => {
  const ids = ["k:[1]", "k:[1, 2]", "k:[1f]", "k:[1dec]", "k:{ a: 1 }", "k:{ a: 1f }"]
  const desk = new Desk()
  for (const id of ids.toReversed()) desk.put(id, { n: ids.indexOf(id) })
  const queries = [
    "SELECT VALUE n FROM k",
    "SELECT VALUE n FROM (SELECT * FROM k)",
    "SELECT VALUE n FROM k:[1].. WHERE n >= 0",
    "SELECT VALUE n FROM k LIMIT 9",
    "SELECT VALUE n FROM k WHERE id >= k:[1f]",
    "SELECT VALUE n FROM k:[1]..=[1dec]"
  ]
  const views = queries.map((query) => desk.watch(query))
  const inner = desk.watch("SELECT VALUE n FROM k:[1]..=[1f]")
  const wanted = (...gone: ReadonlyArray<number>) => [
    ...queries.slice(0, 5).map(() => [0, 1, 2, 3, 4, 5].filter((n) => !gone.includes(n))),
    [0, 1, 2, 3].filter((n) => !gone.includes(n)),
    [0, 1, 2].filter((n) => !gone.includes(n))
  ]
  const shown = () => [...views, inner].map((view) => view.rows())
  expect(shown()).toEqual(wanted())
  desk.remove("k:[1f]")
  expect(shown()).toEqual(wanted(2))
  desk.put("k:[1]", { n: 0 }, "UPDATE").remove("k:{ a: 1 }")
  expect(shown()).toEqual(wanted(2, 4))
  desk.put("k:[1f]", { n: 2 }).remove("k:[1]")
  expect(shown()).toEqual(wanted(0, 4))
})
