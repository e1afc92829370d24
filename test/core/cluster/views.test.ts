/**
 * Views and jobs and who has them: placing, refusing, moving, expiring, and that none of it costs by the number of
 * views.
 *
 * Each story is one that systems like this one tell wrong.
 */
import { HashMap, HashSet } from "effect"
import { describe, expect, it } from "vitest"
import { strategies } from "../../../src/core/cluster/balance.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"
import * as Waiting from "../../../src/core/cluster/waiting.ts"
import { Drive } from "./drive.ts"

const spread = (pool: Drive): ReadonlyArray<number> =>
  State.ready(pool.state).map((member) => HashSet.size(member.views))

const many = (pool: Drive, count: number): Drive => {
  for (let i = 0; i < count; i++) pool.view(`v${i}`).called("done")
  return pool
}

/**
 * An SSP that fills views side by side, in equal shares of one thread, and forgets those whose caller has gone. Answers
 * the time when each view had a place, undefined when `forMs` was not enough.
 */
const fillSideBySide = (
  pool: Drive,
  views: number,
  { fillMs, forMs, timeoutMs }: { readonly fillMs: number; readonly forMs: number; readonly timeoutMs: number }
): number | undefined => {
  let filling: ReadonlyArray<{
    readonly call: Extract<Pool.Decision[1][number], { readonly tag: "CallRegister" }>
    readonly since: number
    readonly left: number
  }> = []
  const take = (): void => {
    const came = pool.found("CallRegister").map((call) => ({ call, since: pool.now, left: fillMs }))
    filling = [...filling, ...came]
    for (const { assignment: _, op, registration, ssp, view } of pool.found("CallUnregister")) {
      pool.do({ tag: "ViewCalled", op, view, ssp, registration, outcome: { kind: "done" } })
      take()
    }
  }
  take()
  for (const stepMs = 20, end = pool.now + forMs; pool.now < end; ) {
    pool.at(pool.now + stepMs)
    take()
    const share = stepMs / Math.max(1, filling.length)
    const now = filling.map((each) => ({ ...each, left: each.left - share }))
    filling = now.filter(({ left, since }) => left > 0 && pool.now - since < timeoutMs)
    for (const {
      call: { op, registration, ssp, view },
      left
    } of now.filter((each) => !filling.includes(each))) {
      pool.do({ tag: "ViewCalled", op, view, ssp, registration, outcome: { kind: left <= 0 ? "done" : "unreachable" } })
      take()
    }
    if (
      HashSet.size(pool.member("b").views) === views &&
      [...HashMap.values(pool.state.views)].every(({ op, placed }) => placed && op === undefined)
    )
      return pool.now
  }
  return undefined
}

describe("views that take long to fill", () => {
  it("D31 sixteen together take longer than a call may: fewer are given at once, and all find their place", () => {
    const pool = many(new Drive({ heartbeatTimeoutMs: 1e9, movesPerSecond: 0 }).ready("a"), 40)
      .ready("b")
      .do({ tag: "Deregister", ref: 9, from: { ssp: "a", incarnation: undefined } })
    const took = fillSideBySide(pool, 40, { fillMs: 200, timeoutMs: 1500, forMs: 60_000 })
    expect(
      took,
      `${HashSet.size(pool.member("b").views)} held, ${[...HashMap.values(pool.state.views)].filter(({ placed }) => placed).length} placed, window ${pool.member("b").window}`
    ).toBeDefined()
    // Forty fills of 200 ms and what it costs to find out how many fit.
    expect(took).toBeLessThan(30_000)
  })
})

