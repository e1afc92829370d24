/**
 * The price of a step and of a byte (D48), held against processor time and the heap: what is too cheap is a way to stop
 * a process.
 *
 * Why in the campaign alone: it measures. A row may take 1,000,000 steps without a pause, so a step of 50 ns makes 50
 * ms; found are those that take more than twice that, which is the margin for machines that do other things beside.
 */
import { describe, expect, it } from "vitest"
import { cases, measure, type Price } from "./prices.ts"

/** Nanoseconds of a step at most. */
const most = 100

/** Bytes of the heap that a charged byte stands for at most; what a process holds anyway is not counted. */
const mostHeld = 2,
  anyway = 1024 * 1024

describe("prices", () => {
  it("D48 no function, operator or cast takes more than its steps, or holds more than its bytes", () => {
    const prices = cases()
      .map(measure)
      .filter((price): price is Price => price !== undefined)
    expect(prices.length).toBeGreaterThan(1500)
    const slow = prices.filter(({ ms, nsPerStep }) => ms > 3 && nsPerStep > most)
    // What is measured once may have been held up: only what is slow again counts.
    const again = cases()
      .filter(([what]) => slow.some((price) => price.what === what))
      .map(measure)
      .filter((price) => price !== undefined && price.nsPerStep > most)
    expect(
      again.map((price) => `${price!.what}: ${Math.round(price!.nsPerStep)} ns for each of ${price!.steps} steps`)
    ).toEqual([])
    expect(
      prices
        .filter(({ bytes, held }) => held > anyway + mostHeld * bytes)
        .map(({ bytes, held, what }) => `${what}: holds ${held} for ${bytes}`)
    ).toEqual([])
  })
})
