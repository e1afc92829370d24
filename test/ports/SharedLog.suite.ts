/**
 * What every log on a server must do for several schedulers: who may write it, who takes it over, how far it is cut.
 *
 * Over the engine itself: what it refuses is what keeps two leaders apart.
 */
import { Cause, Chunk, Context, Effect, Exit, Fiber, Layer, Option, Scope, Stream } from "effect"
import { expect, test } from "vitest"
import type { leadingOf } from "../../kit/processes/leading.ts"
import type * as Postgres from "../../kit/processes/postgres.ts"
import { noContacts } from "../../src/core/cluster/term.ts"
import { SharedLog } from "../../src/ports/SharedLog.ts"
import type { Wal } from "../../src/ports/Wal.ts"
import { walSuite } from "../../src/testing/Wal.suite.ts"

const job = { job: "job:1", table: "job", home: undefined, told: false }

export const seqs = (wal: Wal["Type"]) => Effect.map(Stream.runCollect(wal.read(0)), Chunk.toReadonlyArray)

export interface Engine extends Pick<typeof Postgres, "freshLog" | "sharedOf" | "walOf"> {
  readonly leading: (url: string, name: string, leaseMs?: number, copies?: number) => ReturnType<typeof leadingOf>
}

export const sharedLogSuite = (engine: string, { freshLog, leading, sharedOf, walOf }: Engine): void => {
  walSuite(engine, () => walOf())

  const opened = (url: string, name: string) => Effect.map(leading(url, name), ({ wal }) => wal)

  test("its records and its id are there at the next start", () =>
    Effect.gen(function* () {
      const url = freshLog()
      const id = yield* Effect.scoped(
        Effect.flatMap(opened(url, "one"), (wal) => Effect.as(wal.append(["1", '"\\u0000"']), wal.logId))
      )
      const again = yield* opened(url, "two")
      expect([again.logId, yield* again.lastSeq]).toEqual([id, 2])
      expect(yield* seqs(again)).toEqual([
        { seq: 1, json: "1" },
        { seq: 2, json: '"\\u0000"' }
      ])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("a log that a living scheduler leads is waited for, and taken over at once when it is handed over", () =>
    Effect.gen(function* () {
      const url = freshLog()
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(opened(url, "the-first"), scope)
      const second = yield* Effect.fork(leading(url, "the-second", 60_000))
      yield* first.append(["1"])
      yield* Effect.sleep(1_500)
      expect(Option.isNone(yield* Fiber.poll(second))).toBe(true)
      expect(yield* first.append(["2"])).toBe(2)
      yield* Scope.close(scope, Exit.void)
      const { epoch, wal } = yield* Fiber.join(second)
      expect([epoch, yield* wal.append(["3"])]).toEqual([2, 3])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D60 of many that take over at once one wins, and each of the others waits", () =>
    Effect.gen(function* () {
      const url = freshLog()
      const winners: Array<string> = []
      const all = Array.from({ length: 6 }, (_, i) =>
        Effect.map(leading(url, `s${i}`, 60_000), ({ epoch }) => winners.push(`s${i} in ${epoch}`))
      )
      yield* Effect.forkScoped(Effect.all(all, { concurrency: "unbounded" }))
      yield* Effect.repeat(Effect.sleep(20), { until: () => winners.length > 0 })
      yield* Effect.sleep(1_000)
      expect(winners).toEqual([expect.stringMatching(/ in 1$/)])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D60 a scheduler that came too late for one take-over succeeds at the next", () =>
    Effect.gen(function* () {
      const url = freshLog()
      const other = Context.get(yield* Layer.build(sharedOf(url)), SharedLog)
      const seen = yield* other.row
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(opened(url, "first"), scope)
      expect(yield* other.claim(seen, "other/1")).toBeUndefined()
      yield* first.append(["1"])
      yield* Scope.close(scope, Exit.void)
      const won = yield* other.claim(yield* other.row, "other/1")
      expect(won).toMatchObject({ epoch: 2, lastSeq: 1, leader: "other/1" })
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D60 a superseded term adds nothing more to log or pool, and is to end with 4", () =>
    Effect.gen(function* () {
      const url = freshLog()
      const old = yield* leading(url, "old", 60_000)
      yield* old.pool.open(old.log.logId)
      yield* old.wal.append(["1"])
      // As if it had been silent for a lease: what the next one would find.
      yield* old.log.handOver(old.election.self)
      const next = yield* leading(url, "next")
      const late = yield* Effect.flip(old.pool.write([{ tag: "PersistJob", row: job }]))
      expect(late.message).toMatch(/another scheduler leads it now/)
      const end = yield* Effect.exit(old.election.lost)
      expect(Exit.isFailure(end) && Cause.squash(end.cause)).toMatchObject({ exitCode: 4 })
      expect((yield* Effect.flip(old.wal.append(["2"]))).reason).toBe("fenced")
      expect((yield* next.pool.open(next.log.logId)).saved.jobs).toEqual([])
      expect(yield* next.wal.append(["3"])).toBe(2)
      expect(yield* seqs(next.wal)).toEqual([
        { seq: 1, json: "1" },
        { seq: 2, json: "3" }
      ])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D60 the log is cut only below what another scheduler has on disk, and in steps", () =>
    Effect.gen(function* () {
      const { log, election, wal } = yield* leading(freshLog(), "one", 3_000, 2)
      yield* wal.append(Array.from({ length: 12_000 }, (_, i) => String(i)))
      yield* wal.dropBefore(9_000)
      expect(yield* wal.keptAfter).toBe(0)
      const tell = (synced: number, applied: number) =>
        log.announce({ ...noContacts, self: "other/1", name: "other", url: "http://other", synced, applied })
      yield* tell(8_000, 9_500)
      yield* Effect.repeat(Effect.sleep(50), { until: () => election.status().members.length === 2 })
      yield* wal.dropBefore(11_000)
      expect(yield* wal.keptAfter).toBe(8_000)
      yield* tell(11_500, 11_500)
      yield* wal.dropBefore(11_000)
      expect(yield* wal.keptAfter).toBe(10_999)
      expect((yield* seqs(wal).pipe(Effect.flip)).reason).toBe("dropped")
      const kept = yield* Effect.map(Stream.runCollect(wal.read(10_999)), Chunk.size)
      expect(kept).toBe(1_001)
    }).pipe(Effect.scoped, Effect.runPromise))
}
