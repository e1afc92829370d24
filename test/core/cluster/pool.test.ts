/**
 * What goes wrong in clusters like this, each as a story the pool must tell right: delivery, bootstrap, fences,
 * restarts.
 *
 * The simulation finds what nobody thought of; these say what somebody did. Views are in views.test.ts.
 */
import { describe, expect, it } from "vitest"
import type { Action } from "../../../src/core/cluster/messages.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"
import { Drive } from "./drive.ts"

const persisted = (actions: ReadonlyArray<Action>): Pool.Saved => {
  const members = new Map<string, Pool.Saved["members"][number]>()
  const views = new Map<string, Pool.Saved["views"][number]>()
  for (const action of actions) {
    if (action.tag === "PersistMember") members.set(action.row.ssp, action.row)
    if (action.tag === "ForgetMember") members.delete(action.ssp)
    if (action.tag === "PersistView") views.set(action.row.view, action.row)
    if (action.tag === "ForgetView") views.delete(action.view)
  }
  return { members: [...members.values()], views: [...views.values()], strays: [], jobs: [] }
}

describe("delivery", () => {
  it("D26 replay and live are one queue: events that arrive while it replays follow, none twice, none older after newer", () => {
    const pool = new Drive({ maxBatch: 3 }).register("a").append(105).polled("a")
    const sent: Array<number> = []
    for (let head = 106; pool.found("Deliver").length > 0; head++) {
      const [range] = pool.found("Deliver")
      for (let seq = range!.from; seq <= range!.to; seq++) sent.push(seq)
      if (head < 110) pool.append(head)
      pool.delivered("a")
    }
    expect(sent).toEqual([101, 102, 103, 104, 105, 106, 107, 108, 109])
    expect(pool.member("a").state).toBe("Ready")
  })
  it("D26 is Ready when what was in the log at the poll is applied, not before and not never", () => {
    const pool = new Drive({ maxBatch: 2 }).register("a").append(104).polled("a").append(110).delivered("a")
    expect(pool.member("a").state).toBe("Replaying")
    expect(pool.delivered("a").member("a").state).toBe("Ready")
  })
  it("D26 a failed delivery keeps its place and is sent again, in order", () => {
    const pool = new Drive().ready("a").append(101).delivered("a", { kind: "unavailable" }).append(102)
    expect(pool.found("Deliver")).toEqual([])
    expect(pool.at(10_000).found("Deliver")).toMatchObject([{ from: 101, to: 102 }])
  })
  it("D26 one dead SSP delays neither the others nor, after its first time-out, the answer", () => {
    const pool = new Drive().ready("a", "b").append(101)
    expect(pool.found("Deliver")).toHaveLength(2)
    pool.delivered("b")
    expect([State.awaited(pool.state, 101), State.appliedBy(pool.state, 101)]).toEqual([true, 1])
    pool.do({ tag: "WaitedEnough", seq: 101 }).append(102)
    expect(pool.found("Deliver")).toMatchObject([{ ssp: "b", from: 102 }])
    pool.delivered("b")
    expect(State.awaited(pool.state, 102)).toBe(false)
    pool.delivered("a").delivered("a").append(103)
    expect(State.awaited(pool.state, 103)).toBe(true)
  })
  it("D26 D30 beyond max_buffer_per_ssp nothing more is sent, every heartbeat gets 409 until it registers again", () => {
    const pool = new Drive({ maxBuffer: 5 }).ready("a").append(105)
    expect(pool.member("a").state).toBe("Ready")
    expect(pool.append(106).member("a").state).toBe("Overflowed")
    expect([pool.beat("a").reply?.kind, pool.beat("a").reply?.kind]).toEqual(["conflict", "conflict"])
    expect(pool.append(107).found("Deliver")).toEqual([])
    expect(pool.register("a").reply).toMatchObject({ kind: "registered", snapshotSeq: 107 })
    expect(pool.beat("a").reply?.kind).toBe("ok")
  })
  it("D26 an answer to a delivery of an older registration changes nothing", () => {
    const pool = new Drive().ready("a").append(101)
    const { registration } = pool.member("a")
    pool.register("a")
    const before = pool.state
    expect(pool.do({ tag: "Delivered", ssp: "a", registration, answer: { kind: "applied" }, jitter: 0 }).state).toEqual(
      before
    )
  })
  it("D26 the log is kept for snapshots and saved positions, and a checkpoint waits for a freeze", () => {
    const pool = new Drive().ready("a").append(110).delivered("a")
    expect(State.oldestKept(pool.state)).toBe(101)
    expect(State.oldestKept(pool.at(1).state)).toBe(111)
    expect(pool.do({ tag: "CheckpointDue" }).found("Checkpoint")).toMatchObject([{ keepFrom: 111 }])
    expect(pool.do({ tag: "CheckpointDue" }).tags).toEqual([])
    expect(pool.do({ tag: "Checkpointed" }).register("b").append(120).do({ tag: "CheckpointDue" }).tags).toEqual([])
    expect(State.oldestKept(pool.state)).toBe(111)
  })
})

