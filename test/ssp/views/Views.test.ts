/**
 * The views service over a store that the test controls: slow, failing, counted, restarted.
 *
 * What HTTP cannot show is shown here: that nothing is applied that is not durable, that one flush serves many, and
 * what a restart remembers.
 */

import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { describe, expect } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import { DatabaseError } from "../../../src/ports/Database.ts"
import { change, registration, rows, withViews } from "../viewsKit.ts"

describe("durable before visible", () => {
  it.effect("D22 a commit that fails is answered STORE_FAILED, changes nothing, and the next one works", () =>
    withViews(({ views, store }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        store.before = Effect.fail(new DatabaseError({ reason: "failed", message: "database or disk is full" }))
        const failed = yield* Effect.flip(ingest(views, [change("t:1", { n: 1 }), change("t:2", {})]))
        expect(failed).toMatchObject({ _tag: "StoreFailed", message: expect.stringContaining("disk is full") })
        expect(yield* rows(views, "a")).toEqual([])
        store.before = Effect.void
        expect(yield* ingest(views, [change("t:1", { n: 1 })])).toEqual({ views_affected: 1, edges_updated: 1 })
        expect(yield* rows(views, "a")).toEqual([["t:1", 1]])
      })
    )
  )

  it.effect("a registration whose commit fails leaves the old view, and no new one", () =>
    withViews(({ views, store }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        store.before = Effect.fail(new DatabaseError({ reason: "failed", message: "no" }))
        yield* Effect.flip(views.register(registration("a", "SELECT * FROM u")))
        yield* Effect.flip(views.register(registration("b", "SELECT * FROM u")))
        store.before = Effect.void
        yield* ingest(views, [change("t:1", {})])
        expect(yield* rows(views, "a")).toEqual([["t:1", 1]])
        expect(yield* Effect.flip(views.read("b", undefined))).toMatchObject({ _tag: "ViewNotFound" })
        expect((yield* views.debugDeps).shapes.length).toBe(1)
      })
    )
  )

  it.effect("one flush serves all who wait for it", () =>
    withViews(({ views, store }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        store.before = Deferred.await(gate)
        const first = yield* Effect.fork(ingest(views, [change("t:0", {})]))
        yield* Effect.yieldNow()
        const rest = yield* Effect.fork(
          Effect.forEach(
            Array.from({ length: 8 }, (_, i) => i + 1),
            (i) => ingest(views, [change(`t:${i}`, {})]),
            { concurrency: "unbounded" }
          )
        )
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(first)
        yield* Fiber.join(rest)
        expect(store.commits.map((commit) => commit.records.length)).toEqual([1, 8])
      })
    )
  )

  it.effect("D21 a full queue is answered OVERLOADED with limit, value and setting; what was taken is done", () =>
    withViews(({ views, store }) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        store.before = Deferred.await(gate)
        const running = yield* Effect.fork(ingest(views, [change("t:0", {})]))
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        const waiting = yield* Effect.fork(
          ingest(
            views,
            Array.from({ length: 10 }, (_, i) => change(`u:${i}`, {}))
          )
        )
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        const refused = yield* Effect.flip(ingest(views, [change("t:1", {})]))
        expect(refused).toMatchObject({
          _tag: "Overloaded",
          retryAfterSecs: 1,
          message: expect.stringMatching(/10.*10.*SVC_MAX_PENDING_CHANGES/)
        })
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(running)
        yield* Fiber.join(waiting)
        expect((yield* views.debugDeps).tables_in_store).toEqual(["t", "u"])
      })
    )
  )
})