/** Beside a database: what SSPs wrote there of a view goes with the view. */
describe("what views leave in a database", () => {
  const beside = (): Drive => new Drive({ database: true, heartbeatTimeoutMs: 1e9 })
  const goodbye = (pool: Drive, ssp: string): Drive =>
    pool.do({ tag: "Deregister", ref: 9, from: { ssp, incarnation: undefined } })
  const cleared = (pool: Drive): Drive => {
    const [call] = pool.found("ClearView")
    return pool.do({ tag: "ViewCleared", view: call!.view, op: call!.op })
  }

  it("D16 D21 a view unregistered while no SSP has it is cleared by the scheduler, and known until that is done", () => {
    const pool = goodbye(beside().ready("a").view("v").called("done"), "a").do({
      tag: "UnregisterView",
      ref: 7,
      view: "v"
    })
    expect([pool.tags, pool.reply]).toEqual([["PersistView", "ClearView", "Reply"], { kind: "ok" }])
    expect(pool.found("PersistView")).toMatchObject([{ row: { view: "v", gone: true, home: undefined } }])
    expect(cleared(pool).tags).toEqual(["ForgetView"])
    expect(State.view(pool.state, "v")).toBeUndefined()
  })
  it("D14 D21 so is a view that expires without an owner, and a view whose owner has dropped it: it may have died before the database heard", () => {
    const pool = goodbye(beside().ready("a").view("v").called("done"), "a").do({
      tag: "ActivityFound",
      view: "v",
      lastActiveAt: -1e12
    })
    expect(pool.found("ClearView")).toHaveLength(0)
    expect(pool.at(1e12).found("AskActivity")).toHaveLength(1)
    expect(pool.do({ tag: "ActivityFound", view: "v", lastActiveAt: 0 }).found("ClearView")).toHaveLength(1)
    const owned = beside().ready("a").view("v").called("done").do({ tag: "UnregisterView", ref: 7, view: "v" })
    expect(owned.tags).toEqual(["PersistStray", "PersistView", "CallUnregister", "Reply"])
    expect(owned.called("done").found("ClearView")).toHaveLength(1)
  })
  it("D21 a registration that comes while the database is cleared waits: its rows must not be taken for the old ones", () => {
    const pool = goodbye(beside().ready("a").view("v").called("done"), "a").do({
      tag: "UnregisterView",
      ref: 7,
      view: "v"
    })
    const clear = pool.last
    pool.ready("b").view("v", "new")
    expect(pool.tags).toEqual([])
    pool.last = clear
    expect(cleared(pool).found("CallRegister")).toMatchObject([{ ssp: "b", spec: { body: "new" } }])
  })
  it("D31 a restart goes on with it, and no SSP gets the view", () => {
    const pool = goodbye(beside().ready("a").view("v").called("done"), "a").do({
      tag: "UnregisterView",
      ref: 7,
      view: "v"
    })
    const rows = pool.found("PersistView").map(({ row }) => row)
    const [state, actions] = Pool.restore(
      State.initial({ ...State.defaults, database: true }, 2, { first: 1, head: 0 }, true),
      0,
      { members: [], views: rows, strays: [], jobs: [] }
    )
    expect([actions.map(({ tag }) => tag), Waiting.size(state.waitingViews)]).toEqual([["PersistView", "ClearView"], 0])
  })
  it("D21 an SSP that may have taken a view unnoticed: when it has dropped it, or is gone, the database is cleared once more", () => {
    const pool = beside().ready("a").view("v").called("unreachable")
    expect(cleared(pool).tags).toEqual(["ForgetView"])
    expect(goodbye(pool, "a").found("ClearView")).toMatchObject([{ view: "v" }])
  })
})

