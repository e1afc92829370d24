/**
 * An SSP whose process is gone (D32 said again): refused connections remove it at once, anything slower waits for the
 * heartbeat.
 *
 * By the order of events and the pool's own time; what connections say is told by hand.
 */
import { describe, expect, it } from "vitest"
import type { Health } from "../../../src/core/cluster/messages.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"
import { Drive } from "./drive.ts"

const health = (pool: Drive, ssp: string, said: Health): Drive =>
  pool.do({ tag: "Polled", ssp, registration: pool.member(ssp).registration, health: said })

/** `a` has the view `v`, `b` none; both are Ready. */
const placed = (): Drive => new Drive().ready("a", "b").view("v").called("done")

const polled = (pool: Drive): ReadonlyArray<string> => pool.found("Poll").map(({ ssp }) => ssp)

describe("an SSP that refuses connections", () => {
  it("D31 is suspect after one refusal, gone after a health call says the same; its views go to another at once", () => {
    const pool = placed().append(101).delivered("a", { kind: "unavailable", refused: true })
    expect([pool.member("a").state, pool.owner("v"), polled(pool)]).toEqual(["Suspect", "a", []])
    pool.at(State.defaults.confirmMs - 1)
    expect(polled(pool)).toEqual([])
    pool.at(State.defaults.confirmMs)
    expect(polled(pool)).toEqual(["a"])
    health(pool, "a", "refused")
    expect(State.member(pool.state, "a")).toBeUndefined()
    expect([
      pool.found("ForgetMember").map(({ ssp }) => ssp),
      pool.found("CallRegister").map(({ ssp, view }) => [ssp, view])
    ]).toEqual([["a"], [["b", "v"]]])
  })
  it("D31 a delivery, a health call, a view that is placed and a request handed on find it out alike", () => {
    const finders: ReadonlyArray<(pool: Drive) => Drive> = [
      (pool) => pool.append(101).delivered("a", { kind: "unavailable", refused: true }),
      (pool) => health(pool.at(State.defaults.probeIntervalMs), "a", "refused"),
      (pool) => {
        const [call] = pool.view("v", "again").found("CallRegister")
        return pool.do({
          tag: "ViewCalled",
          op: call!.op,
          view: "v",
          ssp: "a",
          registration: call!.registration,
          outcome: { kind: "unreachable", refused: true }
        })
      },
      (pool) => pool.do({ tag: "Refused", ssp: "a", registration: pool.member("a").registration })
    ]
    for (const find of finders) expect(find(placed()).member("a").state).toBe("Suspect")
  })
  it("D31 a Ready SSP is asked at an interval, so that a death is found where no events come; 0 asks no SSP", () => {
    expect(polled(placed().at(State.defaults.probeIntervalMs))).toEqual(["a", "b"])
    expect(polled(new Drive({ probeIntervalMs: 0 }).ready("a").at(10_000))).toEqual([])
  })
  it("D31 an SSP that applies events is not asked meanwhile, one that no longer applies them is", () => {
    const { probeIntervalMs } = State.defaults
    const pool = placed()
      .at(probeIntervalMs - 1)
      .append(101)
      .delivered("a")
      .delivered("b", { kind: "unavailable" })
    expect(polled(pool.at(probeIntervalMs))).toEqual(["b"])
    expect(polled(pool.at(2 * probeIntervalMs - 1))).toEqual(["a"])
  })
  it("D31 a health call that was under way at the first refusal, and any call but a health call, confirm nothing", () => {
    const pool = placed()
      .at(State.defaults.probeIntervalMs)
      .append(101)
      .delivered("a", { kind: "unavailable", refused: true })
    health(pool, "a", "refused")
    pool.do({ tag: "Refused", ssp: "a", registration: pool.member("a").registration })
    expect(pool.member("a").state).toBe("Suspect")
  })
  it("D31 time-outs and other failures wait for the heartbeat, also while it is suspect", () => {
    const pool = placed().append(101).delivered("a", { kind: "unavailable" })
    for (let n = 1; n <= 5; n++) health(pool.at(n * 1000), "a", "unreachable")
    expect(pool.member("a").state).toBe("Ready")
    pool.do({ tag: "Refused", ssp: "a", registration: pool.member("a").registration })
    health(pool.at(6000), "a", "unreachable")
    expect(pool.member("a").state).toBe("Suspect")
    pool.at(7000).beat("b").beat("a")
    expect([pool.reply, pool.member("a").state]).toEqual([{ kind: "ok" }, "Suspect"])
    pool.at(16_000).beat("b").at(22_001).beat("b")
    expect(State.member(pool.state, "a")).toBeUndefined()
  })
  it("D31 an answer clears it: it catches up and is Ready again, with its views and without another owner in between", () => {
    for (const answer of ["health", "delivery"] as const) {
      const pool = placed().append(101)
      pool.do({ tag: "Refused", ssp: "a", registration: pool.member("a").registration })
      if (answer === "delivery") pool.delivered("a")
      else health(pool.at(1000), "a", "ready").delivered("a")
      expect([answer, pool.member("a").state, pool.owner("v")]).toEqual([answer, "Ready", "a"])
      expect(pool.all.filter(({ tag }) => tag === "CallRegister")).toHaveLength(1)
    }
  })
  it("D31 D26 while it is suspect it gets no new views, answers of /ingest do not wait for it, and it does not count as ready", () => {
    const pool = placed()
    pool.do({ tag: "Refused", ssp: "a", registration: pool.member("a").registration })
    expect(
      ["w", "x", "y"].map((key) =>
        pool
          .view(key)
          .found("CallRegister")
          .map(({ ssp }) => ssp)
      )
    ).toEqual([["b"], ["b"], ["b"]])
    expect([State.ready(pool.state).map(({ ssp }) => ssp), State.awaited(pool.state, 1000)]).toEqual([["b"], true])
    expect(State.awaited(pool.append(101).delivered("b").state, 101)).toBe(false)
  })
  it("D31 an SSP that pulls its snapshot is not suspected: its proxy may admit requests only once it is ready", () => {
    const pool = new Drive().register("a").at(State.defaults.pollIntervalMs)
    health(pool, "a", "refused")
    expect(pool.member("a").state).toBe("Bootstrapping")
  })
  it("D31 a refusal of a registration that is over says nothing of the next", () => {
    const pool = placed()
    const old = pool.member("a").registration
    pool.register("a").polled("a").do({ tag: "Refused", ssp: "a", registration: old })
    expect(pool.member("a").state).toBe("Ready")
  })
  it("D31 after a restart of the scheduler too it is found out by its first health calls", () => {
    const row = {
      ssp: "a",
      incarnation: undefined,
      url: "http://a",
      batch: true,
      jobTables: undefined,
      registration: 5,
      acked: 100
    }
    const [state] = Pool.restore(State.initial(State.defaults, 2, { first: 1, head: 100 }, true), 0, {
      members: [row],
      views: [],
      strays: [],
      jobs: []
    })
    const pool = new Drive()
    pool.state = state
    health(pool.at(1000), "a", "refused")
    health(pool.at(1500), "a", "refused")
    expect(State.member(pool.state, "a")).toBeUndefined()
  })
})
