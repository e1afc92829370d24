/**
 * What the views' edges are when the database is as it should be, away, slow, or somebody else's (D21, D9, D14, D16).
 *
 * Through the views service, because what is promised is promised of views: whatever happened, at rest the edges are
 * the result.
 */

import { Deferred, Effect, Fiber, Stream } from "effect"
import { expect, test } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import { change, registration } from "../viewsKit.ts"
import { atRest, away, edgesOf, rowsOf, until, withEdges } from "./edgesKit.ts"

const all = "SELECT * FROM item"

test("D21 edges are the result: rows, children by alias path and parent, nothing for rows that are no records", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [
        change("user:1", {}),
        change("post:1", { by: "user:1" }),
        change("comment:1", { on: "post:1" })
      ])
      yield* views.register(
        registration(
          "incantation:nested",
          "SELECT id, (SELECT id, (SELECT id FROM comment WHERE on = $parent.id) AS comments FROM post WHERE by = $parent.id) AS posts FROM user"
        )
      )
      yield* views.register(registration("counts", "SELECT count() AS n FROM user GROUP ALL"))
      expect(yield* atRest({ edges, views }, beside, "nested")).toEqual([
        "posts of user:1: post:1 v1",
        "posts.comments of post:1: comment:1 v1",
        "user:1 v1"
      ])
      yield* ingest(views, [
        change("comment:1", { on: "post:1", text: "x" }),
        change("comment:2", { on: "post:1" }),
        change("user:2", {}),
        change("post:2", { by: "user:2" })
      ])
      expect(yield* atRest({ edges, views }, beside, "nested")).toEqual([
        "posts of user:1: post:1 v1",
        "posts of user:2: post:2 v1",
        "posts.comments of post:1: comment:1 v2",
        "posts.comments of post:1: comment:2 v1",
        "user:1 v1",
        "user:2 v1"
      ])
      yield* ingest(views, [change("user:1", {}, {}, "DELETE"), change("post:2", {}, {}, "DELETE")])
      expect(yield* atRest({ edges, views }, beside, "nested")).toEqual(["user:2 v1"])
      expect(yield* edgesOf(beside, "counts")).toEqual([])
    })
  ))

test("D21 changes and registrations are answered while a batch is on its way; what comes meanwhile goes together, one operation per edge", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all))
      yield* edges.settled
      const gate = yield* Deferred.make<void>()
      beside.beforeApply = Deferred.await(gate)
      yield* ingest(views, [change("item:0", { n: 0 })])
      yield* Effect.sleep(20)
      for (let n = 1; n <= 100; n++) yield* ingest(views, [change(`item:${n % 10}`, { n })])
      yield* views.register(registration("w", "SELECT * FROM item WHERE n > 95"))
      expect(beside.batches).toEqual([])
      expect(edges.counts().waiting).toBeLessThanOrEqual(12)
      beside.beforeApply = Effect.void
      yield* Deferred.succeed(gate, undefined)
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
      expect(yield* edgesOf(beside, "w")).toEqual(yield* rowsOf(views, "w"))
      expect(beside.batches.length).toBeLessThanOrEqual(3)
      expect(edges.counts()).toMatchObject({ failures: 0, refused: 0, lost: 0, compared: 2 })
    })
  ))

test("D21 D44 edges that come together are written together, 5,000 at most, and 500 behind an attempt that failed", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      const sizes = (): ReadonlyArray<number> =>
        beside.batches.splice(0).map((batch) => batch.reduce((sum, { puts }) => sum + puts.length, 0))
      yield* ingest(
        views,
        Array.from({ length: 6_200 }, (_, n) => change(`item:${n}`, { n }))
      )
      yield* views.register(registration("v", all))
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
      expect(sizes()).toEqual([5_000, 1_200])
      beside.beforeApply = Effect.fail(away)
      yield* ingest(
        views,
        Array.from({ length: 1_200 }, (_, n) => change(`item:${n}`, { n: n + 1 }, {}, "UPDATE"))
      )
      yield* until("a failure", () => edges.counts().failures > 0)
      beside.beforeApply = Effect.void
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
      expect(sizes()).toEqual([500, 700])
    })
  ))

test("D21 while the database is away nothing is lost; when the queue is full changes are answered OVERLOADED, naming the setting, and taken again when it is not", () =>
  withEdges(
    ({ beside, edges, views, warnings }) =>
      Effect.gen(function* () {
        yield* views.register(registration("v", all))
        yield* edges.settled
        beside.before = Effect.fail(away)
        let taken = 0
        let refused: unknown
        for (let n = 0; refused === undefined && n < 100; n++) {
          const answer = yield* Effect.either(ingest(views, [change(`item:${n}`, { n }), change("item:same", { n })]))
          if (answer._tag === "Left") refused = answer.left
          else taken++
        }
        expect(taken).toBe(19)
        expect(refused).toMatchObject({
          _tag: "Overloaded",
          message: expect.stringMatching(/20 edges.*20 \(SVC_MAX_PENDING_EDGES\)/)
        })
        yield* until("several tries", () => edges.counts().failures > 3)
        expect(yield* edgesOf(beside, "v")).toEqual([])
        beside.before = Effect.void
        expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
        expect((yield* edgesOf(beside, "v")).length).toBe(taken + 1)
        yield* ingest(views, [change("item:more", {})])
        expect(yield* atRest({ edges, views }, beside, "v")).toContain("item:more v1")
        expect(warnings.filter((text) => text.includes("edges could not be written")).length).toBe(1)
      }),
    20
  ))

