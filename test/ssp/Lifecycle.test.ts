/**
 * The SSP's life before and between: loading, registering, giving up and going on, sweeping (D18, D14).
 *
 * Why under a test clock: ten failures with backoff take minutes that no test has.
 */
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Ref, TestClock } from "effect"
import { Serving } from "../../src/ports/Front.ts"
import { DatabaseError } from "../../src/ports/Database.ts"
import { SchedulerClient, SchedulerError } from "../../src/ports/SchedulerClient.ts"
import { StartFault } from "../../src/ports/StartFault.ts"
import { Lifecycle } from "../../src/ssp/Lifecycle.ts"
import { backoffCeilingMs } from "../../src/ssp/Membership.ts"
import { fakeViews, node } from "./fakeViews.ts"

const scheduled = { SCHEDULER_URL: "http://scheduler:9667", ADVERTISE_ADDR: "ssp-1:8667" }

const counting = (calls: Ref.Ref<number>, answer: (call: number) => Effect.Effect<{ snapshot_seq: number }, SchedulerError>) =>
  Layer.succeed(SchedulerClient, { register: () => Effect.flatMap(Ref.updateAndGet(calls, (n) => n + 1), answer) })

const build = (layer: ReturnType<typeof node>) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(Layer.fresh(layer))
    const serving = Context.get(context, Serving)
    yield* serving.listening(8667)
    yield* TestClock.adjust(0)
    const { loaded, phase } = Context.get(context, Lifecycle)
    return { loaded, phase, serving }
  })

describe("standalone", () => {
  it.scoped("is bootstrapping while the store loads and ready then", () =>
    Effect.gen(function*() {
      const { phase } = yield* build(node(fakeViews({ restore: Effect.delay(Effect.succeed({ records: 1, views: 1 }), "5 seconds") })))
      expect(phase()).toBe("bootstrapping")
      yield* TestClock.adjust("5 seconds")
      expect(phase()).toBe("ready")
    }))
  for (const [reason, code] of [["damaged", 3], ["newer", 3], ["failed", 1]] as const) {
    it.scoped(`D22 a store that is ${reason} ends the process with ${code}, and the SSP is never ready`, () =>
      Effect.gen(function*() {
        const { phase, serving } = yield* build(node(fakeViews({ restore: new DatabaseError({ reason, message: "store.db: no" }) })))
        const fault = yield* Effect.flip(serving.crashed)
        expect([fault.exitCode, fault.message, phase()]).toEqual([code, expect.stringMatching(/^store\.db: no; .*SVC_DATA_DIR/), "bootstrapping"])
      }))
  }
  it.scoped("a defect in a loop ends the process with 1", () =>
    Effect.gen(function*() {
      const { serving } = yield* build(node(fakeViews({ expire: () => Effect.die(new Error("impossible")) })))
      const crashed = yield* Effect.fork(Effect.flip(serving.crashed))
      yield* TestClock.adjust("61 seconds")
      const fault = yield* Fiber.join(crashed)
      expect([fault instanceof StartFault, fault.exitCode, fault.message.includes("impossible")]).toEqual([true, 1, true])
    }))
  it.scoped("D14 expired views are swept every TTL_CLEANUP_INTERVAL_SECS", () =>
    Effect.gen(function*() {
      const sweeps = yield* Ref.make<ReadonlyArray<number>>([])
      yield* build(node(fakeViews({ expire: (now) => Effect.as(Ref.update(sweeps, (all) => [...all, now]), []) }), { TTL_CLEANUP_INTERVAL_SECS: "7" }))
      yield* TestClock.adjust("22 seconds")
      expect(yield* Ref.get(sweeps)).toEqual([7000, 14_000, 21_000])
    }))
})

describe("while the store loads", () => {
  it.scoped("what needs no readiness but changes the store waits until it is read", () =>
    Effect.gen(function*() {
      const { loaded, phase } = yield* build(node(fakeViews({ restore: Effect.delay(Effect.succeed({ records: 0, views: 0 }), "5 seconds"), expire: () => Effect.die(new Error("too early")) }), { TTL_CLEANUP_INTERVAL_SECS: "1" }))
      const waiting = yield* Effect.fork(loaded)
      yield* TestClock.adjust("4900 millis")
      expect([phase(), yield* Fiber.poll(waiting)]).toEqual(["bootstrapping", Option.none()])
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(waiting)
    }))
})

describe("scheduler mode", () => {
  it("D18 backoff doubles from 0.5 s to 30 s", () => expect([0, 1, 2, 5, 6, 100].map(backoffCeilingMs)).toEqual([500, 1000, 2000, 16_000, 30_000, 30_000]))
  it.scoped("D18 ten failures in a row make failed, and it keeps trying", () =>
    Effect.gen(function*() {
      const calls = yield* Ref.make(0)
      const unreachable = counting(calls, () => new SchedulerError({ reason: "unreachable", message: "no" }))
      const { phase } = yield* build(node(fakeViews(), scheduled, unreachable))
      expect([phase(), yield* Ref.get(calls)]).toEqual(["bootstrapping", 1])
      for (let second = 0; (yield* Ref.get(calls)) < 9 && second < 300; second++) yield* TestClock.adjust("500 millis")
      expect(phase()).toBe("bootstrapping")
      yield* TestClock.adjust("60 seconds")
      expect(phase()).toBe("failed")
      const then = yield* Ref.get(calls)
      yield* TestClock.adjust("120 seconds")
      expect(yield* Ref.get(calls)).toBeGreaterThan(then + 3)
    }))
  it.scoped("D18 a scheduler that is cloning does not count as a failure", () =>
    Effect.gen(function*() {
      const calls = yield* Ref.make(0)
      const { phase } = yield* build(node(fakeViews(), scheduled, counting(calls, () => new SchedulerError({ reason: "cloning", message: "later" }))))
      yield* TestClock.adjust("20 minutes")
      expect([phase(), (yield* Ref.get(calls)) > 20]).toEqual(["bootstrapping", true])
    }))
  it.scoped("registers under its advertised address once the server listens, and stays bootstrapping when answered", () =>
    Effect.gen(function*() {
      const seen = yield* Ref.make<ReadonlyArray<unknown>>([])
      const client = Layer.succeed(SchedulerClient, { register: (registration) => Effect.as(Ref.update(seen, (all) => [...all, registration]), { snapshot_seq: 5 }) })
      const { phase } = yield* build(node(fakeViews(), scheduled, client))
      yield* TestClock.adjust("10 minutes")
      expect([phase(), yield* Ref.get(seen)]).toEqual(["bootstrapping", [{ ssp_id: "me", url: "http://ssp-1:8667", batch: true }]])
    }))
  it.scoped("its layer refuses nothing at build time", () => Effect.map(Effect.exit(Layer.build(Layer.fresh(node(fakeViews(), scheduled)))), (exit) => expect(Exit.isSuccess(exit)).toBe(true)))
})
