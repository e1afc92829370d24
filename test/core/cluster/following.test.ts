/**
 * SSPs that follow tables (D61), as the scheduler's mind sees them: sent nothing, counted by what they say, asked again
 * while records of a view's tables are on their way.
 */
import { describe, expect, it } from "vitest"
import { strategies } from "../../../src/core/cluster/balance.ts"
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
    expect([State.awaited(pool.state, head + 3), State.appliedBy(pool.state, head + 3)]).toEqual([true, 0])
    applied(pool, "a", head + 2)
    expect(State.awaited(pool.state, head + 3)).toBe(true)
    // What it cannot have yet is not believed.
    applied(pool, "a", head + 99)
    expect([pool.member("a").queue.acked, State.appliedBy(pool.state, head + 3)]).toEqual([head + 3, 1])
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

describe("where a view goes that reads some tables", () => {
  const body = (...tables: ReadonlyArray<string>) => ({ tables })
  const readsOf: State.Config["readsOf"] = ({ body: given }) => {
    const { tables } = given as ReturnType<typeof body>
    return tables.includes("*") ? "all" : new Set(tables)
  }
  /** Places a view and says where. */
  const place = (pool: Drive, view: string, ...tables: ReadonlyArray<string>): string | undefined => {
    pool.view(view, body(...tables)).called("done")
    return pool.owner(view)
  }
  const cluster = (config: Partial<State.Config> = {}, a: ReadonlyArray<string> = [], b: ReadonlyArray<string> = []) =>
    following(following(new Drive({ readsOf, ...config }), "a", a), "b", b)

  it("D65 to the SSP that lacks the fewest of them, under every strategy", () => {
    for (const strategy of Object.values(strategies)) {
      const pool = cluster({ strategy }, ["t"], ["u", "v"])
      expect([
        place(pool, "1", "u"),
        place(pool, "2", "t"),
        place(pool, "3", "v", "x"),
        place(pool, "4", "t", "x")
      ]).toEqual(["b", "a", "b", "a"])
    }
  })
  it("D65 views of one table go together, though the SSP has yet to read it, and those of others elsewhere", () => {
    const pool = cluster()
    const homes = Array.from({ length: 40 }, (_, n) => [`t${n % 4}`, place(pool, `v${n}`, `t${n % 4}`)] as const)
    const ofTable = (table: string) => new Set(homes.filter(([of]) => of === table).map(([, home]) => home))
    expect(["t0", "t1", "t2", "t3"].map((table) => ofTable(table).size)).toEqual([1, 1, 1, 1])
    const counts = ["a", "b"].map((ssp) => homes.filter(([, home]) => home === ssp).length)
    expect(counts).toEqual([20, 20])
  })
  it("D65 no SSP gets more than a quarter above the mean for it", () => {
    const pool = cluster({}, ["t"], [])
    const homes = Array.from({ length: 100 }, (_, n) => place(pool, `v${n}`, "t"))
    const most = Math.max(...["a", "b"].map((ssp) => homes.filter((home) => home === ssp).length))
    expect(most).toBeLessThanOrEqual(63)
  })
  it("D65 an SSP that is sent everything, or follows all tables, lacks none; nor does it matter where the query is unknown", () => {
    const pool = new Drive({ readsOf }).ready("a")
    following(pool, "b", ["t"])
    following(pool, "c", ["*"])
    expect([place(pool, "1", "x"), place(pool, "2", "x"), place(pool, "3", "t")]).toEqual(["a", "c", "b"])
    const unknown = cluster({ readsOf: () => undefined }, ["t"], [])
    expect([place(unknown, "1", "t"), place(unknown, "2", "t")]).toEqual(["a", "b"])
  })
  it("D65 a view that may read any table goes where all are, if anywhere", () => {
    const pool = cluster({}, ["t"], ["*"])
    expect([place(pool, "1", "*"), place(pool, "2", "t")]).toEqual(["b", "a"])
  })
  it("D32 D65 within a quarter of the mean only views move whose tables the other SSP has", () => {
    let home = "a"
    const pool = cluster({ strategy: { ...strategies.least_queries, choose: () => home } }, ["t"], ["u"])
    for (let n = 0; n < 11; n++) place(pool, `t${n}`, "t")
    home = "b"
    for (let n = 0; n < 9; n++) place(pool, `u${n}`, "u")
    const wait = (from: number): number => {
      const before = pool.all.length
      for (let now = from; now <= from + 10_000; now += 500) {
        for (const ssp of ["a", "b"]) pool.beat(ssp)
        pool.at(now)
      }
      return pool.all.slice(before).filter(({ tag }) => tag === "CallUnregister").length
    }
    expect(wait(0)).toBe(0)
    pool.do({ tag: "Followed", ssp: "b", registration: pool.member("b").registration, tables: ["t", "u"] })
    expect(wait(20_000)).toBe(1)
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
