/**
 * The SSP's own side of membership, decided: over any sequence of facts it never loops tightly, never ends by itself,
 * never heeds what is over.
 *
 * Why properties: what goes wrong here (endless 409 loops, a first failure that is final, two pulls at once) is a
 * sequence nobody thought of.
 */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { runs, seed } from "../../../kit/data/random.ts"
import { ceilingMs } from "../../../src/core/backoff.ts"
import * as Enrolment from "../../../src/core/cluster/enrolment.ts"

type Fact = Enrolment.Fact

/** `behind`: how many attempts ago the fact began; mostly none. */
interface Step {
  readonly wait: number
  readonly behind: number
  readonly make: (attempt: number) => Fact
}

const answer = fc.constantFrom<Enrolment.HeartbeatAnswer>("ok", "ok", "unknown", "conflict", "none")
const make = fc.oneof(
  fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }).map(
    (registration) =>
      (attempt: number): Fact => ({ tag: "Registered", attempt, registration })
  ),
  fc.constant((attempt: number): Fact => ({ tag: "Loaded", attempt })),
  fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 100_000 })).map(
    ([counts, waitMs]) =>
      (attempt: number): Fact => ({ tag: "Failed", attempt, counts, waitMs, message: "m" })
  ),
  answer.map(
    (given) =>
      (attempt: number): Fact => ({ tag: "Answered", attempt, answer: given, message: "m" })
  ),
  fc.integer({ min: 0, max: 20 }).map((registration) => (): Fact => ({ tag: "Named", registration })),
  fc.constant((): Fact => ({ tag: "Lost", reason: "r" }))
)
const step: fc.Arbitrary<Step> = fc.record({
  wait: fc.integer({ min: 0, max: 60_000 }),
  behind: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  make
})
const steps = fc.array(step, { maxLength: 120 })

const check = (property: (all: ReadonlyArray<Step>) => void): void =>
  fc.assert(fc.property(steps, property), { seed, numRuns: runs(300) })

/** Every state on the way, with what was told and ordered. */
const walk = (all: ReadonlyArray<Step>) => {
  let state = Enrolment.initial
  let now = 0
  return all.map(({ behind, make, wait }) => {
    const before = state
    const fact = make(state.attempt - behind)
    const [next, orders] = Enrolment.decide(state, (now += wait), fact)
    state = next
    return { before, fact, now, orders, after: next }
  })
}

const begins = (orders: ReadonlyArray<Enrolment.Order>) =>
  orders.flatMap((order) => (order.tag === "Begin" ? [order] : []))

const tell = (state: Enrolment.Enrolment, fact: Fact, now = 0): Enrolment.Enrolment =>
  Enrolment.decide(state, now, fact)[0]
const enrolled = (state: Enrolment.Enrolment = Enrolment.initial, registration?: number): Enrolment.Enrolment =>
  tell(tell(state, { tag: "Registered", attempt: state.attempt, registration }), {
    tag: "Loaded",
    attempt: state.attempt
  })

