/**
 * The layers of `Replica`, each through the conformance suite, and what only the one on disk can do.
 *
 * Restarts, damage and a second process are what an operator meets; states that stand still while the file is flushed
 * are what a bootstrap does.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { afterAll, expect, test } from "vitest"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { RecentRecords } from "../../src/drivers/shared/recentRecords.ts"
import { fileName, layerReplica } from "../../src/host/sqlite/ReplicaFile.ts"
import { builtin } from "../../src/host/sqlite/sqliteBuiltin.ts"
import { Replica, ReplicaError, startFault } from "../../src/ports/Replica.ts"
import { gone, id, record, replicaSuite } from "../../src/testing/Replica.suite.ts"

interface Connection {
  readonly exec: (sql: string) => void
  readonly prepare: (sql: string) => { readonly all: () => ReadonlyArray<unknown> }
  readonly close: () => void
}

/** A driver of its own, to stand in ours' way. */
const driver = createRequire(createRequire(import.meta.url).resolve("@effect/sql-sqlite-node"))
const Database = (builtin()?.DatabaseSync ?? driver("better-sqlite3")) as new (file: string) => Connection

const root = mkdtempSync(join(tmpdir(), "svc-replica-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
const fresh = (): string => join(root, `${folders++}`, "replica")

replicaSuite("memory", () => Layer.fresh(MemoryReplica.layer))
replicaSuite("SQLite", () => layerReplica(fresh()))

const using = <A>(
  folder: string,
  body: (replica: Replica["Type"]) => Effect.Effect<A, ReplicaError>
): Effect.Effect<A, ReplicaError> => Effect.flatMap(Replica, body).pipe(Effect.provide(layerReplica(folder)))

it.effect("a file of the layout before is taken over, its array and object keys in the order of tables", () =>
  Effect.gen(function* () {
    const folder = fresh(),
      texts = ["k:1", "k:['a', 1.5f]", "k:['a', d'2025-05-13T06:00:00.250Z']", "k:['a', d'2025-05-13T06:00:00Z']"]
    yield* using(folder, (replica) =>
      Effect.zipRight(
        replica.commit({
          records: [...texts.map((text, i) => record(text, 3, { i })), gone("k:[[1f], { a: '[' }]", 9)],
          through: 5
        }),
        replica.sync
      )
    )
    const file = new Database(join(folder, fileName))
    const swap = (table: string, from: string, to: string) =>
      file.exec(`UPDATE ${table} SET key = replace(key, '${from}', '${to}')`)
    // Datetimes were numbers of seconds there, and floats without a kind.
    swap("record", "G2025-05-13T06:00:00Z", "G2P17471160!000000000")
    swap("record", "G2025-05-13T06:00:00.250Z", "G2P17471160!250000000")
    swap("record", "!f", "!")
    swap("tombstone", "!f", "!")
    file.exec("PRAGMA user_version = 1")
    const before = file.prepare("SELECT id FROM record ORDER BY key").all() as ReadonlyArray<{ readonly id: string }>
    expect(before.map((row) => row.id)).toEqual([texts[0], texts[1], texts[3], texts[2]])
    file.close()
    yield* using(folder, (replica) =>
      Effect.gen(function* () {
        expect((yield* replica.records("k", undefined, 9)).map((found) => found.id.text)).toEqual(texts)
        const held = yield* replica.current([...texts, "k:[[1f], { a: '[' }]"].map(id))
        expect([...held.values()].map(({ version }) => version)).toEqual([3, 3, 3, 3, 9])
      })
    )
  })
)

it.effect("D26 what was committed is there again behind a restart, with position, tables and wholeness", () =>
  Effect.gen(function* () {
    const folder = fresh()
    yield* using(folder, (replica) =>
      Effect.gen(function* () {
        yield* replica.putTables([{ name: "t", types: { at: "datetime" } }])
        yield* replica.markWhole
        yield* replica.commit({ records: [record("t:1", 4, { a: 1 }), gone("t:2", 7)], through: 12 })
        yield* replica.freeze(1)
        yield* replica.sync
        yield* replica.commit({ records: [record("t:1", 5, { a: 2 })], through: 13 })
        yield* replica.sync
      })
    )
    yield* using(folder, (replica) =>
      Effect.gen(function* () {
        expect([yield* replica.applied, yield* replica.whole, yield* replica.tables]).toEqual([
          13,
          true,
          [{ name: "t", types: { at: "datetime" } }]
        ])
        const found = yield* replica.current([id("t:1"), id("t:2")])
        expect([found.get("t:1")?.version, found.get("t:1")?.doc?.["a"], found.get("t:2")]).toEqual([
          5,
          2,
          gone("t:2", 7)
        ])
      })
    )
  })
)

const refusal = (folder: string): Effect.Effect<ReplicaError, void> => Effect.flip(using(folder, () => Effect.void))

it.effect(
  "D26 a damaged file, a file of a later version and no database at all are refused by name, with exit code 3",
  () =>
    Effect.gen(function* () {
      const later = fresh(),
        damaged = fresh(),
        none = fresh()
      for (const folder of [later, damaged, none])
        yield* using(folder, (replica) =>
          replica.commit({
            records: Array.from({ length: 500 }, (_, i) => record(`t:${i}`, 1, { text: "x".repeat(100) })),
            through: 1
          })
        )
      const patch = (folder: string, change: (bytes: Buffer) => void) =>
        Effect.sync(() => {
          const bytes = readFileSync(join(folder, fileName))
          change(bytes)
          writeFileSync(join(folder, fileName), bytes)
        })
      yield* patch(later, (bytes) => bytes.writeUInt32BE(99, 60))
      yield* patch(damaged, (bytes) => bytes.fill(0xa5, 8_192, 16_384))
      yield* patch(none, (bytes) => bytes.fill(0x20, 0, 100))
      const faults = [yield* refusal(later), yield* refusal(damaged), yield* refusal(none)]
      expect(faults.map(({ reason }) => reason)).toEqual(["newer", "damaged", "damaged"])
      expect(faults.map((fault) => startFault(fault).exitCode)).toEqual([3, 3, 3])
      expect([later, damaged, none].map((folder, i) => faults[i]!.message.includes(join(folder, fileName)))).toEqual([
        true,
        true,
        true
      ])
    })
)

it.effect("a second process on the same folder is told so", () =>
  Effect.gen(function* () {
    const folder = fresh()
    const fault = yield* using(folder, () => Effect.orDie(refusal(folder)))
    expect([fault.reason, fault.message]).toEqual(["locked", `${join(folder, fileName)}: another process has it`])
  })
)

it.effect("a content that does not decode is damage, named by its record", () =>
  Effect.gen(function* () {
    const folder = fresh()
    yield* using(folder, (replica) =>
      replica
        .commit({ records: [record("t:1", 1, { text: "find me" })], through: 1 })
        .pipe(Effect.zipRight(replica.sync))
    )
    const bytes = readFileSync(join(folder, fileName))
    bytes[bytes.indexOf('"find me"')] = 0x20
    writeFileSync(join(folder, fileName), bytes)
    const fault = yield* Effect.flip(using(folder, (replica) => replica.current([id("t:1")])))
    expect([fault.reason, fault.message]).toEqual(["damaged", "record t:1 of the replica: its content does not decode"])
  })
)

test("the records asked for last stay, within entries and length, a record that is written again weighs once, and a new one is not kept", () => {
  const recent = new RecentRecords(3, 100)
  const versions = () => ["t:1", "t:2", "t:3", "t:4"].map((text) => recent.get(text)?.version)
  for (const text of ["t:1", "t:2", "t:3"]) recent.put(record(text, 1, {}), 30)
  expect(recent.get("t:1")?.version).toBe(1)
  recent.put(record("t:4", 1, {}), 10)
  expect(versions()).toEqual([1, undefined, 1, 1])
  for (let version = 2; version < 10; version++) recent.put(record("t:4", version, {}), 40)
  expect(versions()).toEqual([1, undefined, 1, 9])
  recent.renew(record("t:2", 5, {}), 10)
  recent.renew(record("t:3", 2, {}), 90)
  expect(versions()).toEqual([undefined, undefined, 2, undefined])
  recent.clear()
  expect(versions()).toEqual([undefined, undefined, undefined, undefined])
})

/** What another process would find in the file. */
const inFile = (
  folder: string
): { readonly applied: ReadonlyArray<unknown>; readonly records: ReadonlyArray<unknown> } => {
  const file = new Database(join(folder, fileName))
  try {
    const texts = (sql: string): ReadonlyArray<unknown> =>
      file
        .prepare(sql)
        .all()
        .map((row) => (row as { readonly text: unknown }).text)
    return {
      applied: texts("SELECT value AS text FROM meta WHERE name = 'applied'"),
      records: texts("SELECT id AS text FROM record ORDER BY id")
    }
  } finally {
    file.close()
  }
}

const faultOf = <A>(effect: Effect.Effect<A, ReplicaError>): Effect.Effect<ReplicaError> =>
  Effect.orDieWith(Effect.flip(effect), () => new Error("it worked"))

it.effect(
  "D26 while the file cannot be written a few records wait; then a commit fails, leaves everything as it was, and the next one works",
  () =>
    Effect.gen(function* () {
      const folder = fresh()
      yield* using(folder, (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({ records: [record("t:1", 1, { a: 1 })], through: 1 })
          const other = new Database(join(folder, fileName))
          other.exec("BEGIN IMMEDIATE")
          yield* replica.commit({ records: [record("t:1", 2, { a: 2 })], through: 2 })
          expect((yield* faultOf(replica.catchUp)).reason).toBe("locked")
          expect((yield* faultOf(Effect.scoped(replica.snapshot))).reason).toBe("locked")
          const fault = yield* faultOf(
            replica.commit({ records: [record("t:1", 3, { a: 3 }), record("t:2", 1, {})], through: 4 })
          )
          expect([fault.reason, yield* replica.applied]).toEqual(["locked", 2])
          other.exec("ROLLBACK")
          other.close()
          const found = yield* replica.current([id("t:1"), id("t:2")])
          expect([found.get("t:1")?.version, found.has("t:2")]).toEqual([2, false])
          yield* replica.commit({ records: [record("t:1", 3, { a: 3 }), record("t:2", 1, {})], through: 4 })
          expect((yield* replica.current([id("t:1")])).get("t:1")?.version).toBe(3)
        })
      )
      expect(inFile(folder)).toEqual({ applied: ["2"], records: ["t:1"] })
    })
)

it.effect(
  "D26 the file has the position of none of the records that wait, many records do not wait, and a read or a position writes them first",
  () =>
    Effect.gen(function* () {
      const folder = fresh()
      yield* using(folder, (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({ records: [record("t:1", 1, {})], through: 1 })
          yield* replica.commit({ records: [record("t:2", 1, {}), gone("t:9", 4)], through: 3 })
          expect(inFile(folder)).toEqual({ applied: [], records: [] })
          yield* replica.catchUp
          expect(inFile(folder)).toEqual({ applied: ["3"], records: ["t:1", "t:2"] })
          yield* replica.commit({ records: [gone("t:1", 2)], through: 4 })
          expect(yield* replica.names).toEqual(["t"])
          expect(inFile(folder)).toEqual({ applied: ["4"], records: ["t:2"] })
          yield* replica.commit({ records: [record("t:3", 1, {})], through: 4 })
          yield* replica.markWhole
          expect(inFile(folder).records).toEqual(["t:2", "t:3"])
          yield* replica.commit({
            records: Array.from({ length: 1000 }, (_, n) => record(`many:${n}`, 1, {})),
            through: 5
          })
          expect(inFile(folder).records.length).toBe(1002)
        })
      )
    })
)

test("a replica that is damaged or newer ends a start with 3, anything else with 1", () => {
  const codes = (["damaged", "newer", "locked", "failed", "full"] as const).map(
    (reason) => startFault(new ReplicaError({ reason, message: reason })).exitCode
  )
  expect(codes).toEqual([3, 3, 1, 1, 1])
})
