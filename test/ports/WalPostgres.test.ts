/**
 * The log in PostgreSQL: the conformance suite, who may write it, answers that are lost, and what is refused at a
 * start.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Chunk, Effect, Either, Exit, Fiber, Layer, Option, Redacted, Scope, Stream } from "effect"
import { afterAll, describe, expect, onTestFinished, test } from "vitest"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import { serverFault } from "../../src/drivers/postgres/sharedLog.ts"
import * as Stores from "../../src/host/schedulerStores.ts"
import { layerPostgres } from "../../src/host/wal/postgresLog.ts"
import type { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import type { Wal } from "../../src/ports/Wal.ts"
import { walSuite } from "../../src/testing/Wal.suite.ts"
import * as Postgres from "../kit/postgres.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

const job = { job: "job:1", table: "job", home: undefined, told: false }

const messageOf = (layer: Layer.Layer<SharedLog, { readonly message: string }>): Promise<string> =>
  Effect.runPromise(
    Effect.matchEffect(Effect.scoped(Layer.build(layer)), {
      onFailure: ({ message }) => Effect.succeed(message),
      onSuccess: () => Effect.succeed("opened")
    })
  )

const seqs = (wal: Wal["Type"]) => Effect.map(Stream.runCollect(wal.read(0)), Chunk.toReadonlyArray)

describe.skipIf(!Postgres.isReachable)(`the log in PostgreSQL${missing}`, () => {
  afterAll(Postgres.forget)
  walSuite("PostgreSQL", () => Postgres.walOf())

  const opened = (url: string, name: string) => Effect.map(Postgres.leading(url, name), ({ wal }) => wal)

  test("its records and its id are there at the next start", () =>
    Effect.gen(function* () {
      const url = Postgres.freshLog()
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
      const url = Postgres.freshLog()
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(opened(url, "the-first"), scope)
      const second = yield* Effect.fork(Postgres.leading(url, "the-second", 60_000))
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
      const url = Postgres.freshLog()
      const winners: Array<string> = []
      const all = Array.from({ length: 6 }, (_, i) =>
        Effect.map(Postgres.leading(url, `s${i}`, 60_000), ({ epoch }) => winners.push(`s${i} in ${epoch}`))
      )
      yield* Effect.forkScoped(Effect.all(all, { concurrency: "unbounded" }))
      yield* Effect.sleep(1_500)
      expect(winners).toEqual([expect.stringMatching(/ in 1$/)])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D60 a superseded term adds nothing more to log or pool, and is to end with 4", () =>
    Effect.gen(function* () {
      const url = Postgres.freshLog()
      const old = yield* Postgres.leading(url, "old", 60_000)
      yield* old.pool.open(old.log.logId)
      yield* old.wal.append(["1"])
      // As if it had been silent for a lease: what the next one would find.
      yield* Effect.promise(() =>
        Postgres.ask("UPDATE svc_log_head SET holder = NULL WHERE log = $1", [Postgres.nameOf(url)])
      )
      const next = yield* Postgres.leading(url, "next")
      const late = yield* Effect.flip(old.pool.write([{ tag: "PersistJob", row: job }]))
      expect(late.message).toMatch(/another scheduler leads it now/)
      const end = yield* Effect.exit(old.standing.lost)
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
      const { log, standing, wal } = yield* Postgres.leading(Postgres.freshLog(), "one", 1_000, 2)
      yield* wal.append(Array.from({ length: 12_000 }, (_, i) => String(i)))
      yield* wal.dropBefore(9_000)
      expect(yield* wal.keptAfter).toBe(0)
      const tell = (synced: number, applied: number) =>
        log.announce({ self: "other/1", name: "other", url: "http://other", synced, applied })
      yield* tell(8_000, 9_500)
      yield* Effect.repeat(Effect.sleep(50), { until: () => standing.status().members.length === 2 })
      yield* wal.dropBefore(11_000)
      expect(yield* wal.keptAfter).toBe(8_000)
      yield* tell(11_500, 11_500)
      yield* wal.dropBefore(11_000)
      expect(yield* wal.keptAfter).toBe(10_999)
      expect((yield* seqs(wal).pipe(Effect.flip)).reason).toBe("dropped")
      const kept = yield* Effect.map(Stream.runCollect(wal.read(10_999)), Chunk.size)
      expect(kept).toBe(1_001)
    }).pipe(Effect.scoped, Effect.runPromise))

  test(
    "no record is lost or added twice when the server cuts its connections",
    () =>
      Effect.gen(function* () {
        const wal = yield* opened(Postgres.freshLog(), "one")
        const cutting = Effect.promise(() =>
          Postgres.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scheduler' AND query LIKE $1",
            ["%svc_log%"]
          )
        )
        let cuts = 0
        const adding = Effect.forEach(
          Array.from({ length: 400 }, (_, i) => String(i + 1)),
          (line) => Effect.delay(wal.append([line]), 1),
          { discard: true }
        )
        const cut = Effect.tap(cutting, (rows) => Effect.sync(() => (cuts += rows.length)))
        yield* Effect.zip(adding, Effect.repeatN(Effect.delay(cut, 60), 5), { concurrent: true })
        expect(cuts).toBeGreaterThan(0)
        expect(yield* seqs(wal)).toEqual(Array.from({ length: 400 }, (_, i) => ({ seq: i + 1, json: String(i + 1) })))
      }).pipe(Effect.scoped, Effect.runPromise),
    30_000
  )

  test("a replica stays with its log: another one, or none, is refused with 3 before anything is served", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-of-one-log-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const paths = { replicaDbPath: join(folder, "replica"), database: undefined }
    const built = <A>(layer: Layer.Layer<A, StartFault>) =>
      Layer.build(Layer.fresh(layer)).pipe(Effect.scoped, Effect.asVoid, Effect.either, Effect.runPromise)
    const open = (url: string | undefined) =>
      url === undefined
        ? built(Stores.layer({ ...paths, walPath: join(folder, "log") }))
        : built(Stores.layerShared({ ...paths, logUrl: Redacted.make(url), logDurability: "flushed", leaseMs: 1_000 }))
    const own = Postgres.freshLog()
    expect(Either.isRight(await open(undefined))).toBe(true)
    expect(Either.isRight(await open(own))).toBe(true)
    expect(Either.isRight(await open(own))).toBe(true)
    for (const [other, named] of [
      [undefined, /SVC_LOG_URL is not set/],
      [Postgres.freshLog(), /SVC_LOG_URL names the log/]
    ] as const)
      expect(await open(other)).toMatchObject(Either.left({ exitCode: 3, message: expect.stringMatching(named) }))
  })

  test("a log cut by hand is not opened, and both positions are named", async () => {
    const url = Postgres.freshLog()
    const three = Effect.scoped(Effect.flatMap(opened(url, "one"), (wal) => wal.append(["1", "2", "3"])))
    await Effect.runPromise(three)
    await Postgres.ask("DELETE FROM svc_log WHERE log = $1 AND seq = 3", [Postgres.nameOf(url)])
    expect(await messageOf(Postgres.sharedOf(url))).toMatch(/records are seq 1 to 2, and it should hold 1 to 3/)
  })
})

const at = (url: string) => ({ url: Redacted.make(url), leaseMs: 1_000, isRelaxed: false })

test("a server that cannot be reached, or a driver that is missing, is named without the password", async () => {
  const nowhere = await messageOf(layerPostgres(at("postgres://u:hidden@127.0.0.1:1/db")))
  expect(nowhere).toMatch(/SVC_LOG_URL/)
  expect(nowhere).not.toContain("hidden")
  const bare = await messageOf(
    layerPostgres(at("postgres://u:hidden@127.0.0.1:1/db"), () => Promise.reject(new Error("Cannot find package")))
  )
  expect(bare).toMatch(/npm install @effect\/sql-pg@/)
})

test("a server is refused that is too old, not UTF-8, or does not flush", () => {
  const good = { version: 150_000, fsync: "on", synchronousCommit: "on", encoding: "UTF8" }
  expect(serverFault(good, false)).toBeUndefined()
  expect(serverFault({ ...good, version: 130_011 }, true)).toMatch(/PostgreSQL 13; it must be 14 or later/)
  expect(serverFault({ ...good, version: Number.NaN }, true)).toMatch(/must be 14/)
  expect(serverFault({ ...good, encoding: "SQL_ASCII" }, true)).toMatch(/UTF8/)
  for (const off of [{ fsync: "off" }, { synchronousCommit: "off" }]) {
    expect(serverFault({ ...good, ...off }, false)).toMatch(/SVC_LOG_DURABILITY=relaxed/)
    expect(serverFault({ ...good, ...off }, true)).toBeUndefined()
  }
})

test("an address of a log: what is taken, and what is shown of it", () => {
  expect(LogUrl.parse("postgres://u:p@h:5/db?sslmode=require&log=a-1")).toEqual({
    url: "postgres://u:p@h:5/db?sslmode=require",
    log: "a-1",
    shown: "postgres://h:5/db?log=a-1"
  })
  expect(LogUrl.parse("postgresql://h/db")).toMatchObject({ log: "svc" })
  for (const bad of ["", "h/db", "http://h/db", "postgres://h", "postgres://h/db?log=A", "postgres://h/db?log=a&log=b"])
    expect(LogUrl.parse(bad), bad).toBeUndefined()
})