test("D21 what comes while a batch fails is newer than what comes back", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all))
      yield* edges.settled
      const gate = yield* Deferred.make<void>()
      beside.beforeApply = Effect.zipRight(Deferred.await(gate), Effect.fail(away))
      yield* ingest(views, [change("item:1", {}), change("item:2", {})])
      yield* Effect.sleep(20)
      yield* ingest(views, [change("item:1", {}, {}, "DELETE"), change("item:2", { n: 2 })])
      yield* Deferred.succeed(gate, undefined)
      yield* until("a failure", () => edges.counts().failures > 0)
      beside.beforeApply = Effect.void
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:2 v2"])
    })
  ))

test("D21 a view that another has taken over is dropped with `moved`; its registration and edges stay, the others of its batch are written", () =>
  withEdges(({ beside, edges, views, warnings }) =>
    Effect.gen(function* () {
      for (const id of ["mine", "theirs"]) yield* views.register(registration(id, all))
      yield* edges.settled
      const events = yield* Effect.fork(Stream.runCollect(yield* streamOf(views, "theirs", undefined, undefined)))
      yield* Effect.sleep(20)
      const [theirs] = (yield* beside.database.registrations).filter(({ key }) => key === "theirs")
      yield* beside.database.register(theirs!, "another")
      yield* ingest(views, [change("item:1", {})])
      const last = [...(yield* Fiber.join(events))].at(-1)
      expect(last).toMatchObject({ event: "end", data: { reason: "moved" } })
      expect(yield* atRest({ edges, views }, beside, "mine")).toEqual(["item:1 v1"])
      expect(yield* edgesOf(beside, "theirs")).toEqual([])
      yield* until("the view is gone", () => warnings.length > 0)
      expect((yield* Effect.flip(views.read("theirs", undefined)))._tag).toBe("ViewNotFound")
      expect((yield* beside.database.registrations).map(({ key, owner }) => [key, owner])).toEqual([
        ["mine", "me"],
        ["theirs", "another"]
      ])
      expect(warnings).toEqual([expect.stringContaining("view theirs has another owner")])
      expect(edges.counts().lost).toBe(1)
      // Registered here again it is ours again, with the edges of now.
      yield* views.register(registration("theirs", all))
      expect(yield* atRest({ edges, views }, beside, "theirs")).toEqual(["item:1 v1"])
    })
  ))

test("D21 an edge that the database refuses is counted, logged once a view, and holds up no other edge", () =>
  withEdges(({ beside, edges, views, warnings }) =>
    Effect.gen(function* () {
      beside.refuses = new Set(["item:1", "item:2"])
      yield* views.register(registration("v", all))
      yield* ingest(
        views,
        [1, 2, 3].map((n) => change(`item:${n}`, {}))
      )
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:3 v1"])
      yield* ingest(views, [change("item:1", { n: 1 })])
      yield* edges.settled
      expect(edges.counts()).toMatchObject({ refused: 3, failures: 0 })
      expect(warnings).toEqual([expect.stringMatching(/edge of view v to item:1: odd/)])
    })
  ))

for (const how of ["the compare", "a registration", "themselves"] as const)
  test(`D21 edges that the database has refused are kept in mind, and written once it takes them: by ${how}`, () =>
    withEdges(
      ({ beside, edges, views, warnings }) =>
        Effect.gen(function* () {
          const records = Array.from({ length: 20 }, (_, n) => `item:${n}`)
          const register = Effect.asVoid(views.register(registration("v", all)))
          const again = how === "the compare" ? edges.heal : how === "a registration" ? register : Effect.sleep(100)
          yield* ingest(
            views,
            records.map((id) => change(id, {}))
          )
          beside.refuses = new Set(records.slice(3))
          yield* register
          expect((yield* atRest({ edges, views }, beside, "v")).length).toBe(3)
          expect(edges.refused("v")).toEqual({ count: 17, edge: "item:3", reason: "odd" })
          // Tried while it refuses them still, they are no news.
          const before = beside.batches.length
          yield* again
          yield* until("tried again", () => beside.batches.length > before && edges.refused("v")?.count === 17)
          expect((yield* atRest({ edges, views }, beside, "v")).length).toBe(3)
          beside.refuses = new Set()
          yield* again
          yield* until("not refused", () => edges.refused("v") === undefined)
          expect(yield* atRest({ edges, views }, beside, "v")).toEqual(records.map((id) => `${id} v1`).sort())
          expect([edges.refused("v"), warnings.length]).toEqual([undefined, 1])
        }),
      undefined,
      how === "themselves" ? 50 : undefined
    ))