describe("views", () => {
  it("D31 the assignment is persisted before the SSP hears of it, and answered after it took it", () => {
    const pool = new Drive().ready("a").view("v")
    expect(pool.tags).toEqual(["PersistView", "CallRegister"])
    expect(pool.called("done").tags).toEqual(["PersistView", "Reply"])
    expect(pool.reply).toEqual({ kind: "assigned", ssp: "a", url: "http://a", assignedAt: 0 })
  })
  it("D31 registering again keeps the SSP and the assignment", () => {
    const pool = new Drive().ready("a", "b").view("v").called("done").view("w").called("done")
    const { assignment } = State.view(pool.state, "w")!
    expect(pool.view("w", "other").found("CallRegister")).toMatchObject([
      { ssp: "b", assignment, spec: { body: "other" } }
    ])
  })
  it("D31 a refused view is not assigned; a refused replacement leaves the old one", () => {
    const pool = new Drive().ready("a").view("v", "bad").called("refused")
    expect([pool.reply, State.view(pool.state, "v"), pool.tags[0]]).toEqual([
      { kind: "refused", details: "why" },
      undefined,
      "ForgetView"
    ])
    pool.view("v", "good").called("done").view("v", "bad").called("refused")
    expect(State.view(pool.state, "v")).toMatchObject({ spec: { body: "good" }, placed: true, op: undefined })
    expect(Waiting.size(pool.state.waitingViews)).toBe(0)
  })
  it("D31 an unreachable SSP is skipped, the next tried, 503 when none is left; both are told to drop it", () => {
    const pool = new Drive().ready("a", "b").view("v").called("unreachable")
    expect(pool.found("CallRegister")).toMatchObject([{ ssp: "b" }])
    expect(pool.called("unreachable").reply).toEqual({ kind: "noSsp" })
    expect(State.view(pool.state, "v")).toBeUndefined()
    expect(
      pool
        .at(5000)
        .found("CallUnregister")
        .map((call) => call.ssp)
    ).toEqual(["a", "b"])
  })
  it("D31 an SSP that went while it was asked is not answered as the owner, whatever it said", () => {
    const pool = new Drive().ready("a").view("v")
    const [call] = pool.found("CallRegister")
    pool.do({ tag: "Deregister", ref: 9, from: { ssp: "a", incarnation: undefined } })
    pool.do({
      tag: "ViewCalled",
      op: call!.op,
      view: "v",
      ssp: "a",
      registration: call!.registration,
      outcome: { kind: "done" }
    })
    expect([pool.reply, State.view(pool.state, "v")]).toEqual([{ kind: "noSsp" }, undefined])
  })
  it("D31 without a ready SSP a new view is 503 and forgotten", () => {
    expect(new Drive().register("a").view("v").tags).toEqual(["Reply"])
  })
  it("D31 views of a dead SSP move to others, with a greater assignment", () => {
    const pool = many(new Drive().ready("a", "b"), 4)
    const before = State.view(pool.state, "v0")!.assignment
    pool.at(10_000).beat("b").at(15_001).called("done")
    expect([pool.owner("v0"), pool.owner("v1"), pool.owner("v2"), pool.owner("v3")]).toEqual(["b", "b", "b", "b"])
    expect(State.view(pool.state, "v0")!.assignment).toBeGreaterThan(before)
  })
  it("D31 views without an SSP wait for the next ready one", () => {
    const pool = many(new Drive().ready("a"), 3).do({
      tag: "Deregister",
      ref: 9,
      from: { ssp: "a", incarnation: undefined }
    })
    expect([Waiting.size(pool.state.waitingViews), pool.owner("v0")]).toEqual([3, undefined])
    expect(pool.ready("b").found("CallRegister")).toHaveLength(3)
  })
  it("D31 a returning SSP gets its share back, one SSP first gives a view up and only then another gets it, at a limited rate", () => {
    const pool = many(
      new Drive({ movesPerSecond: 4, maxCalls: 100, unevenMs: 0, heartbeatTimeoutMs: 1e9 }).ready("a"),
      20
    ).ready("b")
    pool.at(1000)
    expect([pool.found("CallUnregister").length, pool.found("CallRegister").length]).toEqual([4, 0])
    expect(pool.at(1100).found("CallUnregister")).toEqual([])
    for (const now of [2000, 3000, 4000, 5000, 6000]) {
      const leaves = pool.all.filter((action) => action.tag === "CallUnregister").slice(-4)
      expect(
        leaves.map((call) => call.tag === "CallUnregister" && call.gone),
        "moved, not gone"
      ).toEqual([false, false, false, false])
      for (const call of leaves)
        if (call.tag === "CallUnregister")
          pool
            .do({
              tag: "ViewCalled",
              op: call.op,
              view: call.view,
              ssp: call.ssp,
              registration: call.registration,
              outcome: { kind: "done" }
            })
            .called("done")
      pool.at(now)
    }
    expect(spread(pool)).toEqual([10, 10])
  })
  it("D31 unregistering is forwarded; a registration behind it waits until the SSP has let go", () => {
    const pool = new Drive().ready("a").view("v").called("done").unview("v")
    expect(pool.tags).toEqual(["PersistStray", "ForgetView", "CallUnregister", "Reply"])
    const leave = pool.found("CallUnregister")[0]!
    expect(leave).toMatchObject({ gone: true })
    expect(pool.view("v").tags).toEqual([])
    pool.do({
      tag: "ViewCalled",
      op: leave.op,
      view: "v",
      ssp: "a",
      registration: leave.registration,
      outcome: { kind: "done" }
    })
    expect(pool.tags).toEqual(["ForgetStray", "PersistView", "CallRegister"])
    expect(pool.called("done").unview("v").called("done").unview("v").reply).toEqual({ kind: "unknownView" })
  })
  it("D31 requests for one view are carried out one after the other, the last one holds", () => {
    const pool = new Drive({ maxQueue: 2 })
      .ready("a")
      .view("v", "one")
      .called("unreachable")
      .ready("a")
      .view("v", "one", 11)
    const [call] = pool.found("CallRegister")
    pool.view("v", "two", 12).unview("v")
    expect(pool.view("v", "four", 14).reply).toMatchObject({ kind: "overloaded" })
    pool.do({
      tag: "ViewCalled",
      op: call!.op,
      view: "v",
      ssp: "a",
      registration: call!.registration,
      outcome: { kind: "done" }
    })
    expect(pool.found("CallRegister")).toMatchObject([{ spec: { body: "two" } }])
    expect(pool.called("done").reply).toEqual({ kind: "ok" })
    expect(pool.owner("v")).toBeUndefined()
  })
  it("an SSP that may still hold a view does not get it again before it has let go", () => {
    const pool = new Drive({ coolMs: 0 }).ready("a").view("v").called("done").view("v").called("unreachable")
    expect(pool.owner("v")).toBeUndefined()
    const again = pool.found("CallUnregister")
    expect([again.length, pool.found("CallRegister").length]).toEqual([1, 0])
    expect(pool.called("done").found("CallRegister")).toMatchObject([{ ssp: "a" }])
  })
  it("a view expires by the times known when its activity is found, so a refresh on the way wins", () => {
    const pool = new Drive({ heartbeatTimeoutMs: 1e9 }).ready("a").view("v", "q", 3, 1000).called("done")
    expect(pool.at(1062).found("AskActivity")).toEqual([])
    expect(pool.at(1063).found("AskActivity")).toEqual([{ tag: "AskActivity", view: "v", lastActiveAt: 0 }])
    pool.do({ tag: "ActivityFound", view: "v", lastActiveAt: 500 })
    expect([
      pool.owner("v"),
      pool.at(1562).found("AskActivity").length,
      pool.at(1563).found("AskActivity").length
    ]).toEqual(["a", 0, 1])
    pool.view("v", "q", 3, 1000).called("done").do({ tag: "ActivityFound", view: "v", lastActiveAt: 500 })
    expect(pool.owner("v")).toBe("a")
    pool.at(2626).do({ tag: "ActivityFound", view: "v", lastActiveAt: 500 })
    expect(pool.tags).toEqual(["PersistStray", "ForgetView", "CallUnregister"])
  })
  it("D63 a touch is written down and told to the SSP where the time since the last one is worth it", () => {
    const touch = { tag: "TouchView", ref: 9, view: "v" } as const
    const pool = new Drive({ heartbeatTimeoutMs: 1e9 }).ready("a").view("v", "q", 3, 1600).called("done")
    expect(pool.at(100).do(touch).tags).toEqual(["Reply"])
    expect(pool.reply).toEqual({ kind: "ok" })
    expect(pool.at(101).do(touch).tags).toEqual(["PersistView", "CallRegister"])
    expect(pool.called("done").reply).toMatchObject({ kind: "assigned" })
    expect(pool.at(200).do(touch).tags).toEqual(["Reply"])
    expect(pool.do({ ...touch, view: "w" }).reply).toEqual({ kind: "unknownView" })
  })
  it("D63 what waits behind a touch is not forgotten", () => {
    const touch = { tag: "TouchView", ref: 9, view: "v" } as const
    const pool = new Drive().ready("a").view("v")
    const calls = pool.last
    pool.do(touch).view("v", "two", 10)
    pool.last = calls
    pool.called("done")
    expect(pool.found("Reply").map(({ ref }) => ref)).toEqual([3, 9])
    expect(pool.found("CallRegister")).toMatchObject([{ spec: { body: "two" } }])
  })
})

