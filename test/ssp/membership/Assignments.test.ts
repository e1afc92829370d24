/**
 * Which views a scheduler has placed here: calls may come late, twice, out of order (D21, D31).
 *
 * Why over all orders: two of these calls in the wrong order are a view on two SSPs, or on none.
 */
import { Effect, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { runs, seed } from "../../../kit/data/random.ts"
import { Assignments } from "../../../src/ssp/membership/Assignments.ts"

type Call = { readonly kind: "register" | "unregister"; readonly assignment: number }

const call: fc.Arbitrary<Call> = fc.record({
  kind: fc.constantFrom("register", "unregister"),
  assignment: fc.integer({ min: 0, max: 6 })
})

/** Whether the view is here after these calls, and whether each register call was taken. */
const after = (calls: ReadonlyArray<Call>) => {
  const assignments = new Assignments()
  let here: number | undefined
  for (const { assignment, kind } of calls) {
    if (kind === "register" && assignments.claim("v", assignment) !== undefined) here = assignment
    if (kind === "unregister" && assignments.takeBack("v", assignment)) here = undefined
  }
  return here
}

describe("D31 assignments", () => {
  it("in whatever order and however often calls come, the view is here exactly when its highest assignment was not taken back", () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 12 }), (calls) => {
        const highest = Math.max(
          -1,
          ...calls.filter(({ kind }) => kind === "register").map(({ assignment }) => assignment)
        )
        const back = Math.max(
          -1,
          ...calls.filter(({ kind }) => kind === "unregister").map(({ assignment }) => assignment)
        )
        expect(after(calls)).toBe(highest > back ? highest : undefined)
      }),
      { seed, numRuns: runs(2000) }
    )
  })
  it("a view that was registered directly is not taken back by a scheduler", () => {
    const assignments = new Assignments()
    expect(assignments.takeBack("direct", 9)).toBe(false)
  })
  it("a new registration ends what was placed before, and says which views that were", () => {
    const assignments = new Assignments()
    const still = assignments.claim("placed", 3)
    expect(still?.()).toBe(true)
    const placed = assignments.clear()
    expect([still?.(), placed("placed"), placed("direct")]).toEqual([false, true, false])
    expect(assignments.claim("placed", 1)?.()).toBe(true)
  })
  it("a view that moves leaves its rows in the database to its next SSP; a view that is unregistered takes them along; a late call does neither", () => {
    const assignments = new Assignments()
    const told: Array<unknown> = []
    const views = { unregister: (...given: ReadonlyArray<unknown>) => Effect.sync(() => void told.push(given)) }
    const unregister = (body: { readonly assignment?: number; readonly moved?: boolean }) =>
      Effect.runSync(assignments.unregister(views, { id: "incantation:v", ...body }))
    assignments.claim("v", 3)
    unregister({ assignment: 2, moved: true })
    expect(told).toEqual([])
    unregister({ assignment: 3, moved: true })
    assignments.claim("v", 5)
    unregister({ assignment: 5 })
    unregister({})
    expect(told).toEqual([
      ["incantation:v", true, "moved"],
      ["incantation:v", false],
      ["incantation:v", false]
    ])
  })
  it("an expired view is forgotten, and may be placed again under the same assignment", () => {
    const assignments = new Assignments()
    assignments.claim("v", 3)
    assignments.forget("v")
    expect(assignments.claim("v", 3)?.()).toBe(true)
  })
})
