/**
 * When a query is set aside, and what is remembered of it.
 *
 * Entries as data: no process ends here.
 */
import { describe, expect, it } from "vitest"
import { type Entry, mostRemembered, withAbnormalEnd } from "../../../src/core/view/quarantine.ts"

const times = (count: number, query: string, from: ReadonlyArray<Entry> = []): ReadonlyArray<Entry> =>
  Array.from({ length: count }).reduce<ReadonlyArray<Entry>>(
    (entries, _, i) => withAbnormalEnd(entries, { query, id: `v${i}`, last: i }),
    from
  )

describe("D48 a query in which processes end", () => {
  it("is noted once, whatever the view was called, with how often it was", () => {
    expect(times(2, "q")).toEqual([{ query: "q", id: "v1", ends: 2, last: 1 }])
    expect(times(1, "other", times(1, "q")).map(({ query }) => query)).toEqual(["q", "other"])
  })

  it("is forgotten once many others have come after it", () => {
    const first = times(2, "first")
    const many = Array.from({ length: mostRemembered }).reduce<ReadonlyArray<Entry>>(
      (entries, _, i) => times(1, `q${i}`, entries),
      first
    )
    expect(many.length).toBe(mostRemembered)
    expect(many.some(({ query }) => query === "first")).toBe(false)
  })
})
