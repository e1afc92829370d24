/**
 * The life of an SSP on its own: loading and sweeping (D14, D22); what a scheduler adds is in Membership.test.ts.
 *
 * Why under a test clock: sweeps take minutes that no test has.
 */
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Ref, TestClock } from "effect"
import { DatabaseError } from "../../../src/ports/Database.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { StartFault } from "../../../src/ports/StartFault.ts"
import { Lifecycle } from "../../../src/ssp/membership/Lifecycle.ts"
import { fakeViews, node } from "../fakeViews.ts"

const build = (layer: ReturnType<typeof node>) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.fresh(layer))
    const serving = Context.get(context, Serving)
    yield* serving.listening(8667)
    yield* TestClock.adjust(0)
    const { loaded, phase } = Context.get(context, Lifecycle)
    return { loaded, phase, serving }
  })

describe("standalone", () => {
  it.scoped("is bootstrapping while the store loads and ready then", () =>
    Effect.gen(function* () {
      const { phase } = yield* build(
        node(fakeViews({ restore: Effect.delay(Effect.succeed({ records: 1, views: 1 }), "5 seconds") }))
      )
      expect(phase()).toBe("bootstrapping")
      yield* TestClock.adjust("5 seconds")
      expect(phase()).toBe("ready")
    })
  )
  for (const [reason, code] of [
    ["damaged", 3],
    ["newer", 3],
    ["failed", 1]
  ] as const) {
    it.scoped(`D22 a store that is ${reason} ends the process with ${code}, and the SSP is never ready`, () =>
      Effect.gen(function* () {
        const { phase, serving } = yield* build(
          node(fakeViews({ restore: new DatabaseError({ reason, message: "store.db: no" }) }))
        )
        const fault = yield* Effect.flip(serving.crashed)
        expect([fault.exitCode, fault.message, phase()]).toEqual([
          code,
          expect.stringMatching(/^store\.db: no; .*SVC_DATA_DIR/),
          "bootstrapping"
        ])
      })
    )
  }
  it.scoped("a defect in a loop ends the process with 1", () =>
    Effect.gen(function* () {
      const { serving } = yield* build(node(fakeViews({ expire: () => Effect.die(new Error("impossible")) })))
      const crashed = yield* Effect.fork(Effect.flip(serving.crashed))
      yield* TestClock.adjust("61 seconds")
      const fault = yield* Fiber.join(crashed)
      expect([fault instanceof StartFault, fault.exitCode, fault.message.includes("impossible")]).toEqual([
        true,
        1,
        true
      ])
    })
  )
  it.scoped("D14 expired views are swept every TTL_CLEANUP_INTERVAL_SECS", () =>
    Effect.gen(function* () {
      const sweeps = yield* Ref.make<ReadonlyArray<number>>([])
      yield* build(
        node(
          fakeViews({
            expire: (now) =>
              Effect.as(
                Ref.update(sweeps, (all) => [...all, now]),
                []
              )
          }),
          { TTL_CLEANUP_INTERVAL_SECS: "7" }
        )
      )
      yield* TestClock.adjust("22 seconds")
      expect(yield* Ref.get(sweeps)).toEqual([7000, 14_000, 21_000])
    })
  )
})

describe("while the store loads", () => {
  it.scoped("what needs no readiness but changes the store waits until it is read", () =>
    Effect.gen(function* () {
      const { loaded, phase } = yield* build(
        node(
          fakeViews({
            restore: Effect.delay(Effect.succeed({ records: 0, views: 0 }), "5 seconds"),
            expire: () => Effect.die(new Error("too early"))
          }),
          { TTL_CLEANUP_INTERVAL_SECS: "1" }
        )
      )
      const waiting = yield* Effect.fork(loaded)
      yield* TestClock.adjust("4900 millis")
      expect([phase(), yield* Fiber.poll(waiting)]).toEqual(["bootstrapping", Option.none()])
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(waiting)
    })
  )
})
