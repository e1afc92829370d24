/**
 * Terms of a log: the decisions one by one, and thousands of simulated clusters from seeds.
 *
 * The default run takes a few hundred seeds; `SVC_CAMPAIGN=1` takes 10,000.
 */
import { describe, expect, it } from "vitest"
import { campaign, type Rng, rng, rounds, seeded } from "../../../kit/data/random.ts"
import * as Term from "../../../src/core/cluster/term.ts"
import { leaseMs, type Report, type Weather, World } from "./termWorld.ts"

const rules: Term.Rules = { self: "me", leaseMs }
const frame: Term.Frame = { epoch: 4, lastSeq: 10, beat: 7, leader: "other" }

/** The term after facts at times, and the orders of the last one. */
const after = (...facts: ReadonlyArray<readonly [now: number, fact: Term.Fact]>) => {
  let term: Term.Term = Term.initial
  let orders: ReadonlyArray<Term.Order> = []
  for (const [now, fact] of facts) [term, orders] = Term.decide(rules, term, now, fact)
  return { term, orders }
}

const looks = (from: number, to: number, every: number, seen: Term.Frame = frame) =>
  Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, i) => {
    const at = from + i * every
    return [at, { tag: "Looked", sentAt: at, frame: seen }] as const
  })

const claim = [{ tag: "Claim", expected: frame }]

describe("a follower", () => {
  it("takes over at once where no one leads, and expects the row as it was read", () => {
    const free = { ...frame, leader: undefined }
    expect(after([0, { tag: "Looked", sentAt: 0, frame: free }]).orders).toEqual([{ tag: "Claim", expected: free }])
  })
  it("waits a lease from the last sign of the leader, by an append as by a beat", () => {
    expect(after(...looks(0, leaseMs - 100, 100)).orders).toEqual([])
    expect(after(...looks(0, leaseMs, 100)).orders).toEqual(claim)
    for (const sign of [{ beat: 8 }, { lastSeq: 11 }, { epoch: 5 }])
      expect(
        after(...looks(0, leaseMs - 100, 100), ...looks(leaseMs, 2 * leaseMs - 100, 100, { ...frame, ...sign })).orders
      ).toEqual([])
  })
  it("that stood still, or was cut off, has not seen the leader silent meanwhile", () => {
    expect(after(...looks(0, 100, 100), ...looks(90_000, 90_000, 1)).orders).toEqual([])
  })
  it("sends one take-over at a time; one whose answer is lost is found in the row", () => {
    const due = looks(0, leaseMs, 100)
    expect(after(...due, ...looks(leaseMs + 100, leaseMs + 100, 1)).orders).toEqual([])
    const mine = { epoch: 5, lastSeq: 10, beat: 8, leader: "me" }
    const { orders, term } = after(...due, [4000, { tag: "ClaimUnknown" }], ...looks(4100, 4100, 1, mine))
    expect([term.role, orders]).toEqual(["leader", [{ tag: "Lead", frame: mine }]])
    expect(after(...due, [4000, { tag: "ClaimUnknown" }], ...looks(4100, 4100, 1)).orders).toEqual(claim)
  })
  it("whose take-over is refused waits another lease", () => {
    const refused = [leaseMs, { tag: "Claimed", sentAt: leaseMs, frame: undefined }] as const
    expect(after(...looks(0, leaseMs, 100), refused, ...looks(leaseMs + 100, 2 * leaseMs - 100, 100)).orders).toEqual(
      []
    )
  })
})

