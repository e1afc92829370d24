/**
 * A start whose views have no room in the heap ends with a fault and loses nothing (D43).
 */
import { it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { expect } from "vitest"
import { ingest } from "../../../kit/checks/viewsAsked.ts"
import { Heap, type HeapShape } from "../../../src/ports/ProcessFigures.ts"
import { change, registration, withViews } from "../viewsKit.ts"

const limitBytes = 100 * 2 ** 20

/** A heap that is measured to hold so many MiB at first, and ten more at each look. */
const growing = (from: number): HeapShape => {
  let used = from
  const memory = () => ({ usedBytes: used * 2 ** 20, limitBytes, isFull: false })
  const measured = () => {
    const now = memory()
    used += 10
    return now
  }
  return { memory, measured, released: () => {} }
}

it.effect("D43 D23 a start says how many views fit, and the next one has all of them with their generations", () =>
  withViews(({ views, restart }) =>
    Effect.gen(function* () {
      for (const [i, id] of ["a", "b", "c"].entries())
        yield* views.register(registration(id, `SELECT * FROM t WHERE n >= ${i}`))
      for (let n = 0; n < 5; n++) yield* ingest(views, [change("t:1", { n }, {}, "UPDATE")])
      const before = yield* Effect.forEach(["a", "b", "c"], (id) => views.read(id, undefined))
      // One look for the records, one before all views, one before each view.
      const exit = yield* Effect.exit(Effect.provideService(restart, Heap, growing(60)))
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toMatch(
        /limit of 100 MiB is too small for what is stored: 2 of 3 views take 30 MiB beside 70 MiB .*SVC_MAX_MEMORY/
      )
      const again = yield* restart
      expect(yield* Effect.forEach(["a", "b", "c"], (id) => again.read(id, undefined))).toEqual(before)
    })
  )
)
