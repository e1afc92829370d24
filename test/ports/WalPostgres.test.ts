/**
 * The log in PostgreSQL: the conformance suite, who may write it, answers that are lost, and what is refused at a
 * start.
 */

import { Effect, Layer } from "effect"
import { afterAll, describe, expect, test } from "vitest"
import * as Postgres from "../../kit/processes/postgres.ts"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import { serverFault } from "../../src/drivers/postgres/sharedLog.ts"
import { layerPostgres } from "../../src/host/wal/postgresLog.ts"
import type { SharedLog } from "../../src/ports/SharedLog.ts"
import { seqs, sharedLogSuite } from "./SharedLog.suite.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

const messageOf = (layer: Layer.Layer<SharedLog, { readonly message: string }>): Promise<string> =>
  Effect.runPromise(
    Effect.matchEffect(Effect.scoped(Layer.build(layer)), {
      onFailure: ({ message }) => Effect.succeed(message),
      onSuccess: () => Effect.succeed("opened")
    })
  )

describe.skipIf(!Postgres.isReachable)(`the log in PostgreSQL${missing}`, () => {
  afterAll(Postgres.forget)
  sharedLogSuite("PostgreSQL", Postgres)

  const opened = (url: string, name: string) => Effect.map(Postgres.leading(url, name), ({ wal }) => wal)

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

  test("a log cut by hand is not opened, and both positions are named", async () => {
    const url = Postgres.freshLog()
    const three = Effect.scoped(Effect.flatMap(opened(url, "one"), (wal) => wal.append(["1", "2", "3"])))
    await Effect.runPromise(three)
    await Postgres.ask("DELETE FROM svc_log WHERE log = $1 AND seq = 3", [Postgres.nameOf(url)])
    expect(await messageOf(Postgres.sharedOf(url))).toMatch(/records are seq 1 to 2, and it should hold 1 to 3/)
  })
})

const at = (url: string) => {
  const address = LogUrl.parse(url)
  if (address?.engine !== "postgres") throw new Error(url)
  return { address, leaseMs: 1_000, isRelaxed: false }
}

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
    engine: "postgres",
    url: "postgres://u:p@h:5/db?sslmode=require",
    log: "a-1",
    shown: "postgres://h:5/db?log=a-1"
  })
  expect(LogUrl.parse("postgresql://h/db")).toMatchObject({ log: "svc" })
  for (const bad of ["", "h/db", "http://h/db", "postgres://h", "postgres://h/db?log=A", "postgres://h/db?log=a&log=b"])
    expect(LogUrl.parse(bad), bad).toBeUndefined()
})
