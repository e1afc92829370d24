/**
 * What every pool store must do, over memory, a SQLite file, PostgreSQL and NATS: rows come back as they were, epochs only grow,
 * another log forgets the SSPs.
 *
 * One suite for all, each opened again as a restart would.
 */

import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either, Exit, Layer, Scope } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { JobRow, MemberRow, RegisteredSsp, StrayRow, ViewRow } from "../../src/core/cluster/messages.ts"
import type { Result } from "../../src/core/job/result.ts"
import { poolOver } from "../../src/drivers/memoryPool.ts"
import * as SqlitePool from "../../src/drivers/sqlitePool.ts"
import { layerSqlite } from "../../src/host/sqlite/Sqlite.ts"
import { PoolStore, type PoolStoreShape, type PoolWrite, type StoredPool } from "../../src/ports/PoolStore.ts"
import { Heap, unwatchedHeap } from "../../src/ports/ProcessFigures.ts"
import type { Engine } from "./SharedLog.suite.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

/** Runs `use` over the store as it is after a start. */
type Restart = <A>(use: (store: PoolStoreShape) => Effect.Effect<A, unknown>) => Promise<A>

const sqlite =
  (name: string): Restart =>
  (use) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const store = yield* Effect.map(
        Layer.buildWithScope(Layer.fresh(SqlitePool.layer.pipe(Layer.provide(layerSqlite(join(folder, name))))), scope),
        (context) => context.unsafeMap.get(PoolStore.key) as PoolStoreShape
      )
      const result = yield* use(store)
      yield* Scope.close(scope, Exit.void)
      return result
    }).pipe(Effect.runPromise)

const memory = (): Restart => {
  const rows = new Map()
  return (use) => Effect.runPromise(use(poolOver(rows)))
}

/** Each start is a term of its own. */
const onServer =
  ({ freshLog, leading }: Pick<Engine, "freshLog" | "leading">) =>
  (): Restart => {
    const url = freshLog()
    return (use) => Effect.flatMap(leading(url, "one"), ({ pool }) => use(pool)).pipe(Effect.scoped, Effect.runPromise)
  }
afterAll(() => (Postgres.isReachable ? Postgres.forget() : undefined))
afterAll(() => (Nats.isReachable ? Nats.forget() : undefined))

const home: RegisteredSsp = { ssp: "a", registration: 7 }
const member = (ssp: string): MemberRow => ({
  ssp,
  incarnation: undefined,
  url: `http://${ssp}`,
  batch: true,
  jobTables: undefined,
  registration: 7,
  acked: 3
})
const view: ViewRow = {
  view: "v",
  spec: {
    body: { id: "v", params: null, deep: [{ a: "\u0000\u{1F600}", n: [987654321987654321n, 987654321987654321] }] },
    ttlMs: 5,
    lastActiveAt: 6
  },
  assignment: 8,
  assignedAt: 9,
  home,
  placed: true,
  gone: false
}
const job: JobRow = { job: "job:1", table: "job", home: undefined, told: false }
const stray = (ssp: string, viewKey: string): StrayRow => ({ ssp, registration: 7, view: viewKey, assignment: 8 })
const all: ReadonlyArray<PoolWrite> = [
  { tag: "PersistMember", row: member("a") },
  { tag: "PersistMember", row: { ...member("b"), batch: undefined, incarnation: "i", jobTables: ["job"] } },
  { tag: "PersistView", row: view },
  { tag: "PersistStray", row: stray("a", "x") },
  { tag: "PersistStray", row: stray("a", 'y"') },
  { tag: "PersistStray", row: stray("ab", "x") },
  { tag: "PersistJob", row: job }
]
const savedOf = ({ saved }: StoredPool) => ({
  members: saved.members.map(({ ssp }) => ssp).sort(),
  views: saved.views.map((row) => row.view),
  strays: saved.strays.map((row) => [row.ssp, row.view]).sort(),
  jobs: saved.jobs.map((row) => row.job)
})