describe("D5 positions", () => {
  it.effect("D5 each seq is applied once and in order; a gap or an old epoch applies nothing", () =>
    withViews(({ views, restart }) =>
      Effect.gen(function* () {
        const at = (seq: number, extra: object = {}) => ({ seq, log_id: "log", epoch: 3, ...extra })
        yield* views.register(registration("a", "SELECT * FROM t"))
        yield* ingest(views, [change("t:1", {}, at(41)), change("t:2", {}, at(42))])
        expect(yield* ingest(views, [change("t:1", { again: true }, at(41))])).toEqual({
          views_affected: 0,
          edges_updated: 0
        })
        expect(yield* Effect.flip(ingest(views, [change("t:3", {}, at(43)), change("t:4", {}, at(45))]))).toMatchObject(
          {
            _tag: "SequenceGap",
            expected: 43
          }
        )
        expect(yield* Effect.flip(ingest(views, [change("t:3", {}, at(43, { epoch: 2 }))]))).toMatchObject({
          _tag: "StaleEpoch"
        })
        expect(yield* Effect.flip(ingest(views, [change("t:3", {}, at(43, { log_id: "other" }))]))).toMatchObject({
          _tag: "StaleEpoch"
        })
        expect(yield* rows(views, "a")).toEqual([
          ["t:1", 1],
          ["t:2", 1]
        ])
        const again = yield* restart
        expect(yield* Effect.flip(ingest(again, [change("t:4", {}, at(44))]))).toMatchObject({
          _tag: "SequenceGap",
          expected: 43
        })
        yield* ingest(again, [change("t:3", {}, at(43))])
        expect(yield* rows(again, "a")).toEqual([
          ["t:1", 1],
          ["t:2", 1],
          ["t:3", 1]
        ])
      })
    )
  )
})