describe("bootstrap", () => {
  it("D27 two that register share one snapshot; it thaws when both are done", () => {
    const pool = new Drive().register("a")
    expect(pool.tags).toEqual(["Freeze", "Reply"])
    expect(pool.append(105).register("b").tags).toEqual(["Reply"])
    expect([pool.reply, pool.state.phase]).toMatchObject([{ snapshotSeq: 100 }, "Frozen"])
    expect(pool.polled("a").found("Thaw")).toEqual([])
    expect(pool.polled("b").found("Thaw")).toHaveLength(1)
    expect(pool.state.phase).toBe("Ready")
  })
  it("D29 D27 a bootstrap that dies or hangs does not hold the snapshot: it is removed, its heartbeat gets 404", () => {
    const pool = new Drive().register("a")
    for (let now = 5000; now <= 120_000; now += 5000) {
      pool.at(now).beat("a")
      expect(pool.reply?.kind).toBe("ok")
    }
    expect(pool.at(120_001).tags).toContain("Thaw")
    expect(pool.beat("a").reply?.kind).toBe("unknownSsp")
  })
  it("D27 an old snapshot is not shared: a late SSP is told when to come again", () => {
    const pool = new Drive({ heartbeatTimeoutMs: 1e9 }).register("a").at(60_001).register("b")
    expect(pool.reply).toMatchObject({ kind: "overloaded", retryAfterMs: 59_999 })
    expect(pool.polled("a").append(200).register("b").reply).toMatchObject({ kind: "registered", snapshotSeq: 200 })
  })
  it("a long pull whose polls are answered is not taken for dead, a silent one is", () => {
    const pool = new Drive().register("a").at(10_000).polled("a", "bootstrapping")
    expect(pool.at(24_000).member("a").state).toBe("Bootstrapping")
    expect(State.member(pool.at(25_001).state, "a")).toBeUndefined()
  })
  it("D29 time in which the scheduler was suspended counts as no SSP's silence; a silent SSP is found all the same, by ticks", () => {
    const pool = new Drive({ maxSilenceMs: 400 }).ready("a", "b").at(1000)
    expect(pool.at(61_000).member("a").state).toBe("Ready")
    for (let now = 61_200; now <= 74_600; now += 200) expect(pool.at(now).beat("b").member("a").state).toBe("Ready")
    expect(State.member(pool.at(74_800).state, "a")).toBeUndefined()
    expect(pool.member("b").state).toBe("Ready")
    const pulling = new Drive({ maxSilenceMs: 400, heartbeatTimeoutMs: 1e9 }).register("a").at(0).at(200_000)
    expect(pulling.member("a").state).toBe("Bootstrapping")
  })
  it("D18 an SSP that reports failed is removed", () => {
    expect(State.member(new Drive().register("a").polled("a", "failed").state, "a")).toBeUndefined()
  })
  it("D26 registering again while the earlier poll runs: only the newer registration's poll counts", () => {
    const pool = new Drive().register("a").at(3000)
    const [poll] = pool.found("Poll")
    expect(pool.at(6000).found("Poll")).toEqual([])
    pool.register("a")
    expect(pool.polled("a", "ready", poll!.registration).member("a").state).toBe("Bootstrapping")
    expect(pool.polled("a").member("a").state).toBe("Ready")
  })
  it("a diverged SSP bootstraps once, then not again before its time", () => {
    const pool = new Drive().ready("a")
    const differ = (): State.SspMember =>
      pool.do({ tag: "Compared", ssp: "a", registration: pool.member("a").registration, equal: false }).member("a")
    expect(differ().state).toBe("Overflowed")
    expect(pool.ready("a").do({ tag: "Tick" }) && differ().state).toBe("Ready")
    pool.now = 60_000
    expect(differ().state).toBe("Overflowed")
    pool.ready("a").now = 179_999
    expect(differ().state).toBe("Ready")
  })
})