let files = 0
for (const [name, make, isThere] of [
  ["memory", memory, true],
  ["SQLite", () => sqlite(`pool-${++files}.db`), true],
  ["PostgreSQL", onServer(Postgres), Postgres.isReachable],
  ["NATS", onServer(Nats), Nats.isReachable]
] as const) {
  describe.skipIf(!isThere)(`D31 the pool in ${name}`, () => {
    it("D5 the epoch is 1 at first and one more with every start, whatever was written", async () => {
      const restart = make()
      const epochs = []
      for (let i = 0; i < 3; i++) epochs.push((await restart((store) => store.open("log"))).epoch)
      expect(epochs).toEqual([1, 2, 3])
    })
    it("D31 rows come back as they were, undefined fields included", async () => {
      const restart = make()
      await restart((store) => Effect.zipRight(store.open("log"), store.write(all)))
      const { lastLogId, saved } = await restart((store) => store.open("log"))
      expect(lastLogId).toBe("log")
      expect(saved.members).toStrictEqual([
        member("a"),
        { ...member("b"), batch: undefined, incarnation: "i", jobTables: ["job"] }
      ])
      expect(saved.views).toStrictEqual([view])
      expect(saved.jobs).toStrictEqual([job])
      expect(new Set(saved.strays)).toStrictEqual(new Set([stray("a", "x"), stray("a", 'y"'), stray("ab", "x")]))
    })
    it("D48 a query that is set aside is there after a restart, until it is freed", async () => {
      const restart = make(),
        row = { query: "null\nSELECT 'a\u0000' FROM t", view: "v", ends: 2, at: 5 }
      await restart((store) =>
        Effect.zipRight(
          store.open("log"),
          store.write([
            { tag: "PersistQuarantine", row },
            { tag: "PersistQuarantine", row: { ...row, query: "null\nSELECT b FROM t" } }
          ])
        )
      )
      await restart((store) =>
        Effect.zipRight(store.open("log"), store.write([{ tag: "ForgetQuarantine", query: "null\nSELECT b FROM t" }]))
      )
      expect((await restart((store) => store.open("log"))).saved.quarantined).toStrictEqual([row])
    })
    it("D31 forgotten rows are gone: an SSP with its strays, and no strays of others", async () => {
      const restart = make()
      await restart((store) => Effect.zipRight(store.open("log"), store.write(all)))
      await restart((store) =>
        Effect.zipRight(
          store.open("log"),
          store.write([
            { tag: "ForgetMember", ssp: "a" },
            { tag: "ForgetView", view: "v" },
            { tag: "ForgetJob", job: "job:1" }
          ])
        )
      )
      expect(savedOf(await restart((store) => store.open("log")))).toEqual({
        members: ["b"],
        views: [],
        strays: [["ab", "x"]],
        jobs: []
      })
      await restart((store) =>
        Effect.zipRight(
          store.open("log"),
          store.write([
            { tag: "ForgetStray", row: stray("ab", "x") },
            { tag: "PersistView", row: view },
            { tag: "PersistView", row: { ...view, placed: false } }
          ])
        )
      )
      const { saved } = await restart((store) => store.open("log"))
      expect([saved.strays, saved.views]).toStrictEqual([[], [{ ...view, placed: false }]])
    })
    it("D36 results of jobs are there after a restart; the oldest make room, by number and by length, also in the file; forgotten results are gone", async () => {
      const restart = make()
      const put = (job: string, result: Result | undefined): PoolWrite => ({ tag: "PersistResult", job, result })
      const shown = (store: PoolStoreShape) => ["a", "b", "c", "d"].map((name) => store.resultOf(name) !== undefined)
      const opened = (max: number) => restart((store) => Effect.map(store.open("log", max), () => shown(store)))
      await restart((store) =>
        Effect.zipRight(
          store.open("log", 3),
          store.write([...all, put("a", { n: 1 }), put("b", { n: 2 }), put("a", { n: [3] })])
        )
      )
      expect(
        await restart((store) => Effect.map(store.open("log", 3), () => [store.resultOf("a"), store.resultOf("b")]))
      ).toEqual([{ n: [3] }, { n: 2 }])
      // After a restart, too, the order is that of the writes: `b` is the oldest.
      await restart((store) =>
        store
          .open("log", 3)
          .pipe(Effect.zipRight(store.write([put("c", { n: 4 })])), Effect.zipRight(store.write([put("d", { n: 5 })])))
      )
      expect(await opened(10)).toEqual([true, false, true, true])
      await restart((store) => Effect.zipRight(store.open("log", 10), store.write([put("c", undefined)])))
      expect([await opened(10), await opened(1), await opened(10)]).toEqual([
        [true, false, false, true],
        [false, false, false, true],
        [false, false, false, true]
      ])
      const long = { text: "x".repeat(6_000_000) }
      await restart((store) =>
        Effect.zipRight(store.open("log", 10), store.write([put("a", long), put("b", long), put("c", long)]))
      )
      expect([await opened(10), savedOf(await restart((store) => store.open("log"))).jobs]).toEqual([
        [false, true, true, false],
        ["job:1"]
      ])
    })
    it.skipIf(name === "memory")(
      "D43 rows come in pieces, all of them, and are no more than the heap has room for",
      async () => {
        const restart = make(),
          text = "x".repeat(400_000)
        const views = Array.from({ length: 12 }, (_, i) => ({
          ...view,
          view: `v${i}`,
          spec: { ...view.spec, body: i % 3 === 0 ? { i, text } : { i } }
        }))
        for (const row of views)
          await restart((store) =>
            Effect.zipRight(store.open("log"), store.write([{ tag: "PersistView", row }, ...all]))
          )
        const { saved } = await restart((store) => store.open("log"))
        const byName = (rows: ReadonlyArray<ViewRow>) => [...rows].sort((a, b) => (a.view < b.view ? -1 : 1))
        expect(byName(saved.views)).toStrictEqual(byName([view, ...views]))
        // It is full when it is looked at for the second time.
        let looks = 0
        const memory = () => ({ usedBytes: ++looks * 5e7, limitBytes: 8e7, isFull: false })
        const answer = await restart((store) =>
          Effect.either(Effect.provideService(store.open("log"), Heap, { ...unwatchedHeap, measured: memory }))
        )
        expect(looks).toBe(2)
        expect(Either.isLeft(answer) ? answer.left : answer.right).toMatchObject({
          reason: "failed",
          message: expect.stringMatching(
            /^the heap's limit of 76 MiB is too small for what is stored: [1-9]\d* of \d+ (?:characters|writes) of the pool take 95 MiB/
          )
        })
      }
    )
    it("D5 in another log no SSP is kept, also later; views and jobs are", async () => {
      const restart = make()
      await restart((store) => Effect.zipRight(store.open("log"), store.write(all)))
      const kept = { members: [], views: ["v"], strays: [], jobs: ["job:1"] }
      const other = await restart((store) => store.open("another"))
      expect([other.epoch, other.lastLogId, savedOf(other)]).toEqual([2, "log", kept])
      expect(savedOf(await restart((store) => store.open("log")))).toEqual(kept)
    })
  })
}

