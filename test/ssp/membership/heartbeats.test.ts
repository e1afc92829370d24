/**
 * Heartbeats to a scheduler that is slow: each goes out on time, is heard late, and that counts (D19, D21).
 *
 * In virtual time, with a scheduler that answers when the test says.
 */
import { it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber, TestClock } from "effect"
import { expect } from "vitest"
import { SchedulerError } from "../../../src/ports/SchedulerClient.ts"
import * as Heartbeats from "../../../src/ssp/membership/heartbeats.ts"
import { MembershipState } from "../../../src/ssp/membership/MembershipState.ts"

const scene = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const leases: Array<number> = []
  const enrolled = new MembershipState(
    () => clock.unsafeCurrentTimeMillis(),
    { holdUntil: (ms: number) => void leases.push(ms) },
    500
  )
  const sent: Array<{ readonly at: number; readonly answer: Deferred.Deferred<void, SchedulerError> }> = []
  const client = {
    heartbeat: () =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<void, SchedulerError>()
        sent.push({ at: clock.unsafeCurrentTimeMillis(), answer })
        yield* Deferred.await(answer)
      })
  }
  const running = yield* Effect.fork(
    Heartbeats.loop(client, { count: Effect.succeed(0) }, { ssp_id: "a", incarnation: "i" }, 500, enrolled)
  )
  enrolled.isRegistered({ snapshot_seq: 1, heartbeat_timeout_ms: 1500 })
  yield* enrolled.tell({ tag: "Registered", attempt: 1, registration: 7 })
  yield* enrolled.tell({ tag: "Loaded", attempt: 1 })
  return { enrolled, leases, running, sent }
})

it.effect(
  "D19 a heartbeat that is not answered holds up none, is not taken back for 5 s, and no more than a few are on their way",
  () =>
    Effect.gen(function* () {
      const { leases, sent } = yield* scene
      yield* TestClock.adjust("3 seconds")
      expect(sent.map(({ at }) => at)).toEqual([0, 500, 1000, 1500])
      yield* Deferred.succeed(sent[1]!.answer, undefined)
      yield* TestClock.adjust("1 millis")
      expect(leases.at(-1)).toBe(500 + 1500)
      yield* Deferred.succeed(sent[0]!.answer, undefined)
      yield* TestClock.adjust("1 second")
      expect(leases.at(-1), "what was sent last counts").toBe(500 + 1500)
      expect(sent).toHaveLength(6)
      yield* TestClock.adjust("3 seconds")
      expect(sent.length, "those given up make room").toBeGreaterThan(6)
    })
)

it.effect(
  "D19 one that is answered at once is followed by the next a period later, and a 404 starts over once, whatever older ones say",
  () =>
    Effect.gen(function* () {
      const { enrolled, sent } = yield* scene
      yield* TestClock.adjust("1 second")
      expect(sent.length).toBe(3)
      const unknown = new SchedulerError({ reason: "unknown", message: "404" })
      yield* Deferred.fail(sent[2]!.answer, unknown)
      yield* TestClock.adjust("1 millis")
      expect([enrolled.state.attempt, enrolled.state.step]).toEqual([2, "registering"])
      yield* Deferred.fail(sent[0]!.answer, unknown)
      yield* TestClock.adjust("1 millis")
      expect(enrolled.state.attempt).toBe(2)
    })
)

it.effect("a defect in one ends the loop", () =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const enrolled = new MembershipState(() => clock.unsafeCurrentTimeMillis(), { holdUntil: () => undefined }, 500)
    const running = yield* Effect.fork(
      Heartbeats.loop(
        { heartbeat: () => Effect.dieMessage("broken") },
        { count: Effect.succeed(0) },
        { ssp_id: "a", incarnation: "i" },
        500,
        enrolled
      )
    )
    enrolled.isRegistered({ snapshot_seq: 1 })
    yield* TestClock.adjust("1 second")
    expect(Either.isLeft(yield* Effect.either(Effect.sandbox(Fiber.join(running))))).toBe(true)
  })
)
