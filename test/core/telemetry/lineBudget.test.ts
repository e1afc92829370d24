/** Log lines that may come in floods (D53, D79): bounded for each kind in a minute, the rest counted. */
import { describe, expect, it } from "vitest"
import { LineBudget } from "../../../src/core/telemetry/lineBudget.ts"

describe("lines of a minute, as those about callers who are turned away", () => {
  it("D53 so many for each secret are written, the rest are counted, and a flood of guesses hides no known secret", () => {
    const turned = new LineBudget(3)
    const written = Array.from({ length: 1000 }, () => turned.take("unknown")).filter(Boolean).length
    expect([written, turned.take("grafana"), turned.isIdle]).toEqual([3, true, false])
    expect([turned.end(), turned.isIdle, turned.end()]).toEqual([[["unknown", 997]], true, []])
    expect(turned.take("unknown")).toBe(true)
  })
  it("D53 none may be written at all", () => {
    const turned = new LineBudget(0)
    expect([turned.take("a"), turned.take("a"), turned.end()]).toEqual([false, false, [["a", 2]]])
  })
})
