/**
 * Cloning, and comparing a replica that is whole: it ends up holding what the database holds, with versions kept, and
 * nothing is announced that has not changed.
 *
 * The database is one in memory that a test changes, breaks and counts; time is virtual.
 */
import { it } from "@effect/vitest"
import { Effect, Either, Fiber, FastCheck as fc, Logger, LogLevel, TestClock } from "effect"
import { describe, expect } from "vitest"
import { runs, seed } from "../../../kit/data/random.ts"
import { decodeChange } from "../../../src/core/record/change.ts"
import * as Event from "../../../src/core/record/event.ts"
import { lostId } from "../../../src/core/record/reconcile.ts"
import * as Version from "../../../src/core/record/version.ts"
import { asSent } from "../../../src/core/surql/values/jsonTypes.ts"
import { identical } from "../../../src/core/surql/values/order.ts"
import type { Obj, RecordId } from "../../../src/core/surql/values/value.ts"
import * as MemoryReplica from "../../../src/drivers/memoryReplica.ts"
import { make as memoryUpstream } from "../../../src/drivers/memoryUpstream.ts"
import { LiveCompare } from "../../../src/node/database/liveCompare.ts"
import { unwatchedHeap } from "../../../src/ports/ProcessFigures.ts"
import { Replica, type ReplicaShape } from "../../../src/ports/Replica.ts"
import { UpstreamError, type UpstreamShape } from "../../../src/ports/Upstream.ts"
import type { Ingest } from "../../../src/scheduler/ingest/Ingest.ts"
import { clone } from "../../../src/scheduler/replica/Cloning.ts"
import { replicaSide } from "../../../src/scheduler/replica/Reconcile.ts"
import { gone, id, record } from "../../../src/testing/Replica.suite.ts"
import { constant } from "../../core/surql/engine.ts"
import * as Generate from "../../core/surql/generate.ts"

const doc = (text: string, body = "{}"): Obj => ({ ...(constant(body) as Obj), id: id(text) })

/** A database whose records a test may change, and whose reads it may count, follow or break. */
const database = (
  records: Array<Obj>,
  onChunk: (table: string, calls: number) => Effect.Effect<void, UpstreamError> = () => Effect.void
) => {
  let calls = 0
  const shape = (): UpstreamShape => memoryUpstream(records)
  const upstream: UpstreamShape = {
    ...shape(),
    tables: Effect.suspend(() =>
      Effect.map(shape().tables, (tables) => tables.map((table) => ({ ...table, types: { at: "datetime" } })))
    ),
    find: (ids) => Effect.suspend(() => shape().find(ids)),
    chunk: (table, after, size) =>
      Effect.suspend(() => Effect.zipRight(onChunk(table, ++calls), shape().chunk(table, after, size)))
  }
  return { upstream, chunks: () => calls }
}

/**
 * The way in as the scheduler has it: versions decided, the line written and read back, applied at the next position.
 */
const ingest =
  (replica: ReplicaShape, lines: Array<string>): Ingest["Type"]["ingest"] =>
  (arrived, taking) =>
    Effect.orDie(
      Effect.gen(function* () {
        const known = yield* replica.current(arrived.map(({ change: { id } }) => id))
        for (const { change, raw } of arrived) {
          const next = Version.after(known.get(change.id.text), change)
          if (next === undefined || taking?.holds?.(change, known.get(change.id.text)) === false) continue
          const line = Event.toLine(raw, change.op, next.version, undefined)
          lines.push(line)
          // As a reader that knows the table decodes it.
          const read = Either.getOrThrowWith(
            decodeChange(JSON.parse(line), () => ({})),
            ({ message }) => new Error(message)
          )
          expect(identical(read.doc, change.doc)).toBe(true)
          yield* replica.commit({
            records: [{ id: change.id, version: next.version, doc: next.doc }],
            through: (yield* replica.applied) + 1
          })
        }
        return { seq: yield* replica.applied, delivered: 0 }
      })
    )

/** The compare of a replica that is whole; answers how many records were read and how many written. */
const compare = (upstream: UpstreamShape, replica: ReplicaShape, lines: Array<string>, chunkSize: number) =>
  Effect.map(
    new LiveCompare({
      upstream,
      momentMs: 0,
      together: 1_000,
      side: replicaSide(replica, chunkSize, ingest(replica, lines), unwatchedHeap),
      fork: () => Effect.void
    }).now,
    ({ compared, repaired }) => ({ compared, written: repaired.length })
  )

const scenario = (title: string, body: (replica: ReplicaShape) => Effect.Effect<void, unknown>): void =>
  it.effect(title, () =>
    Effect.flatMap(Replica, body).pipe(Effect.provide(MemoryReplica.layer), Logger.withMinimumLogLevel(LogLevel.None))
  )

