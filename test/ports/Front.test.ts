/** A node that waits for a server to listen says so, where the server that it was composed with never does. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, TestClock } from "effect"
import { Serving } from "../../src/ports/Front.ts"

const logged = () => {
  const lines: Array<unknown> = []
  const into = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => void lines.push(...[message].flat()))
  )
  return { into, lines }
}

describe("Serving.portFor", () => {
  it.effect("warns once, with the layer that is missing, and goes on when the server listens", () => {
    const { into, lines } = logged()
    return Effect.gen(function* () {
      const serving = yield* Serving
      const waiting = yield* Effect.fork(Serving.portFor(serving, "the registration"))
      yield* TestClock.adjust("9 seconds")
      expect(lines).toEqual([])
      yield* TestClock.adjust("1 hour")
      expect(lines).toEqual([expect.stringContaining("Serving.layerListening(port)")])
      yield* serving.listening(8667)
      expect(yield* Fiber.join(waiting)).toBe(8667)
    }).pipe(Effect.provide(Layer.merge(Serving.layer, into)))
  })
  it.effect("says nothing where a server listens", () => {
    const { into, lines } = logged()
    return Effect.gen(function* () {
      yield* Serving.portFor(yield* Serving, "the registration")
      yield* TestClock.adjust("1 hour")
      expect(lines).toEqual([])
    }).pipe(Effect.provide(Serving.layerListening(1).pipe(Layer.provideMerge(Serving.layer), Layer.provideMerge(into))))
  })
})
