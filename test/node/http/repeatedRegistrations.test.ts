/** Registrations of one view that come together: one is carried out for all that say the same (D63). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import type { ParsedRegistration } from "../../../src/core/view/repeatedRegistration.ts"
import { UnderWay } from "../../../src/node/http/repeatedRegistrations.ts"

const said = (more: Partial<ParsedRegistration> = {}): ParsedRegistration => ({
  id: "posts",
  surql: "SELECT * FROM post",
  clientId: "a",
  params: "null",
  format: "",
  ttlMs: 60_000,
  lastActiveAtMs: 1_000,
  ...more
})

/** A node that knows the registration that it carried out last, each when the test lets it. */
const node = Effect.gen(function* () {
  const underWay = yield* UnderWay
  const begun: Array<Deferred.Deferred<void, string>> = []
  let known: ParsedRegistration | undefined
  const ask = (asked: ParsedRegistration) =>
    underWay.once(
      asked,
      (again) => (again.surql === known?.surql ? Effect.succeed("known") : undefined),
      Effect.gen(function* () {
        const end = yield* Deferred.make<void, string>()
        begun.push(end)
        yield* Deferred.await(end)
        known = asked
        return "written"
      })
    )
  return { ask, begun, underWay }
}).pipe(Effect.provide(UnderWay.layer))

const many = 16

/** Lets every fiber go as far as it can. */
const settle = Effect.repeatN(Effect.yieldNow(), 50)

describe("registrations that come together", () => {
  it.effect("are written once, and each is answered after that", () =>
    Effect.gen(function* () {
      const { ask, begun } = yield* node
      const fibers = yield* Effect.forEach(Array(many).keys(), (n) =>
        Effect.fork(ask(said({ lastActiveAtMs: 1_000 + n })))
      )
      yield* settle
      assert.strictEqual(begun.length, 1)
      assert.isTrue(fibers.every((fiber) => fiber.unsafePoll() === null))
      yield* Deferred.succeed(begun[0]!, undefined)
      const answers = yield* Fiber.join(Fiber.all(fibers))
      assert.deepStrictEqual(answers.toSorted(), [...Array(many - 1).fill("known"), "written"])
      assert.strictEqual(begun.length, 1)
    })
  )

  it.effect("are each carried out where they say something else, or are active too much later", () =>
    Effect.gen(function* () {
      const { ask, begun } = yield* node
      const others = [said(), said({ surql: "SELECT * FROM user" }), said({ id: "users" }), said({ ttlMs: 1 })]
      for (const other of [...others, said({ lastActiveAtMs: 2_001 })]) yield* Effect.fork(ask(other))
      yield* settle
      assert.strictEqual(begun.length, 5)
    })
  )

  it.effect("go on one by one where the first fails or its client leaves", () =>
    Effect.gen(function* () {
      const { ask, begun } = yield* node
      const [first, second, third, ...rest] = yield* Effect.forEach(Array(many).keys(), () => Effect.fork(ask(said())))
      yield* settle
      yield* Deferred.fail(begun[0]!, "no disk")
      yield* settle
      assert.isTrue(Exit.isFailure(yield* Fiber.await(first!)))
      assert.strictEqual(begun.length, 2)
      yield* Fiber.interrupt(second!)
      yield* settle
      assert.strictEqual(begun.length, 3)
      yield* Deferred.succeed(begun[2]!, undefined)
      assert.strictEqual(yield* Fiber.join(third!), "written")
      assert.deepStrictEqual(new Set(yield* Fiber.join(Fiber.all(rest))), new Set(["known"]))
    })
  )

  it.effect("that are answered by callback wait too, and one whose client leaves is not called", () =>
    Effect.gen(function* () {
      const { ask, begun, underWay } = yield* node
      assert.isUndefined(underWay.whenOver(said(), () => assert.fail("nothing is under way")))
      const first = yield* Effect.fork(ask(said()))
      yield* settle
      const called: Array<string> = []
      underWay.whenOver(said(), () => called.push("stayed"))
      underWay.whenOver(said(), () => called.push("left"))?.()
      assert.isUndefined(underWay.whenOver(said({ clientId: "b" }), () => called.push("another")))
      assert.deepStrictEqual(called, [])
      yield* Deferred.succeed(begun[0]!, undefined)
      yield* Fiber.join(first)
      assert.deepStrictEqual(called, ["stayed"])
      assert.isUndefined(underWay.whenOver(said(), () => called.push("late")))
    })
  )
})
