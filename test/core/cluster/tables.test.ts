/**
 * The tables of the cluster as a reader sees them: every cell, in text, beside this file.
 *
 * Because a changed cell should be read before it is believed: `SVC_ACCEPT=1` writes the text anew, the commit shows it.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import * as Machine from "../../../src/core/cluster/machine.ts"
import * as Member from "../../../src/core/cluster/member.ts"
import * as SchedulerPhase from "../../../src/core/cluster/schedulerPhase.ts"

const file = new URL("./tables.txt", import.meta.url)

const text = `SSP, as the scheduler sees it\n\n${Machine.print(Member.table)}\n\nScheduler\n\n${Machine.print(SchedulerPhase.table)}\n`

const walk = (...events: ReadonlyArray<Member.MemberEvent>): Member.Member => events.reduce<Member.Member>((state, event) => Member.next(state, event).state, "Absent")

describe("lifecycle", () => {
  it("D30 is what the text beside this test says, cell by cell", () => {
    if (process.env["SVC_ACCEPT"] === "1") writeFileSync(file, text)
    expect(text).toBe(readFileSync(file, "utf8"))
  })
  it("D29 D30 goes the way of the specification", () => {
    expect(walk("Registered")).toBe("Bootstrapping")
    expect(walk("Registered", "PolledReady")).toBe("Replaying")
    expect(walk("Registered", "PolledReady", "Replayed")).toBe("Ready")
    expect(walk("Registered", "BootstrapTimedOut")).toBe("Absent")
    expect(walk("Registered", "PolledFailed")).toBe("Absent")
    expect(walk("Restored", "Replayed")).toBe("Ready")
    expect(walk("Registered", "PolledReady", "Replayed", "BufferExceeded", "BootstrapTimedOut")).toBe("Absent")
  })
  it("D27 gives the share of the snapshot back on every way out of Bootstrapping, and nowhere else", () => {
    for (const [state, row] of Object.entries(Member.table)) for (const [event, cell] of Object.entries(row)) {
      const leaves = state === "Bootstrapping" && cell.kind === "to"
      expect((cell.emit as ReadonlyArray<string>).includes("release"), `${state} ${event}`).toBe(leaves)
    }
  })
  it("D31 hands views on exactly when a replaying or ready SSP stops being one", () => {
    for (const [state, row] of Object.entries(Member.table)) for (const [event, cell] of Object.entries(row)) {
      const before = Member.receives(state as Member.Member)
      const after = cell.kind === "to" ? Member.receives(cell.state) : before
      expect((cell.emit as ReadonlyArray<string>).includes("hand"), `${state} ${event}`).toBe(before && !after)
    }
  })
  it("D30 a heartbeat is answered 404, 200 or 409 by the state alone", () => {
    expect(Object.values(Member.table).map((row) => row.Heartbeat.emit)).toEqual([["unknown"], ["ok"], ["ok"], ["ok"], ["conflict"]])
  })
  it("staleness, overflow and goodbyes are answered in every state; an SSP that is there can always start over", () => {
    for (const state of ["Bootstrapping", "Replaying", "Ready", "Overflowed"] as const) {
      expect([Member.next(state, "Stale").state, Member.next(state, "Deregistered").state, Member.next(state, "Registered").state]).toEqual(["Absent", "Absent", "Bootstrapping"])
      if (state !== "Overflowed") expect(Member.next(state, "BufferExceeded").state).toBe("Overflowed")
    }
  })
  it("D30 a freeze never waits for a checkpoint, a checkpoint always for a freeze", () => {
    expect([SchedulerPhase.next("Updating", "Froze").state, SchedulerPhase.next("Frozen", "CheckpointBegan").state, SchedulerPhase.next("Frozen", "CheckpointEnded").state]).toEqual(["Frozen", "Frozen", "Frozen"])
  })
})