const holds = (replica: ReplicaShape, wanted: ReadonlyArray<Obj>, as: (each: Obj) => Obj = (each) => each) =>
  Effect.gen(function* () {
    const tables = yield* replica.names
    const found = (yield* Effect.forEach(tables, (table) => replica.records(table, undefined, 10_000))).flat()
    expect(found.map((each) => each.id.text).sort()).toEqual(wanted.map((each) => (each["id"] as RecordId).text).sort())
    for (const each of wanted)
      expect(identical(as(found.find((one) => one.id.text === (each["id"] as RecordId).text)!.doc!), as(each))).toBe(
        true
      )
  })

describe("cloning", () => {
  scenario(
    "D25 D4 a clone takes every table in chunks with its types and versions, walks once more, and announces nothing",
    (replica) =>
      Effect.gen(function* () {
        const records = [
          ...Array.from({ length: 25 }, (_, i) =>
            doc(`t:${i}`, `{ i: ${i}, at: d'2020-01-01T00:00:00Z', price: 1.5dec }`)
          ),
          doc("u:a", "{ _svc_rv: 7, bytes: <bytes> 'ab', big: 9007199254740993 }"),
          doc("_svc_query:x")
        ]
        const { chunks, upstream } = database(records)
        expect(yield* clone({ upstream, replica, chunkSize: 10 })).toEqual({ compared: 52, written: 26 })
        // Three of t and one of u in each of two walks.
        expect(chunks()).toBe(8)
        yield* holds(replica, records.slice(0, 25).concat(doc("u:a", "{ bytes: <bytes> 'ab', big: 9007199254740993 }")))
        const found = yield* replica.current([id("t:1"), id("u:a")])
        expect([
          found.get("t:1")?.version,
          found.get("u:a")?.version,
          yield* replica.applied,
          yield* replica.whole
        ]).toEqual([1, 7, 0, true])
        expect(yield* replica.tables).toEqual([
          { name: "t", types: { at: "datetime" } },
          { name: "u", types: { at: "datetime" } }
        ])
      })
  )

  scenario("D20 what the database writes while it is cloned is found by the walks that follow", (replica) =>
    Effect.gen(function* () {
      const records = Array.from({ length: 30 }, (_, i) => doc(`t:${i}`, "{ v: 1 }"))
      const { upstream } = database(records, (_, calls) =>
        Effect.sync(() => {
          if (calls !== 3) return
          records[0] = doc("t:0", "{ v: 2 }")
          records.splice(5, 1)
          records.push(doc("a:1"))
        })
      )
      const cloned = yield* clone({ upstream, replica, chunkSize: 10 })
      yield* holds(replica, records)
      const found = yield* replica.current([id("t:0"), id("t:5"), id("t:1")])
      expect([found.get("t:0")?.version, found.get("t:5")?.doc, found.get("t:1")?.version, cloned.written]).toEqual([
        2,
        undefined,
        1,
        33
      ])
    })
  )

  scenario(
    "D25 a database that cannot be reached is tried again with growing pauses, for ever, where the walk stood",
    (replica) =>
      Effect.gen(function* () {
        const records = Array.from({ length: 20 }, (_, i) => doc(`t:${i}`))
        let down = true,
          tries = 0
        const { chunks, upstream } = database(records, (_, calls) =>
          Effect.suspend(() => {
            if (calls < 2 || !down) return Effect.void
            tries++
            return Effect.fail(new UpstreamError({ reason: "unreachable", message: "no answer" }))
          })
        )
        const running = yield* Effect.fork(clone({ upstream, replica, chunkSize: 10 }))
        yield* TestClock.adjust("10 minutes")
        expect(tries).toBeGreaterThan(15)
        expect(tries).toBeLessThan(200)
        expect(yield* replica.whole).toBe(false)
        down = false
        const before = chunks()
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(running)
        expect(yield* replica.whole).toBe(true)
        // The rest of the first walk, and the second; its first chunk was not read again.
        expect(chunks() - before).toBe(2 + 3)
        yield* holds(replica, records)
      })
  )

  scenario(
    "D25 a clone that was cut off goes on: what is there keeps its version, what went in between goes",
    (replica) =>
      Effect.gen(function* () {
        const records = [...Array.from({ length: 20 }, (_, i) => doc(`t:${i}`, "{ v: 1 }")), doc("u:1")]
        const broken = database(records, (table) => (table === "u" ? Effect.never : Effect.void))
        const running = yield* Effect.fork(clone({ upstream: broken.upstream, replica, chunkSize: 10 }))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(running)
        expect([yield* replica.whole, yield* replica.names]).toEqual([false, ["t", "u"]])
        records[1] = doc("t:1", "{ v: 2 }")
        records.splice(0, 1)
        expect(yield* clone({ upstream: database(records).upstream, replica, chunkSize: 10 })).toMatchObject({
          written: 3
        })
        yield* holds(replica, records)
        const found = yield* replica.current([id("t:1"), id("t:2")])
        expect([found.get("t:1")?.version, found.get("t:2")?.version]).toEqual([2, 1])
      })
  )

  scenario(
    "D25 a replica that is whole is compared: differences become changes with new positions, and only they",
    (replica) =>
      Effect.gen(function* () {
        yield* replica.commit({
          records: [
            record("t:same", 4, { v: 1 }),
            record("t:changed", 4, { v: 1 }),
            record("t:gone", 6, {}),
            record("old:1", 1, {}),
            gone("t:back", 9),
            record("_svc_x:1", 1, {})
          ],
          through: 40
        })
        yield* replica.markWhole
        const records = [
          doc("t:same", "{ v: 1, _svc_rv: 2 }"),
          doc("t:changed", "{ v: 2, at: d'2020-01-01T00:00:00Z', text: '2020-01-01T00:00:00Z' }"),
          doc("t:new", "{ _svc_rv: 12 }"),
          doc("t:back")
        ]
        const lines: Array<string> = []
        expect(yield* compare(database(records).upstream, replica, lines, 2)).toEqual({ compared: 4, written: 5 })
        const told = lines
          .map((line) => JSON.parse(line) as { op: string; id: string; record: { _svc_rv: number } })
          .map((each) => `${each.op} ${each.id} ${each.record._svc_rv}`)
        expect(told.sort()).toEqual([
          "CREATE t:back 10",
          "CREATE t:new 12",
          "DELETE old:1 1",
          "DELETE t:gone 6",
          "UPDATE t:changed 5"
        ])
        expect(yield* replica.applied).toBe(45)
        yield* holds(replica, [...records.map(({ _svc_rv: _, ...rest }) => rest as Obj), doc("_svc_x:1")])
      })
  )

  scenario(
    "D1 what a record loses on its way as an event is no difference, so that it is not announced again and again",
    (replica) =>
      Effect.gen(function* () {
        const records = [
          doc(
            "t:1",
            "{ bytes: <bytes> 'ab', big: 9007199254740993, list: [1, 2.0f], nested: { at: d'2020-01-01T00:00:00Z', ids: [p:1, 'p:2'] }, set: <set> [1h, 2h] }"
          )
        ]
        yield* replica.commit({ records: [{ id: id("t:1"), version: 3, doc: asSent(records[0]!) }], through: 1 })
        yield* replica.markWhole
        const lines: Array<string> = []
        expect([yield* compare(database(records).upstream, replica, lines, 10), lines]).toEqual([
          { compared: 1, written: 0 },
          []
        ])
      })
  )

  scenario(
    "D4 versions that were lost go on above the highest that a client may have seen, behind a restart too",
    (replica) =>
      Effect.gen(function* () {
        const { upstream } = database([doc("t:1"), doc("t:2", "{ _svc_rv: 3 }")])
        yield* clone({ upstream: { ...upstream, highestVersion: Effect.succeed(17) }, replica, chunkSize: 10 })
        const found = yield* replica.current([id("t:1"), id("t:2"), lostId])
        expect([found.get("t:1")?.version, found.get("t:2")?.version, found.get(lostId.text)]).toEqual([
          18,
          3,
          { id: lostId, version: 17, doc: undefined }
        ])
      })
  )

  scenario(
    "D25 random databases and random replicas: equal when it is done, and a second compare says nothing",
    (replica) =>
      Effect.gen(function* () {
        const body = fc.tuple(
          fc.constantFrom("p:1", "p:2", "p:-5", "p:`x y`", "p:[1, 2]", "q:a", "q:b"),
          Generate.value
        )
        let written = 0
        for (const [mine, theirs] of fc.sample(
          fc.tuple(fc.array(body, { maxLength: 6 }), fc.array(body, { maxLength: 6 })),
          { numRuns: runs(40), seed }
        )) {
          const docs = (bodies: ReadonlyArray<readonly [string, string]>) => [
            ...new Map(
              bodies.map(([text, value]) => [text, doc(text, value === "NONE" ? "{}" : `{ v: ${value} }`)])
            ).values()
          ]
          yield* replica.clear
          yield* replica.commit({
            records: docs(mine).map((each, i) => ({ id: each["id"] as RecordId, version: i + 1, doc: asSent(each) })),
            through: 1
          })
          yield* replica.markWhole
          const lines: Array<string> = []
          const run = () => compare(database(docs(theirs)).upstream, replica, lines, 2)
          written += (yield* run()).written
          yield* holds(replica, docs(theirs), asSent)
          const said = lines.length
          yield* run()
          expect(lines.length).toBe(said)
        }
        expect(written).toBeGreaterThan(80)
      })
  )
})
