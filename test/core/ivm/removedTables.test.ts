/**
 * Tables that a store lets go of (D61): nothing of them is left, deleted records are counted right, and what comes back
 * begins anew.
 */
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../../../src/core/surql/values/value.ts"

const id = (text: string): RecordId => Ids.parseLenient(text)!
const doc = (text: string, n: number): Obj => ({ id: id(text), n })

const apply = (engine: Engine, text: string, n: number | undefined): void => {
  const change = {
    op: n === undefined ? ("DELETE" as const) : ("UPDATE" as const),
    id: id(text),
    doc: n === undefined ? { id: id(text) } : doc(text, n),
    version: undefined,
    position: undefined,
    jobAssignee: undefined
  }
  for (const write of engine.plan([change])) if (write !== undefined) engine.apply(write)
}

describe("a table that is let go", () => {
  it("D61 leaves no record and no deleted one, whatever came and went before", () => {
    const engine = new Engine({ maxTombstones: 4 })
    for (const n of [1, 2, 3]) apply(engine, `t:${n}`, n)
    apply(engine, "u:1", 1)
    // Deleted, made again, deleted: it has several entries among the deleted ones.
    for (const n of [undefined, 5, undefined]) apply(engine, "t:1", n)
    for (const n of [undefined, 6]) apply(engine, "t:2", n)
    expect(engine.store.tombstones).toBe(1)
    expect(engine.store.isUnread("t")).toBe(true)
    drain(engine.store.forgetTable("t"))
    expect([engine.store.size("t"), engine.store.tableNames(), engine.store.tombstones]).toEqual([0, ["u"], 0])
    engine.loadUnread(id("t:1"), 9, doc("t:1", 9))
    expect(engine.store.get(id("t:1"))?.version).toBe(9)
    // More deleted ones than are remembered: what was let go is not among the oldest.
    for (let n = 10; n < 30; n++) {
      apply(engine, `u:${n}`, n)
      apply(engine, `u:${n}`, undefined)
    }
    expect(engine.store.get(id("t:1"))?.version).toBe(9)
    expect(engine.store.tombstones).toBeLessThanOrEqual(4)
  })
  it("D61 takes its edges along", () => {
    const engine = new Engine()
    const edge = { id: id("likes:1"), in: id("a:1"), out: id("b:1") }
    engine.loadUnread(edge.id, 1, edge)
    const ends = () => [...engine.store.edges().edges(id("a:1"), "out", "likes")].length
    expect(ends()).toBe(1)
    drain(engine.store.forgetTable("likes"))
    expect(ends()).toBe(0)
  })
})