describe("D18 D19 enrolment", () => {
  it("an attempt follows another exactly where one is begun, and none is begun twice", () =>
    check((all) => {
      for (const { after, before, orders } of walk(all)) {
        expect(begins(orders).map(({ attempt }) => attempt)).toEqual(
          after.attempt === before.attempt ? [] : [before.attempt + 1]
        )
      }
    }))
  it("what belongs to an older attempt changes nothing", () =>
    check((all) => {
      for (const { after, before, fact, orders } of walk(all)) {
        if (
          "attempt" in fact &&
          fact.attempt !== before.attempt &&
          !(fact.tag === "Answered" && fact.answer === "none")
        )
          expect([after, orders]).toEqual([before, []])
      }
    }))
  it("it is ready exactly while it is a member, and failed exactly from the tenth failure in a row to the next success", () =>
    check((all) => {
      for (const { after } of walk(all)) {
        expect(after.phase === "ready").toBe(after.step === "member")
        expect(after.phase === "failed").toBe(after.failures >= 10)
      }
    }))
  it("waits are never below what was asked, never a tight loop, and never above a minute", () =>
    check((all) => {
      for (const { fact, orders } of walk(all)) {
        for (const { jitterMs, waitMs } of begins(orders)) {
          expect(jitterMs).toBeGreaterThanOrEqual(500)
          expect(waitMs + jitterMs).toBeLessThanOrEqual(60_000)
          if (fact.tag === "Failed") expect(waitMs).toBe(Math.min(fact.waitMs, 30_000))
        }
      }
    }))
  it("nothing but a newer process is an end: from wherever it stands, a registration and a pull that succeed make it ready", () =>
    check((all) => {
      for (const { after } of walk(all))
        expect(enrolled(after)).toMatchObject({ step: "member", phase: "ready", failures: 0 })
    }))
  it("the fourth loss of its data within ten minutes is logged as an error, and the memory of losses is bounded", () =>
    check((all) => {
      const losses: Array<number> = []
      for (const { after, before, now, orders } of walk(all)) {
        expect(after.losses.length).toBeLessThanOrEqual(100)
        if (before.step !== "member" || after.step === "member") continue
        losses.push(now)
        const lately = losses.filter((at) => now - at < 600_000).length
        expect(orders.some((order) => order.tag === "Log" && order.level === "error")).toBe(lately > 3)
      }
    }))
  it("D19 404 and 409 make a member start over, and an attempt that pulls begin again as a failure; while it registers they say nothing", () => {
    for (const given of ["unknown", "conflict"] as const) {
      const says = (state: Enrolment.Enrolment) =>
        Enrolment.decide(state, 0, { tag: "Answered", attempt: state.attempt, answer: given, message: "m" })
      expect(says(Enrolment.initial)).toEqual([Enrolment.initial, []])
      expect(says(tell(Enrolment.initial, { tag: "Registered", attempt: 1, registration: 1 }))[0]).toMatchObject({
        step: "registering",
        attempt: 2,
        failures: 1,
        losses: []
      })
      expect(says(enrolled())[0]).toMatchObject({
        step: "registering",
        attempt: 2,
        failures: 0,
        phase: "bootstrapping",
        losses: [0]
      })
    }
  })
  it("a process that is fenced is told to stop once, and heeds nothing any more", () => {
    const [state, orders] = Enrolment.decide(enrolled(), 0, {
      tag: "Answered",
      attempt: 1,
      answer: "fenced",
      message: "m"
    })
    expect([state.step, orders]).toEqual(["fenced", [{ tag: "Stop", message: expect.stringContaining("SSP_ID") }]])
    for (const fact of [
      { tag: "Lost", reason: "r" },
      { tag: "Fenced", message: "m" },
      { tag: "Failed", attempt: 1, counts: true, waitMs: 0, message: "m" }
    ] as const)
      expect(Enrolment.decide(state, 0, fact)).toEqual([state, []])
  })
  it("a call that names a newer registration makes a member start over; an older one, or none, does not", () => {
    const member = enrolled(Enrolment.initial, 5)
    expect(tell(member, { tag: "Named", registration: 6 })).toMatchObject({ step: "registering" })
    for (const registration of [4, 5]) expect(tell(member, { tag: "Named", registration })).toBe(member)
    expect([undefined, 4, 5, 6].map((named) => Enrolment.isForRegistration(member, named))).toEqual([
      true,
      false,
      true,
      false
    ])
    expect(Enrolment.isForRegistration(enrolled(), 6)).toBe(true)
  })
  it("D18 backoff doubles from 0.5 s to 30 s", () =>
    expect([0, 1, 2, 5, 6, 100].map((failures) => ceilingMs(Enrolment.backoff, failures))).toEqual([
      500, 1000, 2000, 16_000, 30_000, 30_000
    ]))
  it("D21 silence is what the scheduler says, else three periods", () =>
    expect([Enrolment.silenceMs(5000, undefined), Enrolment.silenceMs(5000, 9000)]).toEqual([15_000, 9000]))
})
