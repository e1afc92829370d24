/**
 * The text of an answer that goes on, driven by hand: what waits, what pauses the connection, how it ends.
 */
import { Effect, Either, Exit, Fiber, Option, Scope } from "effect"
import { describe, expect, it } from "vitest"
import * as FlowText from "../../src/drivers/shared/flowText.ts"
import type { AnswerEvents } from "../../src/ports/SspClient.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** An answer whose events the test makes, and what was asked of its connection. */
const answering = () => {
  const asked: Array<string> = []
  const heard: Array<AnswerEvents> = []
  const answer = Effect.suspend(() =>
    FlowText.open<string>({
      open: (listener) => {
        heard.push(listener)
        return {
          pause: () => void asked.push("pause"),
          resume: () => void asked.push("resume"),
          close: () => void asked.push("close")
        }
      },
      refused: (status, _, text) => `${status} ${text}`,
      broken: (error) => `broken: ${String(error)}`
    })
  )
  return { answer, asked, at: () => heard[0]! }
}

/** One whose status is here. `close` closes its scope. */
const begun = Effect.gen(function* () {
  const { answer, ...rest } = answering()
  const scope = yield* Scope.make()
  const fiber = yield* Effect.fork(Scope.extend(answer, scope))
  yield* Effect.yieldNow()
  rest.at().head(200, {})
  return { ...rest, next: yield* Fiber.join(fiber), close: Scope.close(scope, Exit.void) }
})

describe("the text of an answer that goes on", () => {
  it("comes whole, whatever bytes it was cut at, pieces that wait together, and its connection is closed with the scope", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { asked, at, close, next } = yield* begun
        const text = bytes("a é b")
        at().data(text.slice(0, 3))
        at().data(text.slice(3))
        expect(yield* next).toBe("a é b")
        const taken = yield* Effect.fork(next)
        yield* Effect.yieldNow()
        at().data(bytes(" c"))
        at().end(undefined)
        expect(yield* Fiber.join(taken)).toBe(" c")
        expect(yield* Effect.either(next)).toEqual(Either.left(Option.none()))
        expect(asked).toEqual([])
        yield* close
        expect(asked).toEqual(["close"])
      })
    ))
  it("holds the connection while too much waits, and lets it go on when that is taken", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { asked, at, next } = yield* begun
        const piece = bytes("x".repeat(1024 * 1024))
        for (let n = 0; n < 6; n++) at().data(piece)
        expect(asked).toEqual(["pause"])
        expect(yield* next).toHaveLength(6 * 1024 * 1024)
        expect(asked).toEqual(["pause", "resume"])
      })
    ))
  it("fails where it breaks off, behind what had come", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { at, next } = yield* begun
        at().data(bytes("a"))
        at().end("cut")
        expect(yield* next).toBe("a")
        expect(yield* Effect.either(next)).toEqual(Either.left(Option.some("broken: cut")))
      })
    ))
  it("is refused with its status and the beginning of its text, and broken where it never came", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const refused = answering()
        const first = yield* Effect.fork(Effect.either(Effect.scoped(refused.answer)))
        yield* Effect.yieldNow()
        refused.at().head(409, {})
        refused.at().data(bytes("no"))
        refused.at().end(undefined)
        expect(yield* Fiber.join(first)).toEqual(Either.left("409 no"))
        const absent = answering()
        const second = yield* Effect.fork(Effect.either(Effect.scoped(absent.answer)))
        yield* Effect.yieldNow()
        absent.at().end("ECONNREFUSED")
        expect(yield* Fiber.join(second)).toEqual(Either.left("broken: ECONNREFUSED"))
      })
    ))
  it("closes the connection of one that is given up before it came", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { answer, asked } = answering()
        const fiber = yield* Effect.fork(Effect.scoped(answer))
        yield* Effect.yieldNow()
        expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
        expect(asked).toEqual(["close"])
      })
    ))
})
