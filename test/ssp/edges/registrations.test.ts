/**
 * Registrations in the database over the life of a view: written, taken back, expired by the time stored there, cleared
 * (D14, D16, D21).
 *
 * Apart from the edges because a registration is somebody's word that a view is wanted, and two places keep it.
 */

import { Effect, Either, Fiber, Option, Stream } from "effect"
import { expect, test } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import type { StoredView } from "../../../src/ports/Database.ts"
import type { UpstreamError } from "../../../src/ports/Upstream.ts"
import { change, registration } from "../viewsKit.ts"
import { atRest, away, edgesOf, rowsOf, until, withEdges } from "./edgesKit.ts"

const all = "SELECT * FROM item"

const keysIn = ({
  database
}: {
  readonly database: { readonly registrations: Effect.Effect<ReadonlyArray<{ readonly key: string }>, unknown> }
}) => Effect.map(database.registrations, (found) => found.map(({ key }) => key).sort())

test("D21 our tables are defined before the first registration, and not again", () =>
  withEdges(({ beside, views }) =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const { register } = beside.shape
      let prepare: Effect.Effect<void, UpstreamError> = Effect.fail(away)
      Object.assign(beside.shape, {
        prepare: Effect.suspend(() => Effect.tap(prepare, () => Effect.sync(() => calls.push("prepare")))),
        register: (view: StoredView, owner: string) =>
          Effect.tap(register(view, owner), () => Effect.sync(() => calls.push(view.key)))
      })
      expect((yield* Effect.flip(views.register(registration("v", all))))._tag).toBe("StoreFailed")
      prepare = Effect.void
      for (const id of ["v", "w"]) yield* views.register(registration(id, all))
      expect(calls).toEqual(["prepare", "v", "w"])
    })
  ))

test("D21 an unregistered view takes its registration and edges with it, as soon as the database is there", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      for (const id of ["v", "incantation:w", "x"]) yield* views.register(registration(id, all))
      yield* edges.settled
      beside.before = Effect.fail(away)
      yield* views.unregister("_svc_query:v")
      yield* views.unregister("w")
      yield* views.unregister("unknown")
      expect(yield* views.count).toBe(1)
      yield* Effect.sleep(80)
      expect(yield* keysIn(beside)).toEqual(["v", "w", "x"])
      beside.before = Effect.void
      expect(yield* atRest({ edges, views }, beside, "x")).toEqual(["item:1 v1"])
      expect([yield* keysIn(beside), yield* edgesOf(beside, "v")]).toEqual([["x"], []])
    })
  ))

test("D21 a view registered again while it is being removed is there, with its edges", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {}), change("item:2", {})])
      yield* views.register(registration("v", all))
      yield* edges.settled
      for (const pause of [0, 30, 48, 50, 52, 55, 80]) {
        yield* views.unregister("v")
        yield* Effect.sleep(pause)
        yield* views.register(registration("v", "SELECT * FROM item WHERE id != item:1"))
        expect(yield* atRest({ edges, views }, beside, "v"), `${pause} ms later`).toEqual(["item:2 v1"])
        expect(yield* keysIn(beside)).toEqual(["v"])
      }
      // The database has the row, and we do not know it yet.
      const { register } = beside.shape
      Object.assign(beside.shape, {
        register: (view: StoredView, owner: string) =>
          Effect.tap(register(view, owner), () => Effect.sleep("150 millis"))
      })
      yield* views.unregister("v")
      yield* views.register(registration("v", all))
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:1 v1", "item:2 v1"])
      expect(yield* keysIn(beside)).toEqual(["v"])
      expect(edges.counts().lost).toBe(0)
    })
  ))

test("D21 a registration that its owner has deleted in the database is not touched by us again", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all))
      yield* edges.settled
      yield* views.unregister("v", true)
      yield* Effect.sleep(100)
      expect([yield* views.count, yield* keysIn(beside)]).toEqual([0, ["v"]])
    })
  ))

test("D21 unregistering a view that another has by now leaves it to the other", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      yield* views.register(registration("v", all))
      yield* edges.settled
      const [held] = yield* beside.database.registrations
      yield* beside.database.register(held!, "another")
      yield* views.unregister("v")
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(["item:1 v1"])
      expect((yield* beside.database.registrations).map(({ owner }) => owner)).toEqual(["another"])
    })
  ))