describe("the life of a view", () => {
  it.effect("D9 two ids with the same query and params share one instance, whatever spelling", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t WHERE u = 'x'"))
        yield* views.register(registration("b", "select *  from t where u = $who", { params: { who: "x" } }))
        yield* views.register(registration("c", "SELECT * FROM t WHERE u = 'y'"))
        expect((yield* views.debugDeps).shapes).toMatchObject([{ instances: 2 }])
        expect(yield* ingest(views, [change("t:1", { u: "x" })])).toEqual({ views_affected: 2, edges_updated: 2 })
      })
    )
  )

  it.effect("D17 views beyond the limit are refused, replacing one is not", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        for (const id of ["a", "b", "c"]) yield* views.register(registration(id, "SELECT * FROM t"))
        expect(yield* Effect.flip(views.register(registration("d", "SELECT * FROM t")))).toMatchObject({
          _tag: "Overloaded",
          message: expect.stringContaining("SVC_MAX_VIEWS")
        })
        yield* views.register(registration("a", "SELECT * FROM u"))
      })
    )
  )

  it.effect("D73 a clock that is set before the first sweep ends no view", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t", { ttlMs: 1_600, lastActiveAtMs: 500 }))
        expect(yield* views.expire(3_600_600, 600)).toEqual([])
        expect(yield* views.expire(3_602_500, 2_500)).toEqual(["a"])
      })
    )
  )

  it.effect("D14 a sweep does not remove a view that is being refreshed", () =>
    withViews(({ views, store }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t", { ttlMs: 10 }))
        const gate = yield* Deferred.make<void>()
        store.before = Deferred.await(gate)
        const refresh = yield* Effect.fork(
          views.register(registration("a", "SELECT * FROM t", { ttlMs: 10, lastActiveAtMs: 1_000 }))
        )
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        const sweep = yield* Effect.fork(views.expire(500))
        yield* Effect.repeatN(Effect.yieldNow(), 20)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(refresh)
        expect(yield* Fiber.join(sweep)).toEqual([])
        expect(yield* views.count).toBe(1)
        expect(yield* views.expire(1_011)).toEqual(["a"])
        expect(yield* views.count).toBe(0)
      })
    )
  )

  it.effect(
    "D23 a clean restart keeps results, hash, versions and generations; a crash never lets a generation go back",
    () =>
      withViews(({ views, restart }) =>
        Effect.gen(function* () {
          yield* views.register(registration("a", "SELECT * FROM t WHERE n > 1 ORDER BY n"))
          for (let i = 0; i < 5; i++) yield* ingest(views, [change("t:1", { n: i }, {}, "UPDATE")])
          const before = yield* views.read("a", "tree")
          expect(before.content_generation).toBe(4)
          const again = yield* restart
          expect(yield* again.read("a", "tree")).toEqual(before)
          yield* ingest(again, [change("t:1", { n: 9 }, {}, "UPDATE")])
          expect((yield* again.read("a", undefined)).content_generation).toBe(5)
          expect(yield* rows(again, "a")).toEqual([["t:1", 6]])
        })
      )
  )

  it.effect(
    "D8 rows that are no records: the hash is that of their content, over a restart and on another SSP; versions only grow",
    () =>
      withViews(({ views, restart }) =>
        Effect.gen(function* () {
          const text = "SELECT kind, count() AS n FROM t GROUP BY kind"
          yield* views.register(registration("a", text))
          for (let i = 0; i < 6; i++) yield* ingest(views, [change(`t:${i}`, { kind: i % 2 })])
          const before = yield* views.read("a", "flat")
          const again = yield* restart
          const after = yield* again.read("a", "flat")
          expect(after.result_hash).toBe(before.result_hash)
          const fresh = yield* again.register(registration("b", `${text} ORDER BY kind`))
          expect(fresh.result_hash).toBe(before.result_hash)
          const versions = (answer: typeof before) =>
            (answer.result_data as ReadonlyArray<readonly [string, number]>).map(([, version]) => version)
          expect(versions(after).every((version, i) => version >= (versions(before)[i] ?? 0))).toBe(true)
          yield* ingest(again, [change("t:9", { kind: 1 })])
          expect((yield* again.read("a", "flat")).result_hash).not.toBe(before.result_hash)
        })
      )
  )

  it.effect("D4 a record created again after a restart gets a version above its last one", () =>
    withViews(({ views, restart }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        yield* ingest(views, [
          change("t:1", { n: 1 }),
          change("t:1", { n: 2 }, {}, "UPDATE"),
          change("t:1", {}, {}, "DELETE")
        ])
        const again = yield* restart
        yield* ingest(again, [change("t:1", { n: 1 })])
        expect(yield* rows(again, "a")).toEqual([["t:1", 3]])
      })
    )
  )

  it.effect("D11 a client that comes back gets what it missed, or a snapshot when that is no longer buffered", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        const take = (lastEventId: string | undefined, count: number) =>
          Effect.flatMap(streamOf(views, "a", undefined, lastEventId), (stream) =>
            Stream.runCollect(Stream.take(stream, count))
          )
        const [snapshot] = [...(yield* take(undefined, 1))]
        for (let i = 1; i <= 3; i++) yield* ingest(views, [change(`t:${i}`, {})])
        const missed = [...(yield* take(snapshot?.id, 3))]
        expect(missed.map((event) => event.event)).toEqual(["delta", "delta", "delta"])
        for (let i = 4; i <= 9; i++) yield* ingest(views, [change(`t:${i}`, {})])
        expect([...(yield* take(missed[2]?.id, 1))][0]?.event).toBe("snapshot")
        expect([...(yield* take("nonsense.1", 1))][0]?.event).toBe("snapshot")
      })
    )
  )

  it.effect("D11 streams end with their reason: replaced, unregistered, reset", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        const ends = (act: Effect.Effect<unknown, unknown>) =>
          Effect.gen(function* () {
            yield* views.register(registration("a", "SELECT * FROM t"))
            const fiber = yield* Effect.fork(
              Effect.flatMap(streamOf(views, "a", undefined, undefined), Stream.runCollect)
            )
            yield* Effect.repeatN(Effect.yieldNow(), 20)
            yield* act
            return [...(yield* Fiber.join(fiber))].at(-1)
          })
        expect(yield* ends(views.register(registration("a", "SELECT * FROM u")))).toEqual({
          event: "end",
          id: undefined,
          data: { reason: "replaced" }
        })
        expect(yield* ends(views.unregister("a"))).toMatchObject({ data: { reason: "unregistered" } })
        expect(yield* ends(views.reset)).toMatchObject({ data: { reason: "reset" } })
      })
    )
  )
})