describe("fence", () => {
  it("D31 two processes with one id: the newest wins, the older is told to stop, whatever it sends", () => {
    const pool = new Drive().register("a", "one").register("a", "two")
    expect(pool.beat("a", "one").reply).toEqual({ kind: "fenced", url: "http://atwo" })
    expect(pool.register("a", "one").reply?.kind).toBe("fenced")
    pool.do({ tag: "Deregister", ref: 5, from: { ssp: "a", incarnation: "one" } })
    expect(pool.beat("a", "two").reply?.kind).toBe("ok")
    expect(pool.beat("a", "three").reply?.kind).toBe("unknownSsp")
    expect(pool.register("a", "three").reply?.kind).toBe("registered")
  })
})

describe("a registration repeated on the way", () => {
  it("D31 is found by the heartbeat of an SSP that pulled for the older one", () => {
    const pool = new Drive().register("a")
    const { registration } = pool.member("a")
    pool.append(105).register("a").polled("a")
    expect(pool.beat("a", undefined, registration).reply?.kind).toBe("unknownSsp")
    expect(pool.beat("a", undefined, pool.member("a").registration).reply?.kind).toBe("ok")
  })
})

describe("restart", () => {
  it("D31 a restart alone bootstraps no SSP and moves no view: a grace of one time-out, then the log from where each stood", () => {
    const before = new Drive().ready("a", "b").view("v").called("done").append(105).delivered("a").at(1)
    const [state, actions] = Pool.restore(
      State.initial(State.defaults, 2, { first: 1, head: 107 }, true),
      50_000,
      persisted(before.all)
    )
    expect(actions.filter((action) => action.tag === "Deliver")).toMatchObject([
      { ssp: "a", from: 106, to: 107 },
      { ssp: "b", from: 101, to: 107 }
    ])
    expect([State.ownerOf(state, "v")?.ssp, State.member(state, "a")?.state]).toEqual(["a", "Replaying"])
    const after = Object.assign(new Drive(), { state })
    expect(after.at(65_000).member("a").state).toBe("Replaying")
    expect(after.delivered("a").member("a").state).toBe("Ready")
    expect(State.member(after.at(65_001).state, "b")).toBeUndefined()
    expect(after.found("CallRegister")).toEqual([])
  })
  it("D31 numbers of a later epoch are greater than all before", () => {
    const [old] = new Drive().ready("a").view("v").found("CallRegister")
    const later = Object.assign(new Drive(), { state: State.initial(State.defaults, 2, { first: 1, head: 0 }, true) })
      .ready("a")
      .view("v")
      .found("CallRegister")
    expect(later[0]!.assignment).toBeGreaterThan(old!.assignment)
  })
  it("while cloning no SSP registers", () => {
    const pool = Object.assign(new Drive(), { state: State.initial(State.defaults, 1, { first: 1, head: 0 }, false) })
    expect([pool.register("a").reply?.kind, pool.do({ tag: "Cloned" }).register("a").reply?.kind]).toEqual([
      "cloning",
      "registered"
    ])
  })
})