test("D9 a view that is replaced has its edges diffed; one whose client changes has all of them written for the new client", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(
        views,
        Array.from({ length: 20 }, (_, n) => change(`item:${n}`, { n }))
      )
      yield* views.register(registration("v", "SELECT * FROM item WHERE n < 10"))
      yield* edges.settled
      beside.batches.length = 0
      yield* views.register(registration("v", "SELECT * FROM item WHERE n > 1 AND n < 12"))
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
      const written = beside.batches
        .flat()
        .map(({ puts, removals }) => [puts.map(({ out }) => out.text), removals.map(({ out }) => out.text)])
      expect(written).toEqual([
        [
          ["item:10", "item:11"],
          ["item:0", "item:1"]
        ]
      ])
      beside.batches.length = 0
      yield* views.register(registration("v", "SELECT * FROM item WHERE n > 1 AND n < 12", { clientId: "other" }))
      yield* edges.settled
      expect(
        beside.batches.flat().map(({ clientId, puts, removals }) => [clientId, puts.length, removals.length])
      ).toEqual([["other", 10, 0]])
      beside.batches.length = 0
      yield* views.register(registration("v", "SELECT * FROM item WHERE n > 1 AND n < 12", { clientId: "other" }))
      yield* edges.settled
      expect(beside.batches).toEqual([])
    })
  ))

test("D21 edges of a deleted record are removed with all others, in one batch", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(
        views,
        [1, 2, 3].map((n) => change(`item:${n}`, { ok: true }))
      )
      yield* views.register(registration("v", "SELECT * FROM item WHERE ok"))
      yield* edges.settled
      beside.batches.length = 0
      yield* ingest(views, [
        change("item:1", {}, {}, "DELETE"),
        change("item:2", { ok: true, n: 1 }),
        change("item:3", { ok: false })
      ])
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:2 v2"])
      expect(
        beside.batches.map((batch) =>
          batch.map(({ puts, removals }) => [puts.map(({ out }) => out.text), removals.map(({ out }) => out.text)])
        )
      ).toEqual([[[["item:2"], ["item:1", "item:3"]]]])
    })
  ))

test("D9 what an earlier view of that id has on its way or waiting is not left behind", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all))
      yield* edges.settled
      const gate = yield* Deferred.make<void>()
      beside.beforeApply = Deferred.await(gate)
      yield* ingest(views, [change("item:1", {})])
      yield* Effect.sleep(20)
      yield* ingest(views, [change("item:2", {}), change("item:3", { n: 5 })])
      yield* views.register(registration("v", "SELECT * FROM item WHERE n = 5"))
      yield* Effect.sleep(20)
      beside.beforeApply = Effect.void
      yield* Deferred.succeed(gate, undefined)
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:3 v1"])
    })
  ))

test("D21 after a restart only the difference is written, by whatever name the SSP comes back", () =>
  withEdges(({ beside, edges, start, views }) =>
    Effect.gen(function* () {
      yield* ingest(
        views,
        Array.from({ length: 50 }, (_, n) => change(`item:${n}`, { n }))
      )
      for (const id of ["v", "w"]) yield* views.register(registration(id, all))
      yield* edges.settled
      for (const owner of ["me", "other"]) {
        const before = beside.batches.length
        const [one] = yield* Effect.map(Stream.runCollect(beside.database.edges("v")), (chunks) => [...chunks].flat())
        const held = (yield* beside.database.registrations).find(({ key }) => key === "v")!
        const stray = { ...one!, version: 9 }
        yield* beside.database.apply([
          { key: "v", clientId: "c", owner: held.owner ?? "", assignment: held.assignment, puts: [stray], removals: [] }
        ])
        const again = yield* start(owner)
        expect(yield* atRest(again, beside, "v")).toEqual(yield* rowsOf(again.views, "v"))
        expect(again.edges.counts()).toMatchObject({
          compared: 2,
          found: 100,
          differences: 1,
          puts: 1,
          removals: 0,
          batches: 1
        })
        expect(beside.batches.length).toBe(before + 1)
        yield* ingest(again.views, [change("item:0", { owner })])
        expect(yield* atRest(again, beside, "w")).toEqual(yield* rowsOf(again.views, "w"))
      }
    })
  ))

test("D6 a registration that the database does not take is answered STORE_FAILED and leaves everything as it was", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      yield* views.register(registration("v", all))
      yield* edges.settled
      beside.before = Effect.fail(away)
      for (const id of ["v", "new"])
        expect(yield* Effect.flip(views.register(registration(id, "SELECT * FROM item WHERE n = 1")))).toMatchObject({
          _tag: "StoreFailed",
          message: expect.stringContaining("nobody answers")
        })
      expect(yield* views.count).toBe(1)
      expect(yield* rowsOf(views, "v")).toEqual(["item:1 v1"])
      beside.before = Effect.void
      expect((yield* beside.database.registrations).map(({ surql }) => surql)).toEqual([all])
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:1 v1"])
    })
  ))
