/**
 * What every place that keeps snapshots must do: offer what is whole, as the leader that wrote it says, and nothing
 * else, and keep no more than it must.
 */
import { type Clock, Effect, Either, type Scope, Stream } from "effect"
import { expect, test } from "vitest"
import { bytesOf, filled, giving, open, run } from "../../kit/data/replicaFiles.ts"
import * as KeptSnapshots from "../../src/host/snapshots/keptSnapshots.ts"
import {
  parseName,
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  type SnapshotStore
} from "../../src/ports/Snapshots.ts"

type Doing<A> = Effect.Effect<A, unknown, Scope.Scope>

/** A new place, and what happens to it. */
export interface Place {
  /** As a scheduler of this name reaches it. */
  readonly store: (scheduler: string, logId: string) => Doing<SnapshotStore>
  /** Loses the end of a snapshot there. */
  readonly damage: (name: string) => Doing<unknown>
  /** What a scheduler left that was killed as it wrote. */
  readonly leave: (half: Uint8Array) => Doing<unknown>
  /** How many it holds, whole ones and what was left. */
  readonly held: Doing<number>
  /** It is gone. */
  readonly lose: Doing<unknown>
}

const day = 86_400_000

const laterBy =
  (ms: number) =>
  <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.clockWith((clock) =>
      Effect.withClock(
        body,
        Object.create(clock, {
          currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (now) => now + ms) }
        }) as Clock.Clock
      )
    )

const brokenOff = new SnapshotFailed({ reason: "failed", message: "broke off" })

/** A replica whose snapshots give other bytes than they say. */
const lying = (own: ReplicaFileShape): ReplicaFileShape => ({
  ...own,
  snapshot: (logId) =>
    Effect.map(own.snapshot(logId), (snapshot) =>
      giving(
        snapshot,
        Stream.map(snapshot.content, (piece) => piece.map((byte, i) => (i === 100 ? byte ^ 1 : byte)))
      )
    )
})