test("D14 of the time known here and the one in the database the later counts, for how long a view lives", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      for (const id of ["refreshed", "silent"])
        yield* views.register(registration(id, all, { lastActiveAtMs: 0, ttlMs: 1_000 }))
      yield* edges.settled
      // A client says in the database that it is alive.
      const refreshed = (yield* beside.database.registrations).find(({ key }) => key === "refreshed")!
      yield* beside.database.register({ ...refreshed, lastActiveAtMs: 1_060 }, "me")
      expect(yield* views.expire(1_062)).toEqual([])
      beside.before = Effect.fail(away)
      expect((yield* Effect.flip(views.expire(1_063)))._tag).toBe("StoreFailed")
      expect(yield* views.count).toBe(2)
      beside.before = Effect.void
      expect(yield* views.expire(1_063)).toEqual(["silent"])
      expect(yield* atRest({ edges, views }, beside, "refreshed")).toEqual(["item:1 v1"])
      expect(yield* keysIn(beside)).toEqual(["refreshed"])
      // What was read there is known here: nobody is asked again before it is time.
      beside.before = Effect.fail(away)
      expect(yield* views.expire(2_122)).toEqual([])
      beside.before = Effect.void
      expect(yield* views.expire(2_123)).toEqual(["refreshed"])
      yield* edges.settled
      expect(yield* keysIn(beside)).toEqual([])
    })
  ))

test("D14 a view that another keeps alive does not expire here: it is the other's", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all, { lastActiveAtMs: 0, ttlMs: 1_000 }))
      yield* edges.settled
      const [held] = yield* beside.database.registrations
      yield* beside.database.register(held!, "another")
      expect(yield* views.expire(2_000)).toEqual([])
      for (let tries = 0; (yield* views.count) > 0 && tries < 1_000; tries++) yield* Effect.sleep(2)
      expect([yield* views.count, yield* keysIn(beside), edges.counts().lost]).toEqual([0, ["v"], 1])
    })
  ))

test("D14 a view registered again while it expires stays", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      yield* views.register(registration("v", all, { lastActiveAtMs: 0, ttlMs: 1_000 }))
      yield* edges.settled
      const expire = beside.shape.expire
      // The database has expired it; before that is known here, its client is back.
      Object.assign(beside.shape, {
        expire: (keys: ReadonlyArray<string>, owner: string, nowMs: number) =>
          Effect.tap(expire(keys, owner, nowMs), () =>
            views.register(registration("v", all, { lastActiveAtMs: 2_000, ttlMs: 1_000 }))
          )
      })
      expect(yield* views.expire(1_500)).toEqual([])
      yield* ingest(views, [change("item:2", {})])
      expect(yield* atRest({ edges, views }, beside, "v")).toEqual(yield* rowsOf(views, "v"))
      expect(edges.counts().lost).toBe(0)
    })
  ))

test("D16 a reset takes every registration of this SSP out of the database, with its edges, and leaves those of others", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {})])
      for (const id of ["a", "b"]) yield* views.register(registration(id, all))
      yield* edges.settled
      const [held] = yield* beside.database.registrations
      yield* beside.database.register({ ...held!, key: "forgotten" }, "me")
      yield* beside.database.register({ ...held!, key: "theirs" }, "another")
      beside.before = Effect.fail(away)
      expect((yield* Effect.flip(views.reset))._tag).toBe("StoreFailed")
      beside.before = Effect.void
      yield* views.reset
      expect([yield* keysIn(beside), yield* edgesOf(beside, "a"), yield* views.count]).toEqual([["theirs"], [], 0])
      yield* edges.settled
    })
  ))

test("D21 writes that wait when the service stops are done before it ends", () =>
  withEdges(({ beside, edges, stop, views }) =>
    Effect.gen(function* () {
      for (const id of ["v", "w"]) yield* views.register(registration(id, all))
      yield* edges.settled
      beside.before = Effect.fail(away)
      yield* ingest(views, [change("item:1", {})])
      yield* views.unregister("w")
      yield* until("a failure", () => edges.counts().failures > 0)
      beside.before = Effect.void
      yield* stop
      expect([yield* edgesOf(beside, "v"), yield* keysIn(beside)]).toEqual([["item:1 v1"], ["v"]])
    })
  ))

