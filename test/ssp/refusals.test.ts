/**
 * Refusals that filling has found: asked again they are answered without another fill, and not for longer than finding
 * them pays for.
 */

import { it } from "@effect/vitest"
import { Effect } from "effect"
import { expect } from "vitest"
import { ingest } from "../../kit/checks/viewsAsked.ts"
import { Refusals } from "../../src/core/view/refusals.ts"
import { QueryRefused } from "../../src/ssp/viewTypes.ts"
import { change, registration, ticking, withViews } from "./viewsKit.ts"

const error = new QueryRefused({ message: "too large", line: 1, column: 1 })

it("D81 a refusal counts for ten times as long as it took to find, and a minute at most", () => {
  const refusals = new Refusals<QueryRefused>()
  refusals.add("q", error, { sinceMs: 100, used: 5 }, 200)
  expect([refusals.of("q", 1_199, 5), refusals.of("other", 1_199, 5)]).toEqual([error, undefined])
  expect(refusals.of("q", 1_200, 5)).toBeUndefined()
  expect(refusals.isEmpty).toBe(true)
  refusals.add("q", error, { sinceMs: 0, used: 5 }, 20_000)
  expect([refusals.of("q", 79_999, 5), refusals.of("q", 80_000, 5)]).toEqual([error, undefined])
})

it("D81 it does not count once rows of views keep less than when it was found", () => {
  const refusals = new Refusals<QueryRefused>()
  refusals.add("q", error, { sinceMs: 0, used: 5 }, 100)
  expect([refusals.of("q", 101, 6), refusals.of("q", 102, 4)]).toEqual([error, undefined])
})

it("D81 no more than a thousand are remembered, the latest", () => {
  const refusals = new Refusals<QueryRefused>()
  for (let n = 0; n <= 1_000; n++) refusals.add(`q${n}`, error, { sinceMs: 0, used: 0 }, 100)
  expect([refusals.of("q0", 101, 0), refusals.of("q1", 101, 0)]).toEqual([undefined, error])
})

it.effect("D81 a result that is too large is found out once, and other formats and queries are not refused by it", () =>
  withViews(
    ({ views }) =>
      Effect.gen(function* () {
        const text = "x".repeat(300_000)
        for (const n of [1, 2, 3, 4]) yield* ingest(views, [change(`t:${n}`, { text, n })])
        const ask = (format: "tree" | "flat", surql = "SELECT text FROM t") =>
          Effect.either(views.register(registration("a", surql, { format })))
        const first = yield* ask("tree")
        expect(first).toMatchObject({ left: { _tag: "QueryRefused" } })
        // Fewer rows, and the answer is remembered: no row is looked at.
        yield* ingest(views, [change("t:4", {}, {}, "DELETE"), change("t:3", {}, {}, "DELETE")])
        const again = yield* ask("tree")
        expect(again._tag === "Left" && first._tag === "Left" && again.left === first.left).toBe(true)
        expect(yield* ask("tree", "SELECT text FROM t WHERE n = 1")).toMatchObject({ right: {} })
        expect(yield* ask("flat")).toMatchObject({ right: { result_data: { length: 2 } } })
      }),
    ticking()
  )
)
