/**
 * Registrations that take many turns of the event loop: what may happen while a view fills, and what must not.
 */

import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { describe, expect } from "vitest"
import { ingest } from "../../kit/checks/viewsAsked.ts"
import type { Views } from "../../src/ssp/views/Views.ts"
import type { ViewRegistration } from "../../src/ssp/viewTypes.ts"
import { change, type Kit, registration, rows, ticking, withViews } from "./viewsKit.ts"

const size = 8_000
/** No index helps it: every record of the table is looked at. */
const slow = "SELECT id FROM t WHERE n % 2 = 0"

const withRecords = (body: (kit: Kit) => Effect.Effect<unknown, unknown>) =>
  withViews(
    (kit) =>
      Effect.zipRight(
        ingest(
          kit.views,
          Array.from({ length: size }, (_, n) => change(`t:${n}`, { n }))
        ),
        body(kit)
      ),
    ticking()
  )

const begun = (views: Views["Type"], id: string, surql = slow, more: Partial<ViewRegistration> = {}) =>
  Effect.fork(views.register(registration(id, surql, more))).pipe(
    Effect.tap(() => Effect.repeatN(Effect.yieldNow(), 5))
  )

const running = (fiber: Fiber.Fiber<unknown, unknown>) => Effect.map(Fiber.poll(fiber), (exit) => exit._tag === "None")

const ids = (views: Views["Type"], id: string) =>
  Effect.map(rows(views, id), (data) => (data as ReadonlyArray<readonly [string, number]>).map(([key]) => key))

describe("while a view fills", () => {
  it.effect(
    "L1 changes are applied and answered, other views are registered and read, and the result counts them all",
    () =>
      withRecords(({ views }) =>
        Effect.gen(function* () {
          const filling = yield* begun(views, "slow")
          let meanwhile = 0
          while (yield* running(filling)) {
            yield* ingest(views, [
              change(`t:${meanwhile}`, { n: meanwhile + 1 }, {}, "UPDATE"),
              change(`t:${size + meanwhile}`, { n: 2 })
            ])
            if (meanwhile === 3) {
              yield* views.register(registration("quick", "SELECT id FROM u"))
              expect(yield* running(filling)).toBe(true)
              expect(yield* Effect.flip(views.read("slow", undefined))).toMatchObject({ _tag: "ViewNotFound" })
            }
            meanwhile++
          }
          expect(meanwhile).toBeGreaterThan(5)
          const expected = new Set([
            ...Array.from({ length: size }, (_, n) => ((n < meanwhile ? n % 2 === 1 : n % 2 === 0) ? `t:${n}` : "")),
            ...Array.from({ length: meanwhile }, (_, i) => `t:${size + i}`)
          ])
          expected.delete("")
          expect(new Set(yield* ids(views, "slow"))).toEqual(expected)
          const undisturbed = yield* views.register(registration("after", `${slow} AND n >= 0`))
          expect((yield* views.read("slow", undefined)).result_hash).toBe(undisturbed.result_hash)
          expect(yield* ingest(views, [change("t:1", { n: 0 }, {}, "UPDATE")])).toMatchObject({ views_affected: 2 })
        })
      )
  )

  it.effect("D9 the later request for one id wins: another query, its removal", () =>
    withRecords(({ views }) =>
      Effect.gen(function* () {
        const first = yield* begun(views, "a")
        const second = yield* begun(views, "a", "SELECT id FROM u")
        expect(yield* running(second)).toBe(true)
        yield* Fiber.join(first)
        yield* Fiber.join(second)
        expect(yield* ids(views, "a")).toEqual([])
        const third = yield* begun(views, "a", `${slow} LIMIT 3`)
        const removed = yield* Effect.fork(views.unregister("a"))
        expect(yield* Fiber.join(third)).toHaveProperty("result_data.length", 3)
        yield* Fiber.join(removed)
        expect(yield* views.count).toBe(0)
        expect((yield* views.debugDeps).shapes).toEqual([])
      })
    )
  )

  it.effect("D16 a reset has it begin again on the empty store", () =>
    withRecords(({ views }) =>
      Effect.gen(function* () {
        const filling = yield* begun(views, "a")
        yield* views.reset
        expect(yield* Fiber.join(filling)).toMatchObject({ result_data: [] })
        yield* ingest(views, [change("t:4", { n: 4 })])
        expect(yield* ids(views, "a")).toEqual(["t:4"])
      })
    )
  )

  it.effect("D16 a view that is filled but not durable yet when everything is cleared is live all the same", () =>
    withRecords(({ store, views }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        store.before = Deferred.await(gate)
        const busy = yield* Effect.fork(ingest(views, [change("t:0", { n: 7 })]))
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        const cleared = yield* Effect.fork(views.reset)
        const registered = yield* begun(views, "a")
        yield* Effect.repeatN(Effect.yieldNow(), 400)
        yield* Deferred.succeed(gate, undefined)
        for (const fiber of [busy, cleared, registered]) yield* Fiber.join(fiber as Fiber.Fiber<unknown, unknown>)
        yield* ingest(views, [change("t:4", { n: 4 })])
        expect(yield* ids(views, "a")).toEqual(["t:4"])
      })
    )
  )

  it.effect("a client that leaves takes its half-filled view along, and the same view can be registered after", () =>
    withRecords(({ store, views }) =>
      Effect.gen(function* () {
        const filling = yield* begun(views, "a")
        expect((yield* views.debugDeps).shapes).toHaveLength(1)
        yield* Fiber.interrupt(filling)
        expect((yield* views.debugDeps).shapes).toEqual([])
        expect(store.commits.every((commit) => commit.putViews.length === 0)).toBe(true)
        expect(yield* views.register(registration("a", slow))).toHaveProperty("result_data.length", size / 2)
      })
    )
  )

  it.effect("a client that leaves while its registration becomes durable leaves a view that is served", () =>
    withViews(({ store, views }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        store.before = Deferred.await(gate)
        const waiting = yield* begun(views, "a", "SELECT * FROM t")
        yield* Fiber.interrupt(waiting)
        yield* Deferred.succeed(gate, undefined)
        yield* ingest(views, [change("t:1", {})])
        expect(yield* ids(views, "a")).toEqual(["t:1"])
      })
    )
  )

  it.effect("a stop tells it to come back, and keeps nothing of it", () =>
    withRecords(({ restart, stop, store, views }) =>
      Effect.gen(function* () {
        const filling = yield* begun(views, "a")
        yield* stop
        expect(yield* Effect.flip(Fiber.join(filling))).toMatchObject({
          _tag: "Overloaded",
          message: expect.stringContaining("stopping")
        })
        expect(yield* Effect.flip(views.register(registration("b", slow)))).toMatchObject({ _tag: "Overloaded" })
        expect(store.commits.every((commit) => commit.putViews.length === 0)).toBe(true)
        expect(yield* (yield* restart).count).toBe(0)
      })
    )
  )

  it.effect("D17 views on their way count against the limit", () =>
    withRecords(({ views }) =>
      Effect.gen(function* () {
        const filling = yield* Effect.forEach(["a", "b", "c"], (id) =>
          begun(views, id, `${slow} AND n != ${id.charCodeAt(0)}`)
        )
        expect(yield* Effect.flip(views.register(registration("d", "SELECT * FROM u")))).toMatchObject({
          _tag: "Overloaded",
          message: expect.stringMatching(/3.*3.*SVC_MAX_VIEWS/)
        })
        yield* Fiber.interrupt(filling[0]!)
        yield* views.register(registration("d", "SELECT * FROM u"))
        for (const fiber of filling.slice(1)) yield* Fiber.join(fiber)
        expect(yield* views.count).toBe(3)
      })
    )
  )

  it.effect("D14 a sweep leaves a view alone whose refresh is on its way", () =>
    withRecords(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM u", { ttlMs: 10 }))
        const refresh = yield* begun(views, "a", slow, { ttlMs: 10, lastActiveAtMs: 1_000 })
        expect(yield* views.expire(500)).toEqual([])
        yield* Fiber.join(refresh)
        expect(yield* views.expire(1_011)).toEqual(["a"])
      })
    )
  )

  it.effect("D23 a restart fills in slices too, and answers as before", () =>
    withRecords(({ restart, views }) =>
      Effect.gen(function* () {
        const before = yield* views.register(registration("a", slow))
        expect((yield* (yield* restart).read("a", undefined)).result_hash).toBe(before.result_hash)
      })
    )
  )
})

