/**
 * The log in PostgreSQL: the conformance suite, who may write it, answers that are lost, and what is refused at a
 * start.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Chunk, Effect, Either, Exit, Layer, Redacted, Stream } from "effect"
import { afterAll, describe, expect, onTestFinished, test } from "vitest"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import { serverFault } from "../../src/drivers/postgresWal.ts"
import * as Stores from "../../src/host/schedulerStores.ts"
import { layerPostgres } from "../../src/host/wal/walPostgres.ts"
import { Wal } from "../../src/ports/Wal.ts"
import { walSuite } from "../../src/testing/Wal.suite.ts"
import * as Postgres from "../kit/postgres.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

const messageOf = (layer: Layer.Layer<Wal, { readonly message: string }>): Promise<string> =>
  Effect.runPromise(
    Effect.matchEffect(Effect.scoped(Layer.build(layer)), {
      onFailure: ({ message }) => Effect.succeed(message),
      onSuccess: () => Effect.succeed("opened")
    })
  )

const seqs = (wal: typeof Wal.Service) => Effect.map(Stream.runCollect(wal.read(0)), Chunk.toReadonlyArray)

describe.skipIf(!Postgres.isReachable)(`the log in PostgreSQL${missing}`, () => {
  afterAll(Postgres.forget)
  walSuite("PostgreSQL", () => Postgres.walOf())

  const opened = (url: string, holder: string) =>
    Effect.flatMap(Layer.build(Postgres.walOf(url, holder)), (context) => Effect.provide(Wal, context))

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

  test("a log that a living scheduler has is refused, and goes on", () =>
    Effect.gen(function* () {
      const url = Postgres.freshLog()
      const first = yield* opened(url, "the-first")
      const message = yield* Effect.promise(() => messageOf(Postgres.walOf(url, "the-second")))
      expect(message).toMatch(/the-first has it and is alive; stop that one first.*SVC_LOG_URL|SVC_LOG_URL.*the-first/)
      expect(yield* first.append(["1"])).toBe(1)
    }).pipe(Effect.scoped, Effect.runPromise))

  test("who was taken over adds nothing more, and is to end with 4", () =>
    Effect.gen(function* () {
      const url = Postgres.freshLog()
      const old = yield* opened(url, "old")
      yield* old.append(["1"])
      // As if it had been silent for a lease: what the next one would find.
      yield* Effect.promise(() =>
        Postgres.ask("UPDATE svc_log_head SET holder = NULL WHERE log = $1", [Postgres.nameOf(url)])
      )
      const next = yield* opened(url, "next")
      const refused = yield* Effect.flip(old.append(["2"]))
      expect(refused.reason).toBe("fenced")
      const end = yield* Effect.exit(old.lost!)
      expect(Exit.isFailure(end) && Cause.squash(end.cause)).toMatchObject({ exitCode: 4 })
      expect(yield* next.append(["3"])).toBe(2)
      expect(yield* seqs(next)).toEqual([
        { seq: 1, json: "1" },
        { seq: 2, json: "3" }
      ])
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
    const open = (url: string | undefined) =>
      Layer.build(
        Layer.fresh(
          Stores.layer({
            replicaDbPath: join(folder, "replica"),
            walPath: join(folder, "log"),
            database: undefined,
            logUrl: url === undefined ? undefined : Redacted.make(url),
            leaseMs: 1_000
          })
        )
      ).pipe(Effect.scoped, Effect.asVoid, Effect.either, Effect.runPromise)
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
    expect(await messageOf(Postgres.walOf(url))).toMatch(/records are seq 1 to 2, and it should hold 1 to 3/)
  })
})

const at = (url: string) => ({ url: Redacted.make(url), holder: "one", leaseMs: 1_000, isRelaxed: false })

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