export const snapshotsSuite = (newPlace: () => Doing<Place>): void => {
  const kept = (place: Place, scheduler: string, intervalMs = 0, logId = "a-log") =>
    Effect.map(place.store(scheduler, logId), (store) => KeptSnapshots.make(store, { logId, intervalMs }))

  const seqs = (place: Place): Doing<ReadonlyArray<number>> =>
    Effect.flatMap(place.store("looks", "a-log"), ({ names }) =>
      Effect.map(names, (all) => all.flatMap((each) => parseName(each)?.seq ?? []).sort((a, b) => a - b))
    )

  test("D64 one is written when the log is to be cut, and the newest two stay", () =>
    run(
      Effect.gen(function* () {
        const { own, replica } = yield* open()
        const place = yield* newPlace()
        const snapshots = yield* kept(place, "one")
        expect(yield* snapshots.keep(own, 1)).toBe(0)
        expect(yield* place.held).toBe(0)
        for (const n of [1, 2, 3]) {
          yield* filled(replica, n, 1)
          expect(yield* snapshots.keep(own, n + 1)).toBe(n)
        }
        expect(yield* seqs(place)).toEqual([2, 3])
        expect(yield* place.held).toBe(2)
        // Another one of the same log has to read it back before it says so; of another log none is offered.
        const other = yield* kept(place, "two", 3_600_000)
        yield* filled(replica, 4, 1)
        expect(yield* other.keep(own, 5)).toBe(3)
        expect((yield* other.offers(3)).length).toBe(1)
        expect(yield* laterBy(3_700_000)(other.keep(own, 5))).toBe(4)
        expect(yield* seqs(place)).toEqual([3, 4])
        const foreign = yield* kept(place, "one", 0, "another")
        expect(yield* foreign.offers(0)).toEqual([])
      })
    ))

  test("D64 it is the same replica elsewhere, whatever pieces it was kept in", () =>
    run(
      Effect.gen(function* () {
        const [from, to, place] = [yield* open(), yield* open(), yield* newPlace()]
        yield* filled(from.replica, 1, 120)
        const snapshots = yield* kept(place, "one")
        expect(yield* snapshots.keep(from.own, 100)).toBe(120)
        const [offer] = yield* snapshots.offers(120)
        expect(offer!.from).toContain("-0000000000000120-")
        yield* Effect.scoped(
          Effect.gen(function* () {
            const there = yield* offer!.open
            const here = yield* from.own.snapshot("a-log")
            expect(there).toMatchObject({ logId: "a-log", seq: 120, bytes: here.bytes, sha256: here.sha256 })
            expect(Buffer.compare(yield* bytesOf(there), yield* bytesOf(here))).toBe(0)
          })
        )
        yield* Effect.scoped(Effect.flatMap(offer!.open, to.own.restore))
        expect(yield* to.replica.applied).toBe(120)
      })
    ))

  test("D64 a damaged one does not count as a copy, and is not taken", () =>
    run(
      Effect.gen(function* () {
        const [from, to, place] = [yield* open(), yield* open(), yield* newPlace()]
        const snapshots = yield* kept(place, "one")
        yield* filled(from.replica, 1, 5)
        yield* snapshots.keep(from.own, 6)
        yield* filled(from.replica, 6, 40)
        yield* snapshots.keep(from.own, 46)
        const names = yield* Effect.flatMap(place.store("looks", "a-log"), (store) => store.names)
        yield* place.damage(names.find((name) => parseName(name)?.seq === 45)!)
        const again = yield* kept(place, "two", 3_600_000)
        expect(yield* again.keep(from.own, 100)).toBe(5)
        const offers = yield* again.offers(0)
        expect(offers.length).toBe(2)
        const taken = yield* Effect.forEach(offers, (offer) =>
          Effect.either(Effect.scoped(Effect.flatMap(offer.open, to.own.restore)))
        )
        expect(taken.map(Either.isRight)).toEqual([false, true])
        expect(yield* to.replica.applied).toBe(5)
        // The next one is whole again.
        expect(yield* laterBy(3_700_000)(again.keep(from.own, 100))).toBe(45)
      })
    ))

  test("D64 what is not written to its end is never offered, and nothing of it stays", () =>
    run(
      Effect.gen(function* () {
        const [{ own, replica }, place] = [yield* open(), yield* newPlace()]
        yield* filled(replica, 1, 40)
        const store = yield* place.store("one", "a-log")
        const snapshot = yield* own.snapshot("a-log")
        const half = (yield* bytesOf(snapshot)).subarray(0, 700_000)
        const write = (behind: Snapshot["content"]) =>
          store.write(giving(snapshot, Stream.concat(Stream.make(half), behind)))
        expect((yield* Effect.flip(write(Stream.fail(brokenOff)))).message).toBe("broke off")
        expect(yield* place.held).toBe(0)
        yield* Effect.timeoutOption(write(Stream.never), 500)
        expect(yield* place.held).toBe(0)
        expect(yield* store.names).toEqual([])
      })
    ))

  test("D64 one that reads back as other bytes does not count, does not stay, and leaves the one before it", () =>
    run(
      Effect.gen(function* () {
        const [{ own, replica }, place] = [yield* open(), yield* newPlace()]
        const snapshots = yield* kept(place, "one")
        yield* filled(replica, 1, 1)
        yield* snapshots.keep(own, 2)
        yield* filled(replica, 2, 1)
        expect(yield* Effect.flip(snapshots.keep(lying(own), 3))).toMatchObject({
          reason: "damaged",
          message: expect.stringMatching(/reads back as other bytes/)
        })
        expect(yield* seqs(place)).toEqual([1])
        expect(yield* place.held).toBe(1)
        expect(yield* snapshots.keep(own, 3)).toBe(2)
      })
    ))

  test("D64 what a scheduler left that was killed as it wrote is taken away once it is old", () =>
    run(
      Effect.gen(function* () {
        const [{ own, replica }, place] = [yield* open(), yield* newPlace()]
        yield* filled(replica, 1, 1)
        yield* place.leave(new Uint8Array(5000))
        const snapshots = yield* kept(place, "one")
        yield* snapshots.keep(own, 2)
        expect([yield* place.held, yield* seqs(place)]).toEqual([2, [1]])
        yield* filled(replica, 2, 1)
        yield* laterBy(2 * day)(snapshots.keep(own, 3))
        expect([yield* place.held, yield* seqs(place)]).toEqual([2, [1, 2]])
      })
    ))

  test("D64 leaders that write at the same time do not harm each other, nor does one that leads no more", () =>
    run(
      Effect.gen(function* () {
        const [one, two, place] = [yield* open(), yield* open(), yield* newPlace()]
        yield* filled(one.replica, 1, 40)
        yield* filled(two.replica, 1, 41)
        const [old, next] = [yield* kept(place, "one"), yield* kept(place, "two")]
        const both = Effect.all([old.keep(one.own, 40), next.keep(two.own, 41)], { concurrency: 2 })
        expect(yield* both).toEqual([40, 41])
        expect(yield* seqs(place)).toEqual([40, 41])
        for (const n of [42, 43]) {
          yield* filled(two.replica, n, 1)
          expect(yield* next.keep(two.own, n + 1)).toBe(n)
        }
        // The one that stood still meanwhile, and writes what is older than all that is there.
        const late = KeptSnapshots.make(yield* place.store("one", "a-log"), { logId: "a-log", intervalMs: 0 })
        yield* filled(one.replica, 41, 1)
        yield* late.keep(one.own, 100)
        expect(yield* seqs(place)).toEqual([41, 42, 43])
        const offers = yield* next.offers(0)
        for (const offer of offers) {
          const to = yield* open()
          yield* Effect.scoped(Effect.flatMap(offer.open, to.own.restore))
        }
      })
    ))

  test("a place that cannot be reached keeps the log from being cut, and says which setting names it", () =>
    run(
      Effect.gen(function* () {
        const [{ own }, place] = [yield* open(), yield* newPlace()]
        const snapshots = yield* kept(place, "one")
        yield* place.lose
        expect((yield* Effect.flip(snapshots.keep(own, 9))).message).toContain("SVC_SNAPSHOT_URL")
        expect((yield* Effect.flip(snapshots.offers(0))).message).toContain("SVC_SNAPSHOT_URL")
      })
    ))
}