describe("D17 limits of a view's work", () => {
  it.effect("D17 a row that needs more steps than SVC_QUERY_ROW_STEPS is left out, with limit and setting named", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* ingest(views, [
          change("t:1", { list: Array.from({ length: 2_000 }, (_, n) => n) }),
          change("t:2", { list: [1] })
        ])
        const answer = yield* views.register(
          registration("a", "SELECT id FROM t WHERE list.map(|$v| $v + 1).len() > 0")
        )
        expect(answer).toMatchObject({
          result_data: [["t:2", 1]],
          errors: [{ id: "t:1", failure: { reason: expect.stringMatching(/1000 steps.*SVC_QUERY_ROW_STEPS/) } }]
        })
      })
    )
  )

  it.effect(
    "D17 a query run as a whole that needs more than SVC_QUERY_ROW_STEPS shows no rows, with limit and setting named",
    () =>
      withViews(({ views }) =>
        Effect.gen(function* () {
          for (let at = 0; at < 1_000; at += 10)
            yield* ingest(
              views,
              Array.from({ length: 10 }, (_, i) => change(`t:${at + i}`, { n: at + i }))
            )
          const answer = yield* views.register(
            registration("a", `SELECT id FROM ${Array.from({ length: 101 }, () => "t").join(", ")}`)
          )
          expect(answer).toMatchObject({
            result_data: [],
            errors: [{ id: "", failure: { reason: expect.stringMatching(/\d steps.*SVC_QUERY_ROW_STEPS/) } }]
          })
        })
      )
  )
})
