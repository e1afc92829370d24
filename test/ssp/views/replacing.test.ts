/**
 * Everything replaced by what was pulled from a scheduler: in one step for readers, in slices for the process
 * (D20).
 */

import { it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { describe, expect } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import type { StoredRecord } from "../../../src/ports/Database.ts"
import type { Views } from "../../../src/ssp/views/Views.ts"
import { change, registration, rows, ticking, withViews } from "../viewsKit.ts"

const size = 20_000

const record = (n: number, version = 1): StoredRecord => {
  const id = Ids.make("t", n)
  return { id, version, doc: { id, n } }
}

const incoming = (count: number, seq = 10, stays: (key: string) => boolean = () => true) => ({
  records: Array.from({ length: count }, (_, n) => record(n, n + 1)),
  position: { seq, logId: "log", epoch: 1 },
  stays
})

const all = "SELECT id FROM t"

const lengthOf = (views: Views["Type"], id: string) =>
  Effect.map(rows(views, id), (data) => (data as ReadonlyArray<unknown>).length)

describe("replace", () => {
  it.effect(
    "D20 records and versions are the snapshot's; views registered here stay and show them, the scheduler's are gone; streams end with rebootstrap",
    () =>
      withViews(({ store, views }) =>
        Effect.gen(function* () {
          yield* ingest(views, [change("t:old", { n: 5 }), change("t:1", { n: 5 })])
          const { content_generation: before } = yield* views.register(registration("direct", all))
          yield* views.register(registration("placed", all, { assignment: 3 }))
          const streams = yield* Effect.forEach(["direct", "placed"], (id) =>
            Effect.fork(Effect.flatMap(streamOf(views, id, undefined, undefined), Stream.runCollect))
          )
          yield* Effect.repeatN(Effect.yieldNow(), 10)
          yield* views.replace(incoming(3, 10, (key) => key === "direct"))
          expect(yield* rows(views, "direct")).toEqual([
            ["t:0", 1],
            ["t:1", 2],
            ["t:2", 3]
          ])
          expect((yield* views.read("direct", undefined)).content_generation).toBeGreaterThan(before)
          expect(yield* Effect.flip(views.read("placed", undefined))).toMatchObject({ _tag: "ViewNotFound" })
          for (const fiber of streams)
            expect([...(yield* Fiber.join(fiber))].at(-1)).toMatchObject({
              event: "end",
              data: { reason: "rebootstrap" }
            })
          expect(
            yield* ingest(views, [change("t:0", { n: 9 }, { seq: 11, log_id: "log", epoch: 1 }, "UPDATE")])
          ).toMatchObject({ views_affected: 1 })
          expect(yield* rows(views, "direct")).toEqual([
            ["t:0", 2],
            ["t:1", 2],
            ["t:2", 3]
          ])
          expect(yield* store.database.views).toMatchObject([{ key: "direct" }])
        })
      )
  )

  it.effect(
    "D5 the position is the snapshot's: what it holds is dropped, what follows is next, another log is refused",
    () =>
      withViews(({ views }) =>
        Effect.gen(function* () {
          yield* ingest(views, [change("t:0", {}, { seq: 500, log_id: "older", epoch: 7 })])
          yield* views.replace(incoming(1))
          const at = (seq: number, more = {}) =>
            ingest(views, [change("t:0", { n: seq }, { seq, log_id: "log", epoch: 1, ...more }, "UPDATE")])
          expect(yield* Effect.flip(at(12))).toMatchObject({ _tag: "SequenceGap", expected: 11 })
          expect(yield* Effect.flip(at(11, { log_id: "older" }))).toMatchObject({ _tag: "StaleEpoch", otherLog: true })
          expect(yield* Effect.flip(at(11, { epoch: 0 }))).toMatchObject({ _tag: "StaleEpoch", otherLog: false })
          yield* at(10)
          yield* views.register(registration("v", "SELECT id FROM t WHERE n = 0"))
          expect(yield* rows(views, "v")).toEqual([["t:0", 1]])
          yield* at(11)
          expect(yield* rows(views, "v")).toEqual([])
        })
      )
  )

  it.effect("D20 the process goes on meanwhile, and no reader sees half of it", () =>
    withViews(
      ({ views }) =>
        Effect.gen(function* () {
          yield* ingest(views, [change("t:old", { n: 1 })])
          yield* views.register(registration("direct", all))
          const replacing = yield* Effect.fork(views.replace(incoming(size)))
          const late = yield* Effect.fork(views.register(registration("late", all)))
          const offered = yield* Effect.fork(
            ingest(views, [change("t:old", { n: 2 }, { seq: 11, log_id: "log", epoch: 1 })])
          )
          let turns = 0
          while ((yield* Fiber.poll(replacing))._tag === "None") {
            turns++
            const seen = yield* Effect.either(lengthOf(views, "direct"))
            if (seen._tag === "Right") expect([1, size, size + 1]).toContain(seen.right)
            expect((yield* Effect.either(views.read("late", undefined)))._tag).toBe("Left")
            yield* Effect.yieldNow()
          }
          expect(turns).toBeGreaterThan(20)
          yield* Fiber.join(late)
          yield* Fiber.join(offered)
          expect([yield* lengthOf(views, "direct"), yield* lengthOf(views, "late")]).toEqual([size + 1, size + 1])
        }),
      ticking()
    )
  )

  it.effect(
    "D31 a view that the scheduler placed before, and that is still filling, is refused; one registered directly is filled anew",
    () =>
      withViews(
        ({ views }) =>
          Effect.gen(function* () {
            yield* views.replace(incoming(size))
            let over = false
            const slow = (id: string, more = {}) =>
              Effect.fork(
                Effect.either(views.register(registration(id, `SELECT id FROM t WHERE n % 2 = 0 AND n >= 0`, more)))
              )
            const placed = yield* slow("placed", { assignment: 3, still: () => !over })
            const direct = yield* slow("direct")
            yield* Effect.repeatN(Effect.yieldNow(), 5)
            expect([(yield* Fiber.poll(placed))._tag, (yield* Fiber.poll(direct))._tag]).toEqual(["None", "None"])
            const replacing = yield* Effect.fork(views.replace(incoming(10, 20, () => false)))
            over = true
            yield* Fiber.join(replacing)
            expect(yield* Fiber.join(placed)).toMatchObject({ _tag: "Left", left: { _tag: "Overloaded" } })
            expect(yield* Fiber.join(direct)).toMatchObject({ _tag: "Right" })
            expect([yield* views.count, yield* lengthOf(views, "direct")]).toEqual([1, 5])
          }),
        ticking()
      )
  )
})
