/**
 * A start whose views have no room in the heap ends with a fault and loses nothing (D43).
 */
import { it } from "@effect/vitest"
import { Cause, Effect, Exit, Logger } from "effect"
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

/** A heap that is half full, and nearly full at one look; `looks` counts them, `released` what was given back. */
const nearlyFullAt = (look: number) => {
  const counted = { looks: 0, released: 0 }
  const memory = (usedMiB: number) => ({ usedBytes: usedMiB * 2 ** 20, limitBytes, isFull: false })
  const heap: HeapShape = {
    memory: () => memory(50),
    measured: () => memory(counted.looks++ === look ? 95 : 50),
    released: () => counted.released++
  }
  return { counted, heap }
}

it.effect("D43 a start gives up a view that fills the heap alone, names it, and serves the others", () =>
  withViews(({ restart, views }) =>
    Effect.gen(function* () {
      const rows = 10_000
      yield* ingest(views, [change("s:1", { n: 1 })])
      for (let from = 0; from < rows; from += 1_000)
        yield* ingest(
          views,
          Array.from({ length: 1_000 }, (_, n) => change(`t:${from + n}`, { n }))
        )
      const queries = ["SELECT * FROM s", "SELECT *, n + 1 AS m FROM t ORDER BY m LIMIT 9000", "SELECT n FROM s"]
      for (const [i, id] of ["a", "large", "z"].entries()) yield* views.register(registration(id, queries[i]!))
      const read = (from: typeof views) => Effect.forEach(["a", "z"], (id) => from.read(id, undefined))
      const before = yield* read(views)
      // The small views fill without a pause, so the look before the last one is made while the large view fills.
      const { counted } = yield* Effect.gen(function* () {
        const all = nearlyFullAt(-1)
        yield* Effect.provideService(restart, Heap, all.heap)
        return all
      })
      const said: Array<string> = []
      const log = Logger.make(({ message }) => void said.push(String(message)))
      const full = nearlyFullAt(counted.looks - 2)
      const again = yield* Effect.provideService(restart, Heap, full.heap).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, log))
      )
      expect(yield* read(again)).toEqual(before)
      expect((yield* Effect.flip(again.read("large", undefined)))._tag).toBe("ViewNotFound")
      expect(said.join("\n")).toMatch(/view large is kept but not served: its rows take more than 45 MiB/)
      expect(said.join("\n")).not.toMatch(/line 1/)
      expect(full.counted.released).toBe(1)
      expect((yield* (yield* restart).read("large", undefined)).result_data).toHaveLength(9_000)
    })
  )
)