describe("cost", () => {
  it("D31 an SSP that dies with thousands of views is removed without walking over them", () => {
    const pool = many(new Drive({ strategy: strategies.round_robin }).ready("a", "b"), 4000)
    const { members, views } = pool.state
    pool.do({ tag: "Deregister", ref: 9, from: { ssp: "a", incarnation: undefined } })
    const touched = pool.found("PersistView").length
    expect(touched).toBe(State.defaults.maxCalls)
    const changed = [...HashMap.values(pool.state.views)].filter(
      (view) => State.view({ ...pool.state, views }, view.view) !== view
    )
    expect(changed).toHaveLength(touched)
    expect(HashMap.size(members)).toBe(2)
    expect(Waiting.size(pool.state.waitingViews)).toBe(2000 - touched)
  })
  it("D26 events and heartbeats leave views alone", () => {
    const pool = many(new Drive().ready("a"), 100)
    const { expiries, views } = pool.state
    pool.append(200).beat("a").delivered("a").at(1)
    expect([pool.state.views === views, pool.state.expiries === expiries]).toEqual([true, true])
  })
})

describe("jobs", () => {
  const arrive = (pool: Drive, job: string, ref?: number): Drive =>
    pool.do({ tag: "JobArrived", job, table: "job", ref })

  it("one assignee for each job, fewest unfinished first, the same when it comes again", () => {
    const pool = new Drive().ready("a", "b")
    for (const job of ["j1", "j2", "j3", "j1"]) arrive(pool, job)
    expect(["j1", "j2", "j3"].map((job) => State.assigneeOf(pool.state, job))).toEqual(["a", "b", "a"])
    arrive(pool.do({ tag: "JobDone", job: "j1" }).do({ tag: "JobDone", job: "j3" }), "j4")
    expect(State.assigneeOf(pool.state, "j4")).toBe("a")
  })
  it("jobs that arrive while no SSP is ready are handed over when one is; a dispatched one is 503", () => {
    const pool = arrive(new Drive(), "j1")
    expect([arrive(pool, "j2", 7).reply, State.job(pool.state, "j2")]).toEqual([{ kind: "noSsp" }, undefined])
    pool.ready("a")
    expect(pool.tags.slice(-2)).toEqual(["PersistJob", "ExecuteJob"])
  })
  it("a job of a removed SSP goes to another; one without an answer is asked of the same again", () => {
    const pool = arrive(new Drive({ coolMs: 10, heartbeatTimeoutMs: 1e9 }).ready("a", "b"), "j1").do({
      tag: "Deregister",
      ref: 9,
      from: { ssp: "a", incarnation: undefined }
    })
    const [call] = pool.found("ExecuteJob")
    expect(call).toMatchObject({ ssp: "b", job: "j1" })
    pool.ready("a").do({ tag: "JobCalled", op: call!.op, job: "j1", outcome: { kind: "unreachable" } })
    expect(pool.at(11).found("ExecuteJob")).toMatchObject([{ ssp: "b" }])
  })
  it("D80 jobs that its goodbye names as called go to another when they are put back, or after a while; one that ends to none", () => {
    const pool = new Drive({ callsEndMs: 500, heartbeatTimeoutMs: 1e9 }).ready("a")
    for (const job of ["j1", "j2", "j3", "j4"]) arrive(pool, job)
    pool.ready("b").do({
      tag: "Deregister",
      ref: 9,
      from: { ssp: "a", incarnation: undefined },
      calling: ["j1", "j2", "j3", "unknown"]
    })
    const told = () => pool.found("ExecuteJob").map(({ job, ssp }) => [job, ssp])
    expect(told()).toEqual([["j4", "b"]])
    expect(pool.at(499).found("ExecuteJob")).toEqual([])
    pool.do({ tag: "JobDone", job: "j1" }).do({ tag: "JobReleased", job: "j2" })
    expect(told()).toEqual([["j2", "b"]])
    pool.at(500)
    expect(told()).toEqual([["j3", "b"]])
    expect(pool.at(5000).found("ExecuteJob")).toEqual([])
  })
})
