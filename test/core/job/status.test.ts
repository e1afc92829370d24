/**
 * The job states: every transition, both vocabularies, and the leases that decide who may claim.
 *
 * Why the whole table as text: totality is the compiler's business, meaning is not.
 */
import { describe, expect, it } from "vitest"
import { rng } from "../../../kit/data/random.ts"
import * as Lease from "../../../src/core/job/lease.ts"
import * as Status from "../../../src/core/job/status.ts"

const events: ReadonlyArray<Status.JobEvent> = [
  "Claimed",
  "Succeeded",
  "AttemptFailed",
  "GaveUp",
  "Released",
  "Retried",
  "Cancelled"
]

describe("job status", () => {
  it("every transition is what it was decided to be", () => {
    const rows = Status.statuses.map(
      (status) => `${status}: ${events.map((event) => `${event} ${Status.next(status, event) ?? "-"}`).join(", ")}`
    )
    expect(rows).toEqual([
      "pending: Claimed processing, Succeeded -, AttemptFailed -, GaveUp -, Released pending, Retried -, Cancelled failed",
      "processing: Claimed processing, Succeeded success, AttemptFailed processing, GaveUp failed, Released pending, Retried -, Cancelled failed",
      "success: Claimed -, Succeeded -, AttemptFailed -, GaveUp -, Released -, Retried -, Cancelled -",
      "failed: Claimed -, Succeeded -, AttemptFailed -, GaveUp -, Released -, Retried pending, Cancelled -"
    ])
  })
  it("both vocabularies name the same states, one for one", () => {
    expect(
      Status.statuses.map((status) => [status, Status.asResult(status), Status.ofResult(Status.asResult(status))])
    ).toEqual([
      ["pending", "pending", "pending"],
      ["processing", "running", "processing"],
      ["success", "completed", "success"],
      ["failed", "failed", "failed"]
    ])
  })
  it("a job that is over is left only by an operator, and only when it failed", () => {
    for (const status of Status.statuses) {
      const leaving = events.filter((event) => Status.next(status, event) !== undefined)
      if (Status.isOver(status)) expect(leaving).toEqual(status === "failed" ? ["Retried"] : [])
      else expect(leaving).toContain("Claimed")
    }
  })
  it("no walk through the table reaches success without a claim since the last time it was pending", () => {
    const random = rng(7)
    let reached = 0
    for (let walk = 0; walk < 500; walk++) {
      let status: Status.JobStatus = "pending"
      let claimed = false
      for (let i = 0; i < 20; i++) {
        const event = random.pick(events)
        const next = Status.next(status, event)
        if (next === undefined) continue
        if (next === "success") {
          expect(claimed).toBe(true)
          reached++
        }
        claimed = event === "Claimed" ? true : next === "pending" ? false : claimed
        status = next
      }
    }
    expect(reached).toBeGreaterThan(100)
  })
  it("only the four words are a status", () => {
    expect(["pending", "PENDING", "completed", "constructor", "", 1, null, undefined].map(Status.isStatus)).toEqual([
      true,
      false,
      false,
      false,
      false,
      false,
      false,
      false
    ])
  })
})

describe("D35 leases", () => {
  const me: Lease.Holder = { holder: "a", incarnation: "1" }
  const lease = (untilMs: number, holder = "b", incarnation = "9"): Lease.Lease => ({ holder, incarnation, untilMs })
  it("D35 a lease outlives the longest call by ten seconds", () => expect(Lease.leaseMs(30_000)).toBe(40_000))
  it("D35 a live lease of another is left alone, to the millisecond; an expired lease is free", () => {
    expect([99, 100, 101].map((now) => Lease.claim("processing", lease(100), me, now))).toEqual([
      "leave",
      "claim",
      "claim"
    ])
    expect([99, 100].map((now) => Lease.claim("pending", lease(100), me, now))).toEqual(["leave", "claim"])
  })
  it("D35 a restarted holder waits for its own old lease; the same incarnation takes it again", () => {
    expect([
      Lease.claim("processing", lease(100, "a", "0"), me, 50),
      Lease.claim("processing", lease(100, "a", "1"), me, 50)
    ]).toEqual(["leave", "claim"])
  })
  it("D39 pending and processing without a lease are free, a job that is over never", () => {
    expect(Status.statuses.map((status) => Lease.claim(status, undefined, me, 0))).toEqual([
      "claim",
      "claim",
      "over",
      "over"
    ])
    expect(Status.statuses.map((status) => Lease.claim(status, lease(100), me, 0))).toEqual([
      "leave",
      "leave",
      "over",
      "over"
    ])
  })
  it("D35 renewal is due when half of the time is gone", () => {
    expect([49_999, 50_000, 50_001].map((now) => Lease.isRenewalDue(90_000, 80_000, now))).toEqual([false, true, true])
  })
})
