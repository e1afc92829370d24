/**
 * Pages of one key as a series: which of them hear of a row.
 */
import { expect, test } from "vitest"
import { Desk } from "./desk.ts"

test.each(["list = $parent.list", "list = $parent.list AND at >= 0"])(
  "L1 pages in subqueries that differ in LIMIT alone are filled at once and told of their own rows: %s",
  (filter) => {
    const on = new Desk()
    on.put("u:1", { list: 1 })
    for (let n = 0; n < 30; n++) on.put(`t:${n}`, { list: 1, at: 10 * n })
    const limits = [2, 9, 4, 20, 3]
    const sub = (limit: number) => `(SELECT VALUE at FROM t WHERE ${filter} ORDER BY at LIMIT ${limit})`
    // The first one builds the index.
    on.watch(`SELECT ${sub(1)} AS l FROM u`)
    const view = on.watch(`SELECT ${limits.map((limit) => `${sub(limit)} AS l${limit}`).join(", ")} FROM u`)
    const ats = Array.from({ length: 30 }, (_row, n) => 10 * n)
    for (const n of [0, 1, 2, 3, 4, 8, 9, 19, 20, 25]) {
      ats.push(10 * n + 5)
      ats.sort((a, b) => a - b)
      on.put(`t:${100 + n}`, { list: 1, at: 10 * n + 5 })
      expect(view.rows(), `a row at ${n}`).toEqual([
        Object.fromEntries(limits.map((limit) => [`l${limit}`, ats.slice(0, limit)]))
      ])
    }
  }
)
