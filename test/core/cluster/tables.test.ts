/**
 * The tables of the cluster as a reader sees them, every cell, and one day of a cluster as commands and actions: text
 * beside this file.
 *
 * Because a changed cell should be read before it is believed: `SVC_ACCEPT=1` writes the text anew, the commit shows
 * it.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import * as Machine from "../../../src/core/cluster/machine.ts"
import * as Member from "../../../src/core/cluster/member.ts"
import * as SchedulerPhase from "../../../src/core/cluster/schedulerPhase.ts"
import { Drive } from "./drive.ts"

const file = new URL("./tables.txt", import.meta.url)

const text = `SSP, as the scheduler sees it\n\n${Machine.print(Member.table)}\n\nScheduler\n\n${Machine.print(SchedulerPhase.table)}\n`

const accepted = (url: URL, now: string): string => {
  if (process.env["SVC_ACCEPT"] === "1") writeFileSync(url, now)
  return readFileSync(url, "utf8")
}

/** A step of the day: what is said, then `----`, then what is owed, in order. */
const told = (pool: Drive, title: string, step: (pool: Drive) => void): string => {
  pool.all = []
  step(pool)
  const lines = pool.all.map((action) => {
    const { tag, ...rest } = action
    return action.tag === "Log" ? `  ${action.level}: ${action.message}` : `  ${tag} ${JSON.stringify(rest)}`
  })
  return `${title}\n----\n${lines.join("\n")}\n`
}

const day = (): string => {
  const pool = new Drive({ maxBuffer: 3 })
  const steps: ReadonlyArray<readonly [string, (pool: Drive) => void]> = [
    ["a registers", (p) => p.register("a", "one")],
    ["an event arrives while it pulls", (p) => p.append(101)],
    ["it is polled ready", (p) => p.polled("a")],
    ["it applies what it missed", (p) => p.delivered("a")],
    ["a view is registered", (p) => p.view("v")],
    ["a takes it", (p) => p.called("done")],
    ["b registers and is ready", (p) => p.register("b").polled("b")],
    ["a second process takes the id a", (p) => p.register("a", "two")],
    ["b takes the view", (p) => p.called("done")],
    ["the first one heartbeats", (p) => p.beat("a", "one")],
    ["events come, b answers 503", (p) => p.append(102).delivered("b", { kind: "unavailable" })],
    ["more come than are kept", (p) => p.append(106)],
    ["b heartbeats", (p) => p.beat("b")],
    ["nobody is heard of for long", (p) => p.at(15_001)]
  ]
  return steps.map(([title, step]) => told(pool, title, step)).join("\n")
}

const walk = (...events: ReadonlyArray<Member.MemberEvent>): Member.Member =>
  events.reduce<Member.Member>((state, event) => Member.next(state, event).state, "Absent")

describe("lifecycle", () => {
  it("D30 is what the text beside this test says, cell by cell", () => {
    expect(text).toBe(accepted(file, text))
  })
  it("D26 D31 a day of a cluster, as commands and the actions of each, in order", () => {
    const now = day()
    expect(now).toBe(accepted(new URL("./day.txt", import.meta.url), now))
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
    for (const [state, row] of Object.entries(Member.table))
      for (const [event, cell] of Object.entries(row)) {
        const leaves = state === "Bootstrapping" && cell.kind === "to"
        expect((cell.emit as ReadonlyArray<string>).includes("release"), `${state} ${event}`).toBe(leaves)
      }
  })
  it("D31 hands views on exactly when a replaying or ready SSP stops being one", () => {
    for (const [state, row] of Object.entries(Member.table))
      for (const [event, cell] of Object.entries(row)) {
        const before = Member.receives(state as Member.Member)
        const after = cell.kind === "to" ? Member.receives(cell.state) : before
        expect((cell.emit as ReadonlyArray<string>).includes("hand"), `${state} ${event}`).toBe(before && !after)
      }
  })
  it("D30 a heartbeat is answered 404, 200 or 409 by the state alone", () => {
    expect(Object.values(Member.table).map((row) => row.Heartbeat.emit)).toEqual([
      ["unknown"],
      ["ok"],
      ["ok"],
      ["ok"],
      ["ok"],
      ["conflict"]
    ])
  })
  it("staleness, overflow and goodbyes are answered in every state; an SSP that is there can always start over", () => {
    for (const state of ["Bootstrapping", "Replaying", "Ready", "Suspect", "Overflowed"] as const) {
      expect([
        Member.next(state, "Stale").state,
        Member.next(state, "Deregistered").state,
        Member.next(state, "Registered").state
      ]).toEqual(["Absent", "Absent", "Bootstrapping"])
      if (state !== "Overflowed") expect(Member.next(state, "BufferExceeded").state).toBe("Overflowed")
    }
  })
  it("D30 a freeze never waits for a checkpoint, a checkpoint always for a freeze", () => {
    expect([
      SchedulerPhase.next("Updating", "Froze").state,
      SchedulerPhase.next("Frozen", "CheckpointBegan").state,
      SchedulerPhase.next("Frozen", "CheckpointEnded").state
    ]).toEqual(["Frozen", "Frozen", "Frozen"])
  })
})
