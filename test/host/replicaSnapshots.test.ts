/**
 * Snapshots of a replica's file: that they stand still, that nothing but a whole one is taken for one, and that nothing
 * is left of what was not.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Either, Layer, type Scope, Stream } from "effect"
import { afterAll, describe, expect, test } from "vitest"
import * as SnapshotFolder from "../../src/host/snapshotFolder.ts"
import { fileName, layerReplica } from "../../src/host/sqlite/ReplicaFile.ts"
import { Replica, type ReplicaShape } from "../../src/ports/Replica.ts"
import { ReplicaFile, type ReplicaFileShape, type Snapshot, SnapshotFailed } from "../../src/ports/Snapshots.ts"
import { id, record } from "../../src/testing/Replica.suite.ts"

const root = mkdtempSync(join(tmpdir(), "svc-snapshots-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
const fresh = (): string => join(root, String(folders++))

interface Opened {
  readonly folder: string
  readonly replica: ReplicaShape
  readonly own: ReplicaFileShape
}

const open = (folder = fresh(), holdMs?: number): Effect.Effect<Opened, unknown, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(layerReplica(folder, holdMs))), (context) => ({
    folder,
    replica: Context.get(context, Replica),
    own: Context.get(context, ReplicaFile)!
  }))

const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(body))

/** Long enough that SQLite would bring its log into the file many times over. */
const filled = (replica: ReplicaShape, from: number, count: number): Effect.Effect<void, unknown> =>
  Effect.forEach(
    Array.from({ length: count }, (_, i) => from + i),
    (n) =>
      replica.commit({
        records: Array.from({ length: 20 }, (_, i) =>
          record(`t:${(n * 20 + i) % 4000}`, n, { n, text: "x".repeat(900) })
        ),
        through: n
      }),
    { discard: true }
  ).pipe(Effect.zipRight(replica.catchUp))

const files = (folder: string): ReadonlyArray<string> => readdirSync(folder).filter((name) => !name.endsWith(".lock"))

const bytesOf = ({ content }: Snapshot): Effect.Effect<Uint8Array, SnapshotFailed> =>
  Effect.map(Stream.runCollect(content), (pieces) => Buffer.concat([...pieces]))

/** A snapshot that gives other bytes than it says. */
const giving = (snapshot: Snapshot, content: Snapshot["content"]): Snapshot => ({ ...snapshot, content })

const brokenOff = new SnapshotFailed({ reason: "failed", message: "broke off" })

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
        const from = yield* open()
        yield* filled(from.replica, 1, 20)
        const to = yield* open()
        yield* filled(to.replica, 1, 2)
        const snapshot = yield* from.own.snapshot("a-log")
        const whole = yield* bytesOf(snapshot)
        const wrong = Uint8Array.from(whole)
        wrong[whole.length >> 1]! ^= 1
        const newer = Uint8Array.from(whole)
        newer[63] = 99
        const proven = async (bytes: Uint8Array): Promise<Snapshot> => ({
          ...snapshot,
          bytes: bytes.length,
          sha256: Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(bytes))).toString("hex"),
          content: Stream.make(bytes)
        })
        const refusals: ReadonlyArray<readonly [Snapshot, RegExp]> = [
          [giving(snapshot, Stream.make(wrong)), /SHA-256/],
          [giving(snapshot, Stream.make(whole.subarray(0, 5000))), /it has 5000 bytes/],
          [giving(snapshot, Stream.make(whole, whole)), /bytes where/],
          [giving(snapshot, Stream.concat(Stream.make(whole.subarray(0, 9000)), Stream.fail(brokenOff))), /broke off/],
          [yield* Effect.promise(() => proven(newer)), /later version/],
          [yield* Effect.promise(() => proven(new Uint8Array(5000))), /no SQLite file/],
          [yield* Effect.promise(() => proven(new Uint8Array(5))), /5 bytes are no SQLite file/]
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

describe("snapshots in a folder", () => {
  const options = (folder: string, name = "one", intervalMs = 0) => ({ folder, logId: "a-log", name, intervalMs })
  const names = (folder: string): ReadonlyArray<string> => readdirSync(folder).sort()

  test("D64 one is written when the log is to be cut, and the newest two stay", () =>
    run(
      Effect.gen(function* () {
        const { own, replica } = yield* open()
        const folder = fresh()
        const snapshots = yield* SnapshotFolder.make(options(folder))
        expect(yield* snapshots.keep(own, 1)).toBe(0)
        expect(names(folder)).toEqual([])
        for (const n of [1, 2, 3]) {
          yield* filled(replica, n, 1)
          expect(yield* snapshots.keep(own, n + 1)).toBe(n)
        }
        expect(names(folder).map((name) => Number(name.split("-")[3]))).toEqual([2, 3])
        // Another one of the same log has to read it back before it says so; of another log none is offered.
        const other = yield* SnapshotFolder.make(options(folder, "two", 3_600_000))
        yield* filled(replica, 4, 1)
        expect(yield* other.keep(own, 5)).toBe(3)
        expect((yield* other.offers(3)).length).toBe(1)
        const foreign = yield* SnapshotFolder.make({ ...options(folder), logId: "another" })
        expect(yield* foreign.offers(0)).toEqual([])
      })
    ))

  test("D64 what was written by halves is never taken, and a damaged one does not count as a copy", () =>
    run(
      Effect.gen(function* () {
        const from = yield* open()
        const folder = fresh()
        const snapshots = yield* SnapshotFolder.make(options(folder))
        yield* filled(from.replica, 1, 5)
        yield* snapshots.keep(from.own, 6)
        const [good] = names(folder) as [string]
        const damaged = good.replace(/-\d{16}-/, "-0000000000000009-")
        writeFileSync(join(folder, damaged), readFileSync(join(folder, good)).subarray(0, 9000))
        writeFileSync(join(folder, "svc-a-log-one.part"), readFileSync(join(folder, good)).subarray(0, 9000))
        const again = yield* SnapshotFolder.make(options(folder, "one", 3_600_000))
        expect(names(folder)).toEqual([good, damaged].sort())
        expect(yield* again.keep(from.own, 100)).toBe(5)
        const offers = yield* again.offers(0)
        expect(offers.map(({ from: path }) => path)).toEqual([join(folder, damaged), join(folder, good)])
        const to = yield* open()
        const taken = yield* Effect.forEach(offers, (offer) =>
          Effect.either(Effect.scoped(Effect.flatMap(offer.open, to.own.restore)))
        )
        expect(taken.map(Either.isRight)).toEqual([false, true])
        expect(yield* to.replica.applied).toBe(5)
      })
    ))

  test("a folder that cannot be reached keeps the log from being cut, and says which setting names it", () =>
    run(
      Effect.gen(function* () {
        const { own } = yield* open()
        const folder = fresh()
        const snapshots = yield* SnapshotFolder.make(options(folder))
        rmSync(folder, { recursive: true })
        expect((yield* Effect.flip(snapshots.keep(own, 9))).message).toContain("SVC_SNAPSHOT_URL")
        expect((yield* Effect.flip(snapshots.offers(0))).message).toContain("SVC_SNAPSHOT_URL")
        writeFileSync(folder, "a file")
        expect((yield* Effect.flip(SnapshotFolder.make(options(folder)))).message).toContain("SVC_SNAPSHOT_URL")
      })
    ))
})
