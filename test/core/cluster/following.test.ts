/**
 * SSPs that follow tables (D61), as the scheduler's mind sees them: sent nothing, counted by what they say, asked again
 * while records of a view's tables are on their way.
 */
import { describe, expect, it } from "vitest"
import * as State from "../../../src/core/cluster/state.ts"
import { Drive } from "./drive.ts"

/** Registered with tables, and heard of for the first time. */
const following = (pool: Drive, ssp: string, tables: ReadonlyArray<string> = ["t"]): Drive => {
  pool.do({
    tag: "Register",
    ref: 1,
    registration: { ssp, incarnation: undefined, url: `http://${ssp}`, batch: true, jobTables: undefined, tables }
  })
  return applied(pool, ssp, pool.state.log.head)
}

const applied = (pool: Drive, ssp: string, seq: number): Drive =>
  pool.do({ tag: "Applied", positions: [{ ssp, registration: pool.member(ssp).registration, seq }] })

describe("an SSP that follows tables", () => {
  it("D61 is ready by its own word, is sent nothing, and counts as far as it says", () => {
    const pool = following(new Drive(), "a")
    const { head } = pool.state.log
    expect(pool.member("a").state).toBe("Ready")
    pool.append(head + 3)
    expect(pool.found("Deliver")).toEqual([])
    expect([State.awaited(pool.state, head + 3), State.delivered(pool.state, head + 3)]).toEqual([true, 0])
    applied(pool, "a", head + 2)
    expect(State.awaited(pool.state, head + 3)).toBe(true)
    // What it cannot have yet is not believed.
    applied(pool, "a", head + 99)
    expect([pool.member("a").queue.acked, State.delivered(pool.state, head + 3)]).toEqual([head + 3, 1])
    // Word that comes late takes nothing back.
    applied(pool, "a", head + 1)
    expect(pool.member("a").queue.acked).toBe(head + 3)
  })
  it("D55 D61 is sent back when it lacks too many events, as one that is sent them", () => {
    const pool = following(new Drive(), "a")
    pool.append(pool.state.log.head + pool.state.config.maxBuffer + 1)
    expect(pool.member("a").state).toBe("Overflowed")
    pool.beat("a")
    expect(pool.reply).toEqual({ kind: "conflict" })
  })
  it("D61 says for its old registration nothing about the new one", () => {
    const pool = following(new Drive(), "a")
    const { registration } = pool.member("a")
    const { head } = pool.state.log
    following(pool.append(head + 2), "a")
    pool.append(head + 5)
    pool.do({ tag: "Applied", positions: [{ ssp: "a", registration, seq: head + 5 }] })
    expect(pool.member("a").queue.acked).toBe(head + 2)
  })
  it("D61 the tables that it follows now are kept with it", () => {
    const pool = following(new Drive(), "a")
    const { registration } = pool.member("a")
    pool.do({ tag: "Followed", ssp: "a", registration, tables: ["t", "u"] })
    expect(pool.found("PersistMember").at(-1)?.row.tables).toEqual(["t", "u"])
  })
})

describe("a view whose tables are on their way", () => {
  it("D61 stays with its SSP, which is asked again, and its client waits", () => {
    const pool = following(following(new Drive(), "a"), "b")
    pool.view("v")
    const [first] = pool.found("CallRegister")
    pool.called({ kind: "joining" })
    const [again] = pool.found("CallRegister")
    expect([again?.ssp, again?.assignment, pool.reply]).toEqual([first?.ssp, first?.assignment, undefined])
    pool.called("done")
    expect([pool.reply?.kind, pool.owner("v")]).toEqual(["assigned", first?.ssp])
  })
  it("D61 goes to another SSP once that has taken as long as a bootstrap may", () => {
    const pool = following(following(new Drive(), "a"), "b")
    pool.view("v")
    const [first] = pool.found("CallRegister")
    pool.called({ kind: "joining" })
    const later = pool.now + pool.state.config.bootstrapTimeoutMs + 1
    const call = pool.found("CallRegister")[0]!
    for (const ssp of ["a", "b"]) pool.beat(ssp)
    pool.now = later
    pool.do({
      tag: "ViewCalled",
      op: call.op,
      view: "v",
      ssp: call.ssp,
      registration: call.registration,
      outcome: { kind: "joining" }
    })
    expect(pool.found("CallRegister").map(({ ssp }) => ssp)).toEqual([first?.ssp === "a" ? "b" : "a"])
  })
})
