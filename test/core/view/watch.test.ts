/**
 * What a watchdog concludes from looks: slow evaluations, turns that are too long, and what is neither.
 *
 * Looks are given as data, so that no clock decides: what a suspended machine or a busy one looks like is a row here.
 */
import { describe, expect, it } from "vitest"
import { type Finding, type Look, noSlot, Watch } from "../../../src/core/view/watch.ts"

const look = (more: Partial<Look>): Look => ({ beat: 1, evaluation: 1, slot: 7, wentByMs: 50, cpuMs: 50, ...more })

/** What is found while one look follows the other. */
const found = (looks: ReadonlyArray<Look>, bounds = { slowMs: 250, maxTurnMs: 1000 }): ReadonlyArray<Finding> => {
  const watch = new Watch(bounds)
  return looks.flatMap((each) => watch.look(each))
}

const times = (count: number, make: (i: number) => Look): ReadonlyArray<Look> =>
  Array.from({ length: count }, (_, i) => make(i))

describe("D48 a watchdog", () => {
  it("finds one evaluation that computes for longer than the bound, once, and says when it has ended", () => {
    expect(found([...times(10, () => look({})), look({ evaluation: 2 })])).toEqual([
      { kind: "slow", slot: 7, computedMs: 300 },
      { kind: "ended" }
    ])
    expect(found([...times(10, () => look({})), look({ slot: noSlot })])).toContainEqual({ kind: "ended" })
  })

  it("takes evaluations that follow each other for what they are, and a slot that was not cleared for none in the next turn", () => {
    expect(found(times(15, (i) => look({ evaluation: i })))).toEqual([])
    expect(found(times(100, (i) => look({ beat: i })))).toEqual([])
    expect(found(times(15, () => look({ slot: noSlot })))).toEqual([])
  })

  it("finds a turn that computes for longer than the bound, whatever it evaluates, and names what it evaluates now", () => {
    expect(found(times(22, (i) => look({ evaluation: i, slot: i })))).toEqual([
      { kind: "tooLong", slot: 21, computedMs: 1050 }
    ])
    expect(found(times(22, () => look({ slot: noSlot })))).toEqual([
      { kind: "tooLong", slot: noSlot, computedMs: 1050 }
    ])
  })

  it("counts no time in which the process did not compute: suspended, stopped, in a debugger, or without the CPU", () => {
    expect(found([look({}), look({ wentByMs: 3_600_000, cpuMs: 2 }), look({})])).toEqual([])
    expect(found(times(1000, () => look({ cpuMs: 0.1 })))).toEqual([])
    // A tenth of a CPU: ten times as long until the same is found.
    expect(found(times(50, () => look({ cpuMs: 5 })))).toEqual([])
    expect(found(times(60, () => look({ cpuMs: 5 })))).toEqual([{ kind: "slow", slot: 7, computedMs: 255 }])
  })

  it("counts several threads that compute at once as one", () => {
    expect(found(times(6, () => look({ cpuMs: 200 })))).toEqual([])
  })

  it("finds nothing where its bounds are 0", () => {
    expect(
      found(
        times(1000, () => look({})),
        { slowMs: 0, maxTurnMs: 0 }
      )
    ).toEqual([])
  })
})
