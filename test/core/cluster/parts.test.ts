/**
 * The parts of the pool each on its own: delivery queues, freezes, balance, waiting keys.
 *
 * By hand and by random histories against the plainest model there is.
 */
import { HashSet } from "effect"
import { describe, expect, it } from "vitest"
import { seeded } from "../../../kit/data/random.ts"
import * as Balance from "../../../src/core/cluster/balance.ts"
import * as DeliveryQueue from "../../../src/core/cluster/deliveryQueue.ts"
import * as Freeze from "../../../src/core/cluster/freeze.ts"
import { defaults } from "../../../src/core/cluster/state.ts"
import * as Waiting from "../../../src/core/cluster/waiting.ts"

const path = "test/core/cluster/parts.test.ts"
const limits = { ...defaults, maxBuffer: 10, maxConflicts: 2 }
const log = { first: 1, head: 9 }
const flying = (acked: number): DeliveryQueue.DeliveryQueue =>
  DeliveryQueue.withFlight(DeliveryQueue.after(acked), { from: acked + 1, to: 9 })
const answer = (acked: number, given: DeliveryQueue.Answer, now = 100) =>
  DeliveryQueue.answered(flying(acked), given, log, now, 0.5, limits, 0)

describe("delivery queue", () => {
  it("D26 sends the events after the acknowledged position, in order, one delivery at a time", () => {
    expect(DeliveryQueue.due(DeliveryQueue.after(4), log, 0, 3)).toEqual({ from: 5, to: 7 })
    expect(DeliveryQueue.due(flying(4), log, 0, 3)).toBeUndefined()
    expect(DeliveryQueue.due(DeliveryQueue.after(9), log, 0, 3)).toBeUndefined()
  })
  it("D26 503, 5xx, time-out and transport are retried in order after a growing, capped delay", () => {
    const first = answer(4, { kind: "unavailable" })
    if (first.kind !== "retry") return expect.fail(first.kind)
    expect(first.queue).toMatchObject({ acked: 4, failures: 1, late: true, flight: undefined })
    expect(DeliveryQueue.due(first.queue, log, 100, 3)).toBeUndefined()
    expect(DeliveryQueue.due(first.queue, log, first.queue.retryAt, 3)).toEqual({ from: 5, to: 7 })
    expect(Array.from({ length: 12 }, (_, n) => DeliveryQueue.backoffMs(n, 1, limits)).at(-1)).toBe(limits.retryMaxMs)
    for (const jitter of [0, 0.5, 0.999]) expect(DeliveryQueue.backoffMs(3, jitter, limits)).toBeGreaterThanOrEqual(400)
  })
  it("D26 409 replays from `expected`, backwards or forwards, at once the first time", () => {
    const back = answer(4, { kind: "gap", expected: 3 })
    expect(back).toMatchObject({ kind: "retry", queue: { acked: 2, saved: 2, retryAt: 100, conflicts: 1 } })
    expect(answer(4, { kind: "gap", expected: 8 })).toMatchObject({ kind: "progress", queue: { acked: 7 } })
  })
  it("D26 409 again and again ends in a bootstrap, not in a loop", () => {
    let queue = DeliveryQueue.after(4)
    const waits: Array<number> = []
    for (;;) {
      const outcome = DeliveryQueue.answered(
        DeliveryQueue.withFlight(queue, { from: queue.acked + 1, to: 9 }),
        { kind: "gap", expected: 5 },
        log,
        0,
        0,
        limits,
        0
      )
      if (outcome.kind === "unable") break
      waits.push(outcome.queue.retryAt)
      queue = outcome.queue
    }
    expect(waits).toHaveLength(limits.maxConflicts)
    expect(waits[1]).toBeGreaterThan(0)
  })
  it("D26 what the log no longer holds, or never held, cannot be replayed", () => {
    const cut = { first: 6, head: 9 }
    expect(DeliveryQueue.answered(flying(6), { kind: "gap", expected: 3 }, cut, 0, 0, limits, 0)).toMatchObject({
      kind: "unable",
      event: "BufferExceeded"
    })
    expect(answer(4, { kind: "gap", expected: 11 })).toMatchObject({ kind: "unable", event: "Rejected" })
    expect(answer(4, { kind: "gap", expected: 10 })).toMatchObject({ kind: "progress", queue: { acked: 9 } })
    expect([5, 4].map((acked) => DeliveryQueue.exceeded(DeliveryQueue.after(acked), cut, limits, 0))).toEqual([
      undefined,
      "the log begins at 6, the SSP stands at 4"
    ])
  })
  it("D26 other 4xx and a stale epoch end in a bootstrap; 401 is retried slowly", () => {
    expect(answer(4, { kind: "rejected", status: 413 })).toMatchObject({ kind: "unable", event: "Rejected" })
    expect(answer(4, { kind: "stale" })).toMatchObject({ kind: "unable", event: "Rejected" })
    expect(answer(4, { kind: "unauthorized" })).toMatchObject({
      kind: "retry",
      unauthorized: true,
      queue: { retryAt: 100 + limits.unauthorizedMs }
    })
  })
  it("D26 overflow is counted, not inferred: exactly at the limit nothing happens", () => {
    expect([
      DeliveryQueue.exceeded(DeliveryQueue.after(0), { first: 1, head: 10 }, limits, 0),
      DeliveryQueue.exceeded(DeliveryQueue.after(0), { first: 1, head: 11 }, limits, 0)
    ]).toEqual([undefined, "11 events wait, max_buffer_per_ssp is 10"])
  })
  it("D55 excused events do not count, later events do, and events that the log has dropped are never excused", () => {
    const found = (head: number, first: number) =>
      DeliveryQueue.exceeded(DeliveryQueue.after(2), { first, head }, limits, 20)
    expect([found(30, 3), found(31, 3), found(5, 4)]).toEqual([
      undefined,
      "11 events wait, max_buffer_per_ssp is 10",
      "the log begins at 4, the SSP stands at 2"
    ])
  })
  it("D26 a late SSP is waited for again when it has caught up", () => {
    const late = { ...flying(4), late: true }
    expect(DeliveryQueue.answered(late, { kind: "applied" }, log, 0, 0, limits, 0)).toMatchObject({
      queue: { late: false }
    })
    expect(DeliveryQueue.answered(late, { kind: "applied" }, { first: 1, head: 12 }, 0, 0, limits, 0)).toMatchObject({
      queue: { late: true }
    })
  })
})

