/**
 * First fills that pause: changes come in between, and what is shown in the end is what a fresh run gives.
 *
 * Why by hand: which row changes before, at and after the place where a fill stands is the point.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { rerun } from "../../../src/core/ivm/view/rerun.ts"
import { StoreSource } from "../../../src/core/ivm/view/source.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { decodeChange } from "../../../src/core/record/change.ts"
import { drain, rowBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../../src/core/surql/values/json.ts"

// The fresh run of the subquery takes more steps than a view may.
const queries = [
  "SELECT * FROM item WHERE n > 10 ORDER BY n DESC LIMIT 20",
  "SELECT * FROM item WHERE kind = 'a'",
  "SELECT kind, count() AS c, math::sum(n) AS s FROM item GROUP BY kind",
  "SELECT id, (SELECT VALUE id FROM item WHERE n = $parent.n + 1) AS next FROM item WHERE kind = 'b'",
  "SELECT * FROM item WHERE kind IN (SELECT VALUE kind FROM wanted)",
  // Run whole: a table and a part of it overlap.
  "SELECT id FROM item, item:5"
]

/** A page is filled from an index, which looks at thousands of rows between two pauses. */
const start = (count: number) => {
  const engine = new Engine()
  const write = (op: "UPDATE" | "DELETE", id: string, record: object): void => {
    const change = Either.getOrThrow(decodeChange({ table: id.slice(0, id.indexOf(":")), op, id, record }))
    engine.applyAll(engine.plan([change]).filter((planned) => planned !== undefined))
  }
  for (let i = 0; i < count; i++) write("UPDATE", `item:${i}`, { n: i % 100, kind: "abc"[i % 3] })
  write("UPDATE", "wanted:1", { kind: "a" })
  return { engine, write }
}

const shown = (view: View) => view.rows().map((row) => toJson(row.value()))

describe("L1 L3 a fill that pauses", () => {
  it.each(queries)("shows what a fresh run gives, whatever changed meanwhile: %s", (text) => {
    const { engine, write } = start(text.includes("LIMIT") ? 9_000 : 2_000)
    const select = Either.getOrThrow(parseSelect(text))
    const slices = engine.acquireSliced(select, {})
    let pauses = 0
    let step = slices.next()
    for (; step.done !== true; step = slices.next()) {
      // A row already looked at, one not yet, one that comes, one that goes, and what a subquery reads.
      if (pauses < 6) {
        write("UPDATE", "item:3", { n: 50 + pauses, kind: "abc"[pauses % 3] })
        write("UPDATE", "item:1999", { n: 3 + pauses, kind: "abc"[(pauses + 1) % 3] })
        write("UPDATE", `item:${3_000 + pauses}`, { n: 99, kind: "a" })
        write("DELETE", `item:${1_000 + pauses}`, {})
        write("UPDATE", "wanted:1", { kind: "abc"[pauses % 3] })
      }
      pauses++
    }
    const view = Either.getOrThrow(step.value)
    const fresh = (): ReadonlyArray<unknown> =>
      drain(rerun(select, {}, new StoreSource(engine.store), engine.store, () => rowBudget(1e9))()).rows.map((row) =>
        toJson(row.value)
      )
    expect(pauses).toBeGreaterThan(2)
    expect(shown(view)).toEqual(fresh())
    expect(view.generation).toBe(1)
    write("UPDATE", "item:4", { n: 98, kind: "a" })
    expect(shown(view)).toEqual(fresh())
  })

  it.each(queries)("leaves nothing behind when it is given up: %s", (text) => {
    const { engine, write } = start(9_000)
    const slices = engine.acquireSliced(Either.getOrThrow(parseSelect(text)), {})
    slices.next()
    slices.return(Either.left({ reason: "given up", at: 0 }))
    write("UPDATE", "item:3", { n: 1, kind: "a" })
    expect(engine.shapes()).toEqual([])
  })

  it("two that want the same fill it together", () => {
    const { engine } = start(9_000)
    const select = Either.getOrThrow(parseSelect(queries[0]!))
    const first = engine.acquireSliced(select, {})
    first.next()
    const second = Either.getOrThrow(engine.acquire(select, {}))
    let step = first.next()
    while (step.done !== true) step = first.next()
    expect(Either.getOrThrow(step.value)).toBe(second)
  })
})