describe("a leader", () => {
  const won = [0, { tag: "Claimed", sentAt: 0, frame: { ...frame, epoch: 5, leader: "me" } }] as const
  const leading = (...facts: ReadonlyArray<readonly [number, Term.Fact]>) => after(won, ...facts)

  it("beats when it has written nothing for a third of the lease", () => {
    expect(leading([999, { tag: "Tick" }]).orders).toEqual([])
    expect(leading([1000, { tag: "Tick" }]).orders).toEqual([{ tag: "Beat" }])
    expect(leading([900, { tag: "Accepted", sentAt: 890 }], [1000, { tag: "Tick" }]).orders).toEqual([])
    expect(leading([1000, { tag: "Tick" }], [1100, { tag: "Tick" }]).orders).toEqual([])
  })
  it("without an accepted write answers nothing after 0.8 of the lease, and ends after all of it", () => {
    const { term } = leading([0, { tag: "Tick" }])
    expect([2399, 2400].map((now) => Term.mayAnswer(rules, term, now))).toEqual([true, false])
    expect(leading([2999, { tag: "Tick" }]).term.role).toBe("leader")
    const { orders, term: over } = leading([3000, { tag: "Tick" }])
    expect([over.role, orders[0]?.tag, Term.mayAnswer(rules, over, 0)]).toEqual(["fenced", "End", false])
  })
  it("counts from when a write was begun, not from its answer", () => {
    expect(leading([2900, { tag: "Accepted", sentAt: 100 }], [3100, { tag: "Tick" }]).term.role).toBe("fenced")
  })
  it("ends when it is superseded, hands over when it is told to stop, and comes back from neither", () => {
    const { orders, term } = leading([5, { tag: "Superseded" }])
    expect([term.role, orders[0]?.tag]).toEqual(["fenced", "End"])
    const stopped = leading([5, { tag: "Stopped" }])
    expect([stopped.term.role, stopped.orders]).toEqual(["stopped", [{ tag: "HandOver" }]])
    for (const over of [term, stopped.term])
      for (const fact of [
        { tag: "Accepted", sentAt: 9 },
        { tag: "Looked", sentAt: 9, frame }
      ] as const)
        expect(Term.decide(rules, over, 9, fact)).toEqual([over, []])
  })
  it("knows by the row what an append came to whose answer was lost", () => {
    const attempt = { epoch: 5, lastSeq: 10, count: 3 }
    const outcome = (epoch: number, lastSeq: number) => Term.outcomeOf(attempt, { epoch, lastSeq })
    expect([outcome(5, 13), outcome(5, 10), outcome(6, 13), outcome(6, 10), outcome(5, 12), outcome(5, 9)]).toEqual([
      "there",
      "absent",
      "superseded",
      "superseded",
      "damaged",
      "damaged"
    ])
  })
})

const weatherOf = (random: Rng): Weather => ({
  nodes: 2 + random.below(3),
  events: 20 + random.below(40),
  lossRate: random.pick([0, 0.02, 0.1, 0.3]),
  maxDelayMs: random.pick([5, 50, 400]),
  clocks: random.pick([
    [1, 1],
    [0.5, 2]
  ] as const),
  blowEveryMs: random.pick([1500, 4000, 12_000]),
  calmAt: 30_000
})

const total = (reports: ReadonlyArray<Report>, of: (report: Report) => number): number =>
  reports.reduce((sum, report) => sum + of(report), 0)

describe("schedulers over one log", () => {
  const seeds = rounds(campaign ? 2000 : 600)

  seeded(
    "D60 never two writers in one epoch, no acknowledged event missing, none twice, and all are served in the end",
    "test/core/cluster/term.test.ts",
    (random) => {
      const reports: Array<Report> = []
      for (let i = 0; i < seeds; i++) {
        const own = random.below(2 ** 31)
        try {
          const drawn = rng(own)
          reports.push(new World(drawn, weatherOf(drawn)).run())
        } catch (error) {
          throw new Error(`world ${own}: ${String(error)}`)
        }
      }
      // Enough has happened: take-overs, lost calls, and leaders that were ended.
      expect(total(reports, ({ takeOvers }) => takeOvers) / seeds).toBeGreaterThan(3)
      expect(total(reports, ({ lost }) => lost) / seeds).toBeGreaterThan(10)
      expect(total(reports, ({ ended }) => ended) / seeds).toBeGreaterThan(0.5)
    },
    600_000
  )

  seeded(
    "D60 in calm, with clocks that differ by a tenth, the first leader stays",
    "test/core/cluster/term.test.ts",
    (random) => {
      for (let i = 0; i < 20; i++) {
        const calm: Weather = {
          nodes: 3,
          events: i % 2 === 0 ? 3 : 100,
          lossRate: 0,
          maxDelayMs: 50,
          clocks: [0.95, 1.05],
          blowEveryMs: 0,
          calmAt: 60_000
        }
        const { ended, takeOvers } = new World(rng(random.below(2 ** 31)), calm).run()
        expect([takeOvers, ended]).toEqual([1, 0])
      }
    }
  )
})