describe("a pool file that cannot be used", () => {
  const opened = (name: string): Promise<unknown> =>
    sqlite(name)((store) => store.open("log")).then(
      () => "opened",
      (error: unknown) => String(error)
    )
  it("D26 a file that is no database, or of a later version, is refused", async () => {
    writeFileSync(join(folder, "no.db"), "x".repeat(5000))
    expect(await opened("no.db")).toMatch(/not a database|damaged|malformed/i)
    await sqlite("later.db")(() => Effect.void)
    const bytes = readFileSync(join(folder, "later.db"))
    // `user_version` in SQLite's header.
    bytes.writeUInt32BE(99, 60)
    writeFileSync(join(folder, "later.db"), bytes)
    expect(await opened("later.db")).toMatch(/later version/)
  })
  it("a row that does not decode is named, and nothing is taken for what it is not", async () => {
    const rows: ReadonlyArray<readonly [kind: string, key: string, value: unknown, message: RegExp]> = [
      ["view", "v", { ...view, assignment: "eight" }, /the view "v" of the pool does not decode: [\s\S]*assignment/],
      ["member", "a", { ssp: "a" }, /the member "a" of the pool does not decode: [\s\S]*registration/],
      ["job", "job:1", [], /the job "job:1" of the pool does not decode/],
      ["result", "job:1", { result: {} }, /the result "job:1" of the pool does not decode: [\s\S]*at/],
      ["meta", "epoch", "many", /the epoch of the pool is "many", and not a whole number/]
    ]
    for (const [kind, key, value, message] of rows) {
      const store = poolOver(new Map([[`${kind} ${key}`, { kind, key, value }]]))
      const exit = await Effect.runPromise(Effect.either(store.open("log")))
      expect(Either.isLeft(exit) ? [exit.left.reason, exit.left.message] : exit.right, key).toEqual([
        "damaged",
        expect.stringMatching(message)
      ])
    }
  })
})
