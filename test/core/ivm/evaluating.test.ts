/**
 * What the engine notes while it evaluates: which view, one note for each evaluation, nothing in between, every slot
 * given back.
 *
 * The notes are read from the memory that a watchdog would read, by a function that stands in for one in the middle of
 * the work.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { EvaluationNote } from "../../../src/core/ivm/evaluating.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { noSlot } from "../../../src/core/view/watch.ts"
import { change } from "../../ssp/viewsKit.ts"

class Noting extends EvaluationNote {
  readonly begun: Array<number> = []
  override begin(slot: number): void {
    super.begin(slot)
    this.begun.push(this.slot)
  }
}

const world = () => {
  const closed: Array<number> = []
  const evaluating = new Noting(undefined, (slot) => void closed.push(slot))
  const engine = new Engine({ evaluating, later: (work) => void drain(work()), atOnce: 0 })
  const put = (id: string, record: { readonly [key: string]: unknown }) => {
    evaluating.begun.length = 0
    for (const write of engine.plan([change(id, record, {}, "UPDATE")])) if (write !== undefined) engine.apply(write)
    expect(evaluating.slot).toBe(noSlot)
    return [...new Set(evaluating.begun)]
  }
  const acquire = (surql: string, slot: number, params = {}) =>
    Either.map(drain(engine.acquireSliced(Either.getOrThrow(parseSelect(surql)), params, 1, slot)), (view) => {
      expect(evaluating.slot).toBe(noSlot)
      return view
    })
  return { closed, engine, evaluating, put, acquire }
}

describe("D48 what is evaluated is noted", () => {
  it("by the slots of the views that a change reaches, whichever way they are maintained", () => {
    const { acquire, put } = world()
    put("t:1", { n: 1 })
    for (const [surql, slot] of [
      ["SELECT id FROM t WHERE n > 0", 1],
      ["SELECT n, count() FROM t GROUP BY n", 2],
      ["SELECT id, (SELECT id FROM u WHERE t = $parent.id) AS us FROM t", 3],
      ["SELECT * FROM t ORDER BY n LIMIT 1", 4]
    ] as const)
      acquire(surql, slot)
    acquire("SELECT * FROM type::table($name)", 5, { name: "v" })
    // Evaluated, and nothing of it changes.
    acquire("SELECT id FROM t WHERE n > 100 OR n < -100", 6)
    expect(put("t:1", { n: 2 }).sort()).toEqual([1, 2, 3, 4, 6])
    expect(put("w:1", {})).toEqual([])
  })

  it("a subquery's rows by the slot of the view that they are for, also when they change themselves", () => {
    const { acquire, put } = world()
    put("t:1", {})
    acquire("SELECT id, (SELECT id FROM u WHERE n > 1 AND t = $parent.id) AS us FROM t", 3)
    expect(put("u:1", { n: 2, t: "t:1" })).toEqual([3])
  })

  it("as one evaluation with everything it causes", () => {
    const memory = new Int32Array(4),
      evaluating = new EvaluationNote(memory)
    evaluating.begin(4)
    const [evaluation, slot] = [1, 2]
    const count = memory[evaluation]!
    evaluating.during(evaluating.slot, () => {
      for (let i = 0; i < 3; i++) evaluating.begin(9)
      evaluating.end()
      expect([memory[slot], memory[evaluation]]).toEqual([4, count + 1])
      expect(evaluating.during(8, () => memory[slot])).toBe(4)
    })
    expect(memory[slot]).toBe(4)
    expect(() =>
      evaluating.during(5, () => {
        throw new Error("x")
      })
    ).toThrow("x")
    evaluating.begin(6)
    expect(memory[slot]).toBe(6)
  })

  it("slots are given back: with the instance, where there is another already, where the query is refused, when all is cleared", () => {
    const { acquire, closed, engine } = world()
    const first = Either.getOrThrow(acquire("SELECT id, (SELECT id FROM u) AS us FROM t", 1))
    acquire("SELECT id, (SELECT id FROM u) AS us FROM t", 2)
    expect(closed).toEqual([2])
    expect(Either.isLeft(acquire("SELECT * FROM t LIMIT 'a'", 3))).toBe(true)
    expect(closed).toEqual([2, 3])
    engine.release(first)
    expect(closed).toEqual([2, 3])
    engine.release(first)
    expect(closed).toEqual([2, 3, 1])
    acquire("SELECT id FROM t", 4)
    engine.clear()
    expect(closed).toEqual([2, 3, 1, 4])
  })
})
