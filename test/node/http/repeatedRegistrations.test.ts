/** Registrations of one view that come together: one is carried out for all that say the same (D63). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { attempt } from "../../../src/node/http/repeatedRegistrations.ts"
import type { Call } from "../../../src/node/http/routes.ts"
import type { Reply } from "../../../src/ports/Front.ts"

const body = (more: object = {}) => ({
  id: "posts",
  surql: "SELECT * FROM post",
  clientId: "a",
  ttl: "1m",
  lastActiveAt: "2026-01-01T00:00:00Z",
  ...more
})

const call = (json: object) => ({ json }) as Call

/** A node that knows the registration that it carried out last, each when the test lets it. */
const node = () => {
  const begun: Array<Deferred.Deferred<void, string>> = []
  const answers: Array<string> = []
  let known: string | undefined
  const first = attempt<Call, string>({
    nowMs: () => 0,
    known: ({ surql }, reply) => {
      const isKnown = surql === known
      if (isKnown) reply.send({ status: 200, body: "known" })
      return isKnown
    },
    register: ({ json }) =>
      Effect.gen(function* () {
        const end = yield* Deferred.make<void, string>()
        begun.push(end)
        yield* Deferred.await(end)
        known = (json as ReturnType<typeof body>).surql
        return { status: 200, body: "written" }
      })
  })
  /** Answers what makes the client leave. */
  const ask = (json: object): (() => void) => {
    let gone = () => {}
    const reply = {
      send: (answer) => void answers.push("body" in answer ? answer.body : ""),
      whenGone: (abandon) => {
        gone = abandon
      }
    } as Reply
    first(call(json), reply, (respond) => {
      const fiber = Effect.runFork(Effect.scoped(respond(call(json))))
      gone = () => fiber.unsafeInterruptAsFork(fiber.id())
      fiber.addObserver((exit) =>
        reply.send(
          Exit.isSuccess(exit) ? (exit.value as { status: 200; body: string }) : { status: 500, body: "failed" }
        )
      )
    })
    return () => gone()
  }
  return { answers, ask, begun }
}

const many = 16

/** Lets every fiber go as far as it can. */
const settle = Effect.repeatN(Effect.yieldNow(), 50)

describe("registrations that come together", () => {
  it.effect("are written once, and each is answered after that", () =>
    Effect.gen(function* () {
      const { answers, ask, begun } = node()
      for (let n = 0; n < many; n++) ask(body({ lastActiveAt: new Date(Date.UTC(2026, 0) + n).toISOString() }))
      yield* settle
      assert.strictEqual(begun.length, 1)
      assert.deepStrictEqual(answers, [])
      yield* Deferred.succeed(begun[0]!, undefined)
      yield* settle
      assert.deepStrictEqual(answers.toSorted(), [...Array(many - 1).fill("known"), "written"])
      assert.strictEqual(begun.length, 1)
    })
  )

  it.effect("are each carried out where they say something else, or are active too much later", () =>
    Effect.gen(function* () {
      const { ask, begun } = node()
      const others = [{}, { surql: "SELECT * FROM user" }, { id: "users" }, { ttl: "2m" }, { clientId: "b" }]
      for (const other of [...others, { lastActiveAt: "2026-01-01T00:00:02Z" }]) ask(body(other))
      yield* settle
      assert.strictEqual(begun.length, 6)
    })
  )

  it.effect("are each carried out where they are no plain registrations", () =>
    Effect.gen(function* () {
      const { ask, begun } = node()
      for (let n = 0; n < 2; n++) ask(body({ assignment: 1 }))
      yield* settle
      assert.strictEqual(begun.length, 2)
    })
  )

  it.effect("go on one by one where the first fails or its client leaves", () =>
    Effect.gen(function* () {
      const { answers, ask, begun } = node()
      const [, leave] = Array.from({ length: many }, () => ask(body()))
      yield* settle
      yield* Deferred.fail(begun[0]!, "no disk")
      yield* settle
      assert.deepStrictEqual(answers, ["failed"])
      assert.strictEqual(begun.length, 2)
      leave!()
      yield* settle
      assert.strictEqual(begun.length, 3)
      yield* Deferred.succeed(begun[2]!, undefined)
      yield* settle
      assert.deepStrictEqual(answers.slice(2).toSorted(), [...Array(many - 3).fill("known"), "written"])
    })
  )

  it.effect("are not carried out for a client that has left while it waited", () =>
    Effect.gen(function* () {
      const { answers, ask, begun } = node()
      ask(body())
      const leave = ask(body())
      yield* settle
      leave()
      yield* Deferred.fail(begun[0]!, "no disk")
      yield* settle
      assert.strictEqual(begun.length, 1)
      assert.deepStrictEqual(answers, ["failed"])
    })
  )
})