describe("freeze", () => {
  it("D27 is shared while it is young, then waits for its owners, then is renewed", () => {
    const first = Freeze.share(undefined, "a", 0, 100, 7, 1)
    if (first.kind !== "new") return expect.fail(first.kind)
    const second = Freeze.share(first.freeze, "b", 50, 100, 9, 2)
    if (second.kind !== "shared") return expect.fail(second.kind)
    expect(second.freeze).toMatchObject({ id: 1, seq: 7 })
    expect(Freeze.share(second.freeze, "c", 51, 100, 9, 3)).toEqual({ kind: "wait", retryAfterMs: 49 })
    const left = Freeze.release(second.freeze, "a")
    expect(left?.owners).toEqual(new Map([["b", 150]]))
    expect(Freeze.release(left, "x")).toBe(left)
    expect(Freeze.release(left, "b")).toBeUndefined()
    expect(Freeze.share(undefined, "c", 60, 100, 9, 3)).toMatchObject({ kind: "new", freeze: { id: 3, seq: 9 } })
  })
})

const ssp = (id: string, views: number, cpu?: number, memory?: number): Balance.Candidate => ({
  id,
  views,
  cpu,
  memory
})

describe("balance", () => {
  it("D32 least_queries: fewest views, then id", () => {
    expect(Balance.strategies.least_queries.choose([ssp("c", 2), ssp("b", 1), ssp("a", 1)], undefined)).toBe("a")
    expect(Balance.strategies.least_queries.choose([], undefined)).toBeUndefined()
  })
  it("D32 round_robin goes on after the last SSP when others come or go", () => {
    const all = [ssp("c", 0), ssp("a", 9), ssp("b", 5)]
    expect(
      [undefined, "a", "b", "c", "bb", "z"].map((last) => Balance.strategies.round_robin.choose(all, last))
    ).toEqual(["a", "b", "c", "a", "c", "a"])
  })
  it("D32 least_load: share of CPU plus share of the largest memory; ties by views, then id", () => {
    expect(
      Balance.strategies.least_load.choose(
        [ssp("a", 0, 80, 100), ssp("b", 0, 20, 150), ssp("c", 0, 10, 200)],
        undefined
      )
    ).toBe("b")
    expect(
      Balance.strategies.least_load.choose(
        [ssp("b", 1, 50, 100), ssp("a", 2, 50, 100), ssp("c", 1, 50, 100)],
        undefined
      )
    ).toBe("b")
    expect(Balance.strategies.least_load.choose([ssp("b", 3), ssp("a", 3)], undefined)).toBe("a")
  })
  it("D32 least_load: an SSP that reports neither counts as average", () => {
    const loads = Balance.loads([ssp("a", 0, 100, 200), ssp("b", 0, 0, 100), ssp("c", 0)])
    expect([...loads]).toEqual([
      ["a", 2],
      ["b", 0.5],
      ["c", 1.25]
    ])
  })
})

describe("waiting", () => {
  seeded("is a set of keys, whatever came in which pieces, in few pieces", path, (rng) => {
    for (let round = 0; round < 40; round++) {
      let waiting = Waiting.none
      const model = new Set<string>()
      for (let step = 0; step < 60; step++) {
        const key = (): string => `v${rng.below(400)}`
        const keys = Array.from({ length: rng.chance(0.1) ? 100 : rng.below(4) }, key).filter((one) => !model.has(one))
        for (const one of keys) model.add(one)
        waiting = Waiting.push(waiting, HashSet.fromIterable(keys))
        const gone = key()
        model.delete(gone)
        waiting = Waiting.remove(waiting, gone)
        expect([Waiting.size(waiting), Waiting.has(waiting, gone)]).toEqual([model.size, false])
      }
      expect(new Set(Waiting.peek(waiting, 1000))).toEqual(model)
      expect(Waiting.peek(waiting, 3)).toHaveLength(Math.min(3, model.size))
      expect(waiting.length).toBeLessThan(14)
    }
  })
})
