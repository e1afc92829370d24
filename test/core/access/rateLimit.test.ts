/**
 * The token bucket by the clock it is given: bursts, refill, one bucket per client, bounded memory.
 */
import { describe, expect, it } from "vitest"
import { clientOf, RateLimit } from "../../../src/core/access/rateLimit.ts"

const taken = (limit: RateLimit, client: string, nowMs: number, times: number): number =>
  Array.from({ length: times }, () => limit.take(client, nowMs)).filter((wait) => wait === 0).length

describe("RateLimit", () => {
  it("takes as many at once as a second may take, then says how long to wait", () => {
    const limit = new RateLimit(5)
    expect(taken(limit, "a", 1000, 20)).toBe(5)
    expect(limit.take("a", 1000)).toBe(1)
  })
  it("refills with time, never beyond what a second may take", () => {
    const limit = new RateLimit(10)
    expect(taken(limit, "a", 0, 30)).toBe(10)
    expect(taken(limit, "a", 500, 30)).toBe(5)
    expect(taken(limit, "a", 60_000, 30)).toBe(10)
  })
  it("over any 10 s no client gets more than the limit and one burst, however it spreads its requests", () => {
    for (const stepMs of [1, 7, 130, 999, 1000, 1001, 1999, 2001]) {
      const limit = new RateLimit(20)
      let got = 0
      for (let now = 0; now < 10_000; now += stepMs) got += taken(limit, "a", now, 200)
      expect(got, `every ${stepMs} ms`).toBeLessThanOrEqual(20 * 11)
      expect(got, `every ${stepMs} ms`).toBeGreaterThanOrEqual(
        20 * Math.min(10, Math.floor(10_000 / Math.max(stepMs, 1000)))
      )
    }
  })
  it("keeps clients apart", () => {
    const limit = new RateLimit(2)
    expect([taken(limit, "a", 0, 5), taken(limit, "b", 0, 5)]).toEqual([2, 2])
  })
  it("made-up addresses share the remaining bucket instead of filling the memory", () => {
    const limit = new RateLimit(1)
    let got = 0
    for (let n = 0; n < 150_000; n++) got += limit.take(`client ${n}`, 0) === 0 ? 1 : 0
    expect(got).toBe(100_001)
  })
  it("a client is an IPv4 address, also written inside IPv6, or the /64 of an IPv6 one", () => {
    expect(["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:10.0.0.1"].map(clientOf)).toEqual([
      "10.0.0.1",
      "10.0.0.1",
      "10.0.0.1"
    ])
    expect(clientOf("2001:db8:1:2::5")).toBe(clientOf("2001:db8:1:2:aaaa:bbbb:cccc:dddd"))
    expect(clientOf("2001:db8:1:2::5")).not.toBe(clientOf("2001:db8:1:3::5"))
    expect(clientOf("fe80::1%eth0")).toBe("fe80:0:0:0")
    expect(clientOf("::1")).toBe("0:0:0:0")
  })
})
