/**
 * The language's younger constructs inside live views: after every change the view is what a fresh run gives, and a
 * change of what it shows is announced.
 *
 * Why here: the random queries of the engine's own tests do not draw them, and what an analysis does not see (a LET, a
 * range of edge ids, a closure's call) a view would miss.
 */
import { describe, expect, it } from "vitest"
import { Desk } from "../ivm/desk.ts"

type Step = readonly [id: string, record: { readonly [field: string]: unknown } | undefined]

const steps: ReadonlyArray<Step> = [
  ["p:1", { name: "a", age: 3, best: "p:2" }],
  ["p:2", { name: "b", age: 4 }],
  ["likes:1", { in: "p:1", out: "p:2", w: 1 }],
  ["likes:5", { in: "p:1", out: "p:3", w: 2 }],
  ["p:3", { name: "c", age: 5, best: "p:1" }],
  ["p:2", { name: "bb", age: 1, best: "p:3" }],
  ["likes:1", { in: "p:1", out: "p:3", w: 9 }],
  ["likes:2", { in: "p:2", out: "p:1", w: 3 }],
  ["p:1", { name: "a", age: 9 }],
  ["likes:5", undefined],
  ["p:3", undefined],
  ["p:2", undefined]
]

const queries = [
  "SELECT id, { LET $x = age; $x + 1 } AS next FROM p",
  "SELECT id FROM p WHERE { LET $x = age; $x > 3 }",
  "SELECT id FROM p WHERE (IF age > 3 { RETURN true } ELSE { RETURN name = 'bb' })",
  "SELECT id, { LET $b = best; RETURN $b.name; 5 } AS n FROM p",
  "SELECT id, { LET $all = (SELECT VALUE id FROM p WHERE age > $parent.age); array::len($all) } AS older FROM p",
  "SELECT id, { LET $f = |$v: int| -> int { $v * 2 }; $f(age) } AS twice FROM p ORDER BY id DESC LIMIT 2",
  "SELECT id, ->likes:1..3->p AS liked FROM p",
  "SELECT id, ->(likes:2.. WHERE w > 1 AS few) FROM p",
  "SELECT id, <-(likes FIELD out) AS fans FROM p",
  "SELECT id, value::diff({ a: age }, { a: 4 }) AS d FROM p WHERE { LET $min = $floor; age >= $min }"
]

describe("L1 live views", () => {
  it.each(queries)("L1 %s stays what a fresh run gives, and says when it changes", (query) => {
    const desk = new Desk(),
      params = { floor: 2 }
    const view = desk.watch(query, params)
    const held = new Map<string, { readonly [field: string]: unknown }>()
    let filled = 0,
      before = "[]"
    for (const [id, record] of steps) {
      if (record === undefined) {
        desk.remove(id)
        held.delete(id)
      } else {
        desk.put(id, record, held.has(id) ? "UPDATE" : "CREATE")
        held.set(id, record)
      }
      const fresh = new Desk()
      for (const [key, value] of held) fresh.put(key, value)
      const rows = fresh.watch(query, params).rows()
      expect(view.rows(), `after ${id}`).toEqual(rows)
      if (rows.length > 0) filled++
      const now = JSON.stringify(rows)
      if (now !== before) expect(view.delta(), `announced after ${id}`).toBeDefined()
      before = now
    }
    expect(filled).toBeGreaterThan(4)
  })
})
