/**
 * Snapshots of a replica's file: that they stand still, that nothing but a whole one is taken for one, and that nothing
 * is left of what was not.
 */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either, Stream } from "effect"
import { describe, expect, test } from "vitest"
import { bytesOf, filled, fresh, giving, open, run } from "../../kit/data/replicaFiles.ts"
import { fileName } from "../../src/host/sqlite/ReplicaFile.ts"
import { type Snapshot, SnapshotFailed } from "../../src/ports/Snapshots.ts"
import { id, record } from "../../src/testing/Replica.suite.ts"

const files = (folder: string): ReadonlyArray<string> => readdirSync(folder).filter((name) => !name.endsWith(".lock"))

/** A snapshot of other bytes, which says of them what is so. */
const proven = (snapshot: Snapshot, bytes: Uint8Array): Effect.Effect<Snapshot> =>
  Effect.sync(() => ({
    ...snapshot,
    bytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    content: Stream.make(bytes)
  }))

const brokenOff = new SnapshotFailed({ reason: "failed", message: "broke off" })

/** A replica at position 2, and a snapshot of another one at 20 with its bytes. */
const twoReplicas = Effect.gen(function* () {
  const from = yield* open()
  yield* filled(from.replica, 1, 20)
  const to = yield* open()
  yield* filled(to.replica, 1, 2)
  const snapshot = yield* from.own.snapshot("a-log")
  return { snapshot, to, whole: yield* bytesOf(snapshot) }
})

describe("a replica's file", () => {
  test("D64 stands still as of one position while commits go on, and is a replica elsewhere", () =>
    run(
      Effect.gen(function* () {
        const from = yield* open()
        yield* filled(from.replica, 1, 100)
        const to = yield* open()
        yield* to.replica.commit({ records: [record("gone:1", 1, {})], through: 1 })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const snapshot = yield* from.own.snapshot("a-log")
            expect(snapshot).toMatchObject({ logId: "a-log", seq: 100 })
            // More than a hundred times what makes SQLite look whether it may.
            yield* filled(from.replica, 101, 400)
            const file = readFileSync(join(from.folder, fileName))
            expect(file.length).toBe(snapshot.bytes)
            yield* to.own.restore(snapshot)
          })
        )
        expect(yield* to.replica.applied).toBe(100)
        const found = yield* to.replica.current([id("t:2000"), id("t:1"), id("gone:1")])
        expect([...found].map(([key, { version }]) => [key, version])).toEqual([["t:2000", 100]])
        const chunk = yield* to.replica.records("t", undefined, 5000)
        expect([chunk.length, Math.max(...chunk.map(({ version }) => version))]).toEqual([2000, 100])
        // It goes on from there, and its file is as any other.
        yield* filled(to.replica, 101, 3)
        yield* to.replica.sync
        expect(files(to.folder)).not.toContain("replica.db.part")
        expect((yield* from.replica.records("t", undefined, 5000)).length).toBe(4000)
      })
    ))

  test("D64 what is not what its head says is not taken, and nothing of it stays", () =>
    run(
      Effect.gen(function* () {
        const { snapshot, to, whole } = yield* twoReplicas
        const wrong = Uint8Array.from(whole)
        wrong[whole.length >> 1]! ^= 1
        const newer = Uint8Array.from(whole)
        newer[63] = 99
        const refusals: ReadonlyArray<readonly [Snapshot, RegExp]> = [
          [giving(snapshot, Stream.make(wrong)), /SHA-256/],
          [giving(snapshot, Stream.make(whole.subarray(0, 5000))), /it has 5000 bytes/],
          [giving(snapshot, Stream.make(whole, whole)), /bytes where/],
          [giving(snapshot, Stream.concat(Stream.make(whole.subarray(0, 9000)), Stream.fail(brokenOff))), /broke off/],
          [yield* proven(snapshot, newer), /later version/],
          [yield* proven(snapshot, new Uint8Array(5000)), /no SQLite file/],
          [yield* proven(snapshot, new Uint8Array(5)), /5 bytes are no SQLite file/]
        ]
        for (const [given, why] of refusals) {
          const taken = yield* Effect.either(to.own.restore(given))
          expect(Either.isLeft(taken) && taken.left.message).toMatch(why)
          expect(files(to.folder)).not.toContain("replica.db.part")
        }
        expect(yield* to.replica.applied).toBe(2)
        // Interrupted in the middle, as by the end of its time.
        const never = giving(snapshot, Stream.concat(Stream.make(whole.subarray(0, 9000)), Stream.never))
        yield* Effect.timeoutOption(to.own.restore(never), 200)
        expect(files(to.folder)).not.toContain("replica.db.part")
        expect(yield* to.replica.applied).toBe(2)
      })
    ))

  test("D64 a file with the right head and nothing behind it replaces nothing", () =>
    run(
      Effect.gen(function* () {
        const { snapshot, to, whole } = yield* twoReplicas
        const hollow = Uint8Array.from(whole).fill(7, 100)
        const otherSeq = yield* proven({ ...snapshot, seq: 21 }, whole)
        for (const [given, why] of [
          [yield* proven(snapshot, hollow), /malformed|not a database/],
          [otherSeq, /it stands at seq 20 where 21 was said/]
        ] as const) {
          const { message, reason } = yield* Effect.flip(to.own.restore(given))
          expect([reason, message]).toEqual(["damaged", expect.stringMatching(why)])
          expect(yield* to.replica.applied).toBe(2)
          expect(files(to.folder).filter((name) => name.includes(".part"))).toEqual([])
        }
        yield* to.own.restore(yield* proven(snapshot, whole))
        expect(yield* to.replica.applied).toBe(20)
      })
    ))

  test("D64 what a kill left on its way is swept at the next start, and a half replaced file is an empty replica", () =>
    run(
      Effect.gen(function* () {
        const folder = fresh()
        yield* Effect.scoped(Effect.flatMap(open(folder), ({ replica }) => filled(replica, 1, 3)))
        writeFileSync(join(folder, `${fileName}.part`), "half")
        yield* Effect.scoped(
          Effect.flatMap(open(folder), ({ replica }) =>
            Effect.map(replica.applied, (applied) => {
              expect([applied, existsSync(join(folder, `${fileName}.part`))]).toEqual([3, false])
            })
          )
        )
        // Killed between the old file's end and the new one's name: SQLite's own log may still lie there.
        rmSync(join(folder, fileName))
        writeFileSync(join(folder, `${fileName}-wal`), "of no file")
        const { replica } = yield* open(folder)
        expect(yield* replica.applied).toBe(0)
      })
    ))

  test(
    "D64 one at a time, none while a state is held for an SSP, and not for ever",
    () =>
      run(
        Effect.gen(function* () {
          const { own, replica } = yield* open(fresh(), 300)
          yield* filled(replica, 1, 3)
          yield* replica.freeze(7)
          expect((yield* Effect.flip(Effect.scoped(own.snapshot("a-log")))).reason).toBe("busy")
          yield* replica.thaw(7)
          const first = yield* own.snapshot("a-log")
          yield* Effect.sleep(600)
          expect((yield* Effect.flip(Stream.runDrain(first.content))).message).toContain("SVC_SNAPSHOT_TIMEOUT_SECS")
          yield* replica.sync
          yield* Effect.scoped(Effect.asVoid(own.snapshot("a-log")))
        })
      ),
    20_000
  )
})
