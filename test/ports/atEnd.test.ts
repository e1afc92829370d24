/** What a closing scope still says is said to its end or its time-out, whichever way the scope closes. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Option, Scope, TestClock } from "effect"
import { atEnd } from "../../src/ports/Front.ts"

/** Of a loop that ends when `over` does, and says `work` then, in a scope of its own. */
const loopIn = (work: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const over = yield* Deferred.make<void>()
    const scope = yield* Scope.make()
    const said = Effect.ignore(atEnd(work, "2 seconds"))
    yield* Effect.forkIn(Effect.ensuring(Deferred.await(over), said), scope)
    return { over, scope }
  })

describe("work at the end of a scope", () => {
  for (const [when, betweenMs] of [
    ["before its loop has ended", undefined],
    ["at once when its loop has ended", 0],
    ["while it is under way", 500]
  ] as const)
    it.effect(`goes to its end where the scope closes ${when}`, () =>
      Effect.gen(function* () {
        let isSaid = false
        const { over, scope } = yield* loopIn(
          Effect.delay(
            Effect.sync(() => (isSaid = true)),
            "1 second"
          )
        )
        yield* TestClock.adjust(0)
        if (betweenMs !== undefined) {
          yield* Deferred.succeed(over, undefined)
          yield* TestClock.adjust(betweenMs)
        }
        const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(closing)
        expect(isSaid).toBe(true)
      })
    )

  for (const [what, hangs] of [
    ["nothing answers", Effect.never],
    ["nothing can interrupt", Effect.uninterruptible(Effect.never)]
  ] as const)
    it.effect(`is given up after its time where ${what}`, () =>
      Effect.gen(function* () {
        const { scope } = yield* loopIn(hangs)
        yield* TestClock.adjust(0)
        const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(Duration.millis(1999))
        expect(Option.isNone(yield* Fiber.poll(closing))).toBe(true)
        yield* TestClock.adjust(1)
        yield* Fiber.join(closing)
      })
    )
})
