/**
 * Registrations that SSPs die of: the third SSP never gets one, and those that were only beside it are not taken for
 * it.
 *
 * Time and ends of calls are the test's, so that a death is a row and not a race.
 */
import { HashMap } from "effect"
import { describe, expect, it } from "vitest"
import type { CallOutcome, QuarantineRow } from "../../../src/core/cluster/messages.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"
import { Drive } from "./drive.ts"

const lost: CallOutcome = { kind: "unreachable", lost: true }
const late: CallOutcome = { kind: "unreachable", late: true }
const bad = { surql: "SELECT bad FROM t", params: { n: 1 } }

const drive = (...ssps: ReadonlyArray<string>): Drive =>
  new Drive({ heartbeatTimeoutMs: 1e9, bootstrapTimeoutMs: 1e9, movesPerSecond: 0, probeIntervalMs: 0 }).ready(...ssps)
/** The calls of the last step end so, four seconds later. */
const later = (pool: Drive, outcome: CallOutcome, ms = 4000): Drive => {
  pool.now += ms
  return pool.called(outcome)
}
const leaves = (pool: Drive, ssp: string): Drive =>
  pool.do({ tag: "Deregister", ref: 9, from: { ssp, incarnation: undefined } })
const asked = (pool: Drive): ReadonlyArray<string> =>
  pool.all.flatMap((action) => (action.tag === "CallRegister" ? [action.ssp] : []))
const quarantined = (pool: Drive): ReadonlyArray<QuarantineRow> => [...HashMap.values(pool.state.quarantined)]

describe("D48 a registration that two SSPs died of", () => {
  it("is not carried to a third; it is refused under every id, over a restart, until it is freed", () => {
    const pool = drive("a", "b", "c").view("v", bad)
    later(pool, lost)
    expect(pool.found("CallRegister")).toHaveLength(1)
    later(pool, lost)
    expect([pool.tags.includes("CallRegister"), pool.reply]).toEqual([
      false,
      { kind: "quarantined", ends: 2, at: 8000 }
    ])
    expect(new Set(asked(pool)).size).toBe(2)
    const [row] = quarantined(pool)
    expect(pool.found("PersistQuarantine")).toEqual([{ tag: "PersistQuarantine", row }])
    expect(pool.view("other", { ...bad, clientId: "x" }).reply).toMatchObject({ kind: "quarantined" })
    expect(pool.view("third", { ...bad, params: { n: 2 } }).found("CallRegister")).toHaveLength(1)
    const [state] = Pool.restore(State.initial(State.defaults, 2, { first: 1, head: 100 }, true), 0, {
      members: [],
      views: [],
      strays: [],
      jobs: [],
      quarantined: quarantined(pool)
    })
    expect(
      Pool.decide(state, 0, {
        tag: "RegisterView",
        ref: 1,
        view: "w",
        spec: { body: bad, ttlMs: 1, lastActiveAt: 0 }
      })[1]
    ).toContainEqual({ tag: "Reply", ref: 1, reply: expect.objectContaining({ kind: "quarantined" }) })
    expect(pool.do({ tag: "FreeView", ref: 5, view: "third" }).reply).toEqual({ kind: "unknownView" })
    expect(pool.do({ tag: "FreeView", ref: 5, view: "v" }).reply).toEqual({ kind: "ok" })
    expect(pool.found("ForgetQuarantine")).toEqual([{ tag: "ForgetQuarantine", query: row!.query }])
    expect(pool.view("v", bad).found("CallRegister")).toHaveLength(1)
  })

  it("nor the move of a view; it waits for no SSP until it is freed, and is placed then", () => {
    const pool = drive("a").view("v", bad).called("done").ready("b", "c", "d")
    leaves(pool, "a")
    later(pool, lost)
    later(pool, lost)
    expect(asked(pool)).toHaveLength(3)
    expect(pool.at(60_000).found("CallRegister")).toEqual([])
    expect(pool.do({ tag: "FreeView", ref: 5, view: "v" }).found("CallRegister")).toHaveLength(1)
    expect(pool.called("done").state.quarantined).toEqual(HashMap.empty())
  })

  it("is told from those that were on their way beside it: of suspects an SSP gets one at a time", () => {
    const pool = drive("a")
    for (let i = 0; i < 4; i++) pool.view(`v${i}`, { surql: `SELECT ${i}` }).called("done")
    pool.ready("b")
    leaves(pool, "a")
    expect(pool.found("CallRegister")).toHaveLength(4)
    later(pool, lost)
    expect(HashMap.size(pool.state.deaths)).toBe(4)
    pool.all = []
    leaves(pool, "b").ready("c")
    for (let i = 1; i <= 4; i++) {
      const calls = pool.all.filter((action) => action.tag === "CallRegister")
      expect(calls).toHaveLength(i)
      pool.last = calls.slice(-1)
      later(pool, { kind: "done" })
    }
    expect([quarantined(pool), HashMap.size(pool.state.deaths)]).toEqual([[], 0])
  })

  it("died of nothing: refused, answered, or cut off as it began", () => {
    for (const [outcome, ms] of [
      [{ kind: "unreachable", refused: true }, 4000],
      [{ kind: "unreachable" }, 4000],
      [lost, 2900]
    ] as const) {
      const pool = drive("a", "b", "c").view("v", bad)
      for (let i = 0; i < 2; i++) later(pool, outcome, ms)
      expect([asked(pool).length, quarantined(pool)]).toEqual([3, []])
    }
  })

  const signs: { readonly [sign: string]: (pool: Drive, ssp: string) => unknown } = {
    heartbeat: (pool, ssp) => pool.beat(ssp),
    "answered health call": (pool, ssp) => pool.polled(ssp),
    "applied event": (pool, ssp) =>
      pool
        .append(pool.state.log.head + 1)
        .at(pool.now + 100)
        .delivered(ssp),
    goodbye: leaves
  }

  it.each(Object.keys(signs))("is no cause where the SSP gave a sign of life while it had the view: %s", (sign) => {
    for (const outcome of [lost, late]) {
      const pool = drive("a", "b", "c").view("v", bad)
      for (let i = 0; i < 2; i++) {
        const [call] = pool.found("CallRegister")
        pool.now += 5000
        signs[sign]!(pool, call!.ssp)
        pool.last = [call!]
        later(pool, outcome, 5000)
      }
      expect([asked(pool).length, quarantined(pool)]).toEqual([3, []])
    }
  })

  it("holds an SSP that answers only what it was asked before; silence of all SSPs together is none", () => {
    const held = drive("a", "b", "c").view("v", bad),
      cutOff = drive("a", "b", "c").view("v", bad)
    for (let i = 0; i < 2; i++) {
      const [call] = held.found("CallRegister")
      held.now += 900
      held.polled(call!.ssp)
      held.now += 2000
      held.polled(["c", "b"].find((ssp) => ssp !== call!.ssp)!)
      held.last = [call!]
      later(held, late, 7100)
      later(cutOff, late, 10_000)
    }
    expect([asked(held).length, quarantined(held).length, asked(cutOff).length, quarantined(cutOff).length]).toEqual([
      2, 1, 3, 0
    ])
  })

  it("is believed of an SSP that has set it aside itself; what it had before stays where it is", () => {
    const pool = drive("a", "b").view("v", { surql: "SELECT good" }).called("done").view("v", bad)
    later(pool, { kind: "quarantined", ends: 2 })
    expect([pool.reply, asked(pool).length, quarantined(pool).length]).toEqual([
      { kind: "quarantined", ends: 2, at: 4000 },
      2,
      1
    ])
    expect(State.ownerOf(pool.state, "v")).toBeDefined()
  })
})
