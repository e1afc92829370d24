/** Times of a view, and of the registrations by which it lives on (D14, D63). */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as RepeatedRegistration from "../../../src/core/view/repeatedRegistration.ts"
import * as ViewTimes from "../../../src/core/view/viewTimes.ts"

describe("how long a view lives", () => {
  it("D14 D63 never less than its time to live after any activity, written down or not, and little more", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.array(fc.oneof(fc.nat(2_000), fc.nat(1e8))), (ttlMs, pauses) => {
        let written = { ttlMs, lastActiveAtMs: 0 }
        let now = 0
        for (const pause of pauses) {
          now += pause
          if (!ViewTimes.isWithinGrace(written, now)) written = { ttlMs, lastActiveAtMs: now }
          const lives = ViewTimes.expiresAtMs(written) - now
          expect(lives).toBeGreaterThanOrEqual(ttlMs)
          expect(lives - ttlMs).toBeLessThanOrEqual(Math.min(ttlMs / 16, 1_000))
        }
      })
    )
  })
  it("D14 an activity before the one that is written down is none of those left out: it may end the view sooner", () => {
    expect(ViewTimes.isWithinGrace({ ttlMs: 1_600, lastActiveAtMs: 1_000 }, 997)).toBe(false)
    expect(
      [1_000, 1_100, 1_101].map((at) => ViewTimes.isWithinGrace({ ttlMs: 1_600, lastActiveAtMs: 1_000 }, at))
    ).toEqual([true, true, false])
  })
})

describe("when a view was last active", () => {
  const now = Date.parse("2030-01-01T00:00:00Z")
  const at = (more: { readonly lastActiveAt?: string; readonly idleMs?: number }) => {
    const read = ViewTimes.read({ ttl: "1h", ...more }, now)
    return read._tag === "Right" ? read.right.lastActiveAtMs - now : read.left
  }
  it("D73 is told as time that has gone by since, which counts before a time of day of another machine", () => {
    expect([at({}), at({ lastActiveAt: "2029-12-31T23:00:00Z" })]).toEqual([0, -3_600_000])
    expect(at({ lastActiveAt: "2029-12-31T23:00:00Z", idleMs: 1_500 })).toBe(-1_500)
  })
})

describe("a registration that says again what is known", () => {
  const body = { id: "v", surql: "SELECT * FROM t", clientId: "c", ttl: "1h", params: { a: [1, { b: null }] } }
  it("D63 reads what a registration may hold, and leaves anything else to the schema", () => {
    expect(RepeatedRegistration.read({ ...body, lastActiveAt: "1970-01-01T00:00:05Z", format: "tree" }, 1)).toEqual({
      id: "v",
      surql: "SELECT * FROM t",
      clientId: "c",
      ttlMs: 3_600_000,
      params: '{"a":[1,{"b":null}]}',
      format: "tree",
      lastActiveAtMs: 5_000
    })
    for (const odd of [
      null,
      [],
      "text",
      { ...body, more: 1 },
      { ...body, assignment: 1 },
      { ...body, id: 1 },
      { ...body, surql: null },
      { ...body, params: 1 },
      { ...body, format: {} },
      { ...body, ttl: "soon" },
      { ...body, lastActiveAt: null },
      { ...body, lastActiveAt: "soon" }
    ])
      expect(RepeatedRegistration.read(odd, 1), JSON.stringify(odd)).toBeUndefined()
  })
  it("D9 D63 is the same where nothing but the time differs, and that little", () => {
    const known = RepeatedRegistration.read(body, 0)!
    expect(RepeatedRegistration.isRepeat(known, RepeatedRegistration.read({ ...body, format: null }, 1_000)!)).toBe(
      true
    )
    for (const [other, at] of [
      [{ ...body, id: "w" }, 0],
      [{ ...body, surql: "SELECT * FROM u" }, 0],
      [{ ...body, clientId: "d" }, 0],
      [{ ...body, ttl: "2h" }, 0],
      [{ ...body, params: { a: [2] } }, 0],
      [{ ...body, format: "flat" }, 0],
      [body, 1_001]
    ] as const)
      expect(RepeatedRegistration.isRepeat(known, RepeatedRegistration.read(other, at)!), JSON.stringify(other)).toBe(
        false
      )
  })
})