test("D16 a reset, and the departure of the views that it ends, do not remove one registration at the same time", () =>
  withEdges(({ beside, edges, views }) =>
    Effect.gen(function* () {
      yield* views.register(registration("v", all))
      yield* edges.settled
      const { unregister } = beside.shape
      let calls = 0,
        under = 0,
        most = 0
      Object.assign(beside.shape, {
        unregister: (keys: ReadonlyArray<string>, owner: string) =>
          Effect.sync(() => {
            calls++
            most = Math.max(most, ++under)
          }).pipe(
            // The departure begins 50 ms behind the reset.
            Effect.zipRight(Effect.sleep("150 millis")),
            Effect.zipRight(unregister(keys, owner)),
            Effect.ensuring(Effect.sync(() => under--))
          )
      })
      yield* views.reset
      yield* until("both are done", () => calls === 2 && under === 0)
      expect([most, yield* keysIn(beside)]).toEqual([1, []])
    })
  ))

test("D56 a view whose registration can be read in the database is waited for by every way to read it, until it is there or is not to be", () =>
  withEdges(({ beside, views }) =>
    Effect.gen(function* () {
      yield* ingest(views, [change("item:1", {}), change("other:1", {})])
      const rows = (id: string) =>
        Effect.map(Effect.either(rowsOf(views, id)), (read) => (Either.isRight(read) ? read.right : read.left._tag))
      const streamed = (id: string) =>
        Effect.flatMap(streamOf(views, id, "flat", undefined), (stream) => Stream.runHead(stream)).pipe(
          Effect.map(Option.match({ onNone: () => "nothing", onSome: ({ event }) => event })),
          Effect.catchAll(({ _tag }) => Effect.succeed(_tag))
        )
      const gate = yield* Effect.makeLatch(false)
      /** What readers get that come while the row is there and the registration is not over. */
      const readers = (id: string, query: string, { fails = false, waits = true } = {}) =>
        Effect.gen(function* () {
          yield* gate.close
          let isThere = false
          beside.afterRegister = Effect.zipRight(
            Effect.sync(() => void (isThere = true)),
            Effect.zipRight(gate.await, fails ? Effect.fail(away) : Effect.void)
          )
          const registering = yield* Effect.fork(Effect.either(views.register(registration(id, query))))
          yield* until("the row is there", () => isThere)
          const [reading, streaming] = [yield* Effect.fork(rows(id)), yield* Effect.fork(streamed(id))]
          const taker = { take: () => true }
          const followed = views.follow(id, "flat", undefined, taker)
          followed?.close()
          let isLooked = false
          const look = { format: undefined, ifNoneMatch: undefined, sees: "kinds" } as const
          views.look(id, look, () => void (isLooked = true))?.()
          let isSettled = false
          const settles = views.whenSettled(id, () => void (isSettled = true))
          const asked = { follow: followed !== undefined, look: isLooked, why: views.refusal(id)?._tag }
          // Some turns for a reader that does not wait; one that is not to wait is waited for.
          if (waits) yield* Effect.sleep(10)
          else yield* Fiber.joinAll([reading, streaming] as ReadonlyArray<Fiber.Fiber<unknown>>)
          const waited =
            settles && !isSettled && Option.isNone(yield* reading.poll) && Option.isNone(yield* streaming.poll)
          yield* gate.open
          yield* registering.await
          yield* until("who asked to be told is", () => isSettled === settles)
          beside.afterRegister = Effect.void
          return { ...asked, waited, read: yield* reading, stream: yield* streaming }
        })
      const waiting = { follow: false, look: false, why: undefined, waited: true }
      expect(yield* readers("v", all)).toEqual({ ...waiting, read: ["item:1 v1"], stream: "snapshot" })
      expect(yield* readers("lost", all, { fails: true })).toEqual({
        ...waiting,
        read: "ViewNotFound",
        stream: "ViewNotFound"
      })
      // Another query under an id that is served; the same one again holds up no reader.
      const other = "SELECT * FROM other"
      expect(yield* readers("v", other)).toEqual({ ...waiting, read: ["other:1 v1"], stream: "snapshot" })
      expect(yield* readers("v", other, { waits: false })).toMatchObject({ follow: true, look: true, waited: false })
    })
  ))
