/**
 * The suite that every layer of `Replica` must pass.
 *
 * Its answers decide versions, and SSPs bootstrap from its frozen states, so both are compared with a model, a plain
 * map.
 */
import { it } from "@effect/vitest"
import { Effect, FastCheck as fc, type Layer, type Scope } from "effect"
import { describe, expect } from "vitest"
import { bucketOf } from "../core/integrity/merkle.ts"
import { identical } from "../core/surql/values/order.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import {
  Datetime,
  Duration,
  Float,
  type Obj,
  Range,
  type RecordId,
  type RecordKey,
  Uuid,
  type Value
} from "../core/surql/values/value.ts"
import { docOf } from "../node/database/replicaRecord.ts"
import { Replica, type ReplicaError, type ReplicaRecord, type ReplicaSnapshot } from "../ports/Replica.ts"

export const id = (text: string): RecordId => {
  const parsed = Ids.parseLenient(text)
  if (parsed === undefined) throw new Error(`${text} is not a record id`)
  return parsed
}

export const record = (text: string, version: number, content: { readonly [key: string]: Value }): ReplicaRecord => ({
  id: id(text),
  version,
  doc: { ...content, id: id(text) }
})
export const gone = (text: string, version: number): ReplicaRecord => ({ id: id(text), version, doc: undefined })

const idsIn = (snapshot: ReplicaSnapshot, table: string, range?: Range): ReadonlyArray<string> =>
  Array.from(snapshot.rows(table, range), (row) => row?.id ?? "")

const key: fc.Arbitrary<RecordKey> = fc.oneof(
  fc.integer({ min: -50, max: 50 }),
  fc.fullUnicodeString({ maxLength: 2 }),
  fc.constantFrom("", "\u0000", "a\u0000", '"', "`", "⟩", "\ud800", "\uffff", "😀"),
  fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom<Value>("a", "b", null, new Float(1))), {
    maxLength: 2
  }) as fc.Arbitrary<RecordKey>,
  fc.constantFrom<RecordKey>(new Uuid("018f4e2a-0000-7000-8000-000000000000"), { a: 1 })
)

const bound = fc.option(fc.record({ value: key as fc.Arbitrary<Value>, inclusive: fc.boolean() }), { nil: undefined })

/** Whole random numbers below a bound, by mulberry32: a failure repeats with its seed. */
const drawing = (seed: number) => {
  let state = seed >>> 0
  return (bound: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * bound)
  }
}

/** Registers the tests of one layer. `make` makes a fresh, empty layer each time; `seed` chooses the random values. */
export const replicaSuite = (name: string, make: () => Layer.Layer<Replica, ReplicaError>, seed = 20_260_101): void => {
  const scenario = <A>(
    title: string,
    body: (replica: Replica["Type"]) => Effect.Effect<A, ReplicaError, Scope.Scope>
  ): void => it.scoped(title, () => Effect.flatMap(Replica, body).pipe(Effect.provide(make())))

  describe(`Replica conformance: ${name}`, () => {
    scenario("starts empty", (replica) =>
      Effect.gen(function* () {
        expect(yield* replica.applied).toBe(0)
        expect(yield* replica.current([id("person:a")])).toEqual(new Map())
        expect(yield* replica.tables).toEqual([])
        expect(yield* replica.whole).toBe(false)
        const snapshot = yield* replica.snapshot
        expect([snapshot.seq, snapshot.tables(), idsIn(snapshot, "person"), snapshot.find(id("person:a"))]).toEqual([
          0,
          [],
          [],
          undefined
        ])
      })
    )

    scenario(
      "D4 current answers versions and contents, of deleted records their last version; the last of a batch wins; a record that comes back is alive again",
      (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({
            records: [
              record("person:a", 1, { name: "x" }),
              record("person:b", 7, {}),
              record("person:a", 2, { name: "y" })
            ],
            through: 3
          })
          yield* replica.commit({ records: [gone("person:b", 8), gone("person:never", 4)], through: 5 })
          const first = yield* replica.current([
            id("person:a"),
            id("person:b"),
            id("person:never"),
            id("person:other"),
            id("person:a")
          ])
          expect([...first.values()].map(({ doc, id: { text }, version }) => [text, version, doc?.["name"]])).toEqual([
            ["person:a", 2, "y"],
            ["person:b", 8, undefined],
            ["person:never", 4, undefined]
          ])
          expect(first.get("person:b")?.doc).toBeUndefined()
          yield* replica.commit({ records: [record("person:b", 9, { back: true }), gone("person:a", 3)], through: 7 })
          const second = yield* replica.current([id("person:a"), id("person:b")])
          expect([
            second.get("person:a"),
            second.get("person:b")?.doc?.["back"],
            second.get("person:b")?.version
          ]).toEqual([gone("person:a", 3), true, 9])
          expect(yield* replica.applied).toBe(7)
        })
    )

    scenario(
      "D26 a batch that was committed before does nothing when it comes again, and one that ends where the replica stands is written",
      (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({ records: [record("t:1", 2, { v: "new" })], through: 9 })
          yield* replica.commit({ records: [record("t:1", 1, { v: "old" })], through: 8 })
          yield* replica.commit({ records: [record("t:2", 1, {})], through: 9 })
          const found = yield* replica.current([id("t:1"), id("t:2")])
          expect([found.get("t:1")?.version, found.get("t:2")?.version, yield* replica.applied]).toEqual([2, 1, 9])
        })
    )

    scenario("D1 gives back typed values as they were", (replica) =>
      Effect.gen(function* () {
        const doc = {
          at: new Datetime(1_577_934_245, 6),
          since: new Datetime(-5, 7),
          long: new Duration(3, 1),
          one: new Float(1),
          big: 9007199254740993n,
          $: "root",
          nested: { $: [1], deep: [{ link: id("x:1") }] },
          none: [undefined, null],
          uuid: new Uuid("018f4e2a-0000-7000-8000-000000000000"),
          link: id("person:`a b`"),
          text: '\u0000 \' " \\ 😀 {"$":[',
          __proto__x: 1
        }
        yield* replica.commit({ records: [record("person:[1, 'a']", 1, doc)], through: 1 })
        const own = id("person:[1, 'a']")
        const wanted = { ...doc, id: own }
        const snapshot = yield* replica.snapshot
        expect(identical((yield* replica.current([own])).get(own.text)?.doc as Obj, wanted)).toBe(true)
        expect(identical(docOf(snapshot.find(own)!), wanted)).toBe(true)
        expect(identical((yield* replica.records("person", undefined, 10))[0]?.doc as Obj, wanted)).toBe(true)
      })
    )

    scenario("D27 frozen states stand still while commits go on, several at once, and the newest is read", (replica) =>
      Effect.gen(function* () {
        const read = Effect.scoped(
          Effect.map(replica.snapshot, (snapshot) => [
            snapshot.seq,
            idsIn(snapshot, "t").join(" "),
            snapshot.tables().join(" ")
          ])
        )
        yield* replica.commit({ records: [record("t:1", 1, {})], through: 1 })
        expect(yield* replica.freeze(10)).toBe(1)
        yield* replica.commit({ records: [record("t:2", 1, {}), record("u:1", 1, {})], through: 3 })
        expect(yield* read).toEqual([1, "t:1", "t"])
        expect(yield* replica.freeze(11)).toBe(3)
        yield* replica.commit({ records: [gone("t:1", 2)], through: 4 })
        expect(yield* read).toEqual([3, "t:1 t:2", "t u"])
        expect(yield* replica.freeze(11)).toBe(3)
        yield* replica.thaw(11)
        expect(yield* read).toEqual([1, "t:1", "t"])
        yield* replica.thaw(10)
        yield* replica.thaw(10)
        expect(yield* read).toEqual([4, "t:2", "t u"])
      })
    )

    scenario(
      "committed records are there for every reader, whenever they are written: random commits and reads against a map",
      (replica) =>
        Effect.gen(function* () {
          const below = drawing(seed)
          const model = new Map<string, ReplicaRecord>()
          const alive = (): ReadonlyArray<string> =>
            [...model.values()]
              .flatMap(({ doc, id: own, version }) => (doc === undefined ? [] : [`${own.text} ${version}`]))
              .sort()
          for (let through = 1; through <= 400; through++) {
            const records = Array.from({ length: below(5) }, () => {
              const text = `t:${below(40)}`
              const version = (model.get(text)?.version ?? 0) + 1
              return below(4) === 0 ? gone(text, version) : record(text, version, { at: through })
            })
            for (const one of records) model.set(one.id.text, one)
            yield* replica.commit({ records, through })
            const turn = below(12)
            if (turn === 0) yield* replica.catchUp
            else if (turn === 1) yield* replica.sync
            else if (turn === 2)
              expect(
                (yield* replica.records("t", undefined, 100))
                  .map(({ id: own, version }) => `${own.text} ${version}`)
                  .sort()
              ).toEqual(alive())
            else if (turn === 3) {
              expect(yield* replica.freeze(through)).toBe(through)
              expect(idsIn(yield* Effect.scoped(replica.snapshot), "t").length).toBe(alive().length)
              yield* replica.thaw(through)
            } else if (turn < 8) {
              const asked = Array.from({ length: 3 }, () => id(`t:${below(45)}`))
              const found = yield* replica.current(asked)
              for (const one of asked)
                expect([found.get(one.text)?.version, found.get(one.text)?.doc?.["at"]]).toEqual([
                  model.get(one.text)?.version,
                  model.get(one.text)?.doc?.["at"]
                ])
            }
            expect(yield* replica.applied).toBe(through)
          }
        })
    )

    scenario(
      "D27 a snapshot in use stands still: behind commits, behind the end of its freeze, behind a reset",
      (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({ records: [record("t:1", 1, { v: 1 }), record("t:2", 1, {})], through: 2 })
          const current = yield* replica.snapshot
          yield* replica.freeze(1)
          const frozen = yield* replica.snapshot
          yield* replica.thaw(1)
          yield* replica.commit({ records: [gone("t:1", 2), record("t:3", 1, {})], through: 4 })
          yield* replica.clear
          for (const snapshot of [current, frozen]) {
            expect(idsIn(snapshot, "t")).toEqual(["t:1", "t:2"])
            expect([snapshot.seq, snapshot.find(id("t:1"))?.content, snapshot.find(id("t:3"))]).toEqual([
              2,
              '{"v":1}',
              undefined
            ])
          }
          expect([yield* replica.applied, yield* replica.current([id("t:1"), id("t:2"), id("t:3")])]).toEqual([
            0,
            new Map()
          ])
        })
    )

    scenario(
      "rows come in key order and within ranges of keys, whatever the keys; chunks put together are the table",
      (replica) =>
        Effect.gen(function* () {
          const keys = new Map(
            fc.sample(key, { numRuns: 300, seed }).map((each) => [Ids.make("t", each).text, Ids.make("t", each)])
          )
          const sorted = [...keys.values()].sort((a, b) => Ids.compareKeys(a.key, b.key))
          yield* replica.commit({
            records: [...keys.values()].map((own, i) => ({ id: own, version: i + 1, doc: { id: own, i } })),
            through: 1
          })
          yield* replica.commit({
            records: [record("s:1", 1, {}), record("t\u0000:1", 1, {}), record("tt:1", 1, {})],
            through: 2
          })
          const snapshot = yield* replica.snapshot
          const same = (found: ReadonlyArray<string>, wanted: ReadonlyArray<RecordId>): void => {
            expect([...found].sort()).toEqual(wanted.map(({ text }) => text).sort())
            for (let i = 1; i < found.length; i++)
              expect(Ids.compareKeys(keys.get(found[i - 1]!)!.key, keys.get(found[i]!)!.key)).toBeLessThanOrEqual(0)
          }
          same(idsIn(snapshot, "t"), sorted)
          const inside = (own: RecordId, { from, to }: Range): boolean => {
            const low = from === undefined ? 1 : Ids.compareKeys(own.key, from.value as RecordKey),
              high = to === undefined ? -1 : Ids.compareKeys(own.key, to.value as RecordKey)
            return (
              ((low > 0 || (low === 0 && from?.inclusive === true)) &&
                (high < 0 || (high === 0 && to?.inclusive === true))) ||
              (low > 0 && to === undefined)
            )
          }
          for (const [from, to] of fc.sample(fc.tuple(bound, bound), { numRuns: 100, seed })) {
            const range = new Range(from, to)
            same(
              idsIn(snapshot, "t", range),
              sorted.filter((own) => inside(own, range))
            )
          }
          const chunks: Array<string> = []
          for (let after: RecordKey | undefined; ; ) {
            const chunk = yield* replica.records("t", after, 7)
            chunks.push(...chunk.map(({ id: { text } }) => text))
            if (chunk.length < 7) break
            after = chunk.at(-1)!.id.key
          }
          expect(chunks).toEqual(idsIn(snapshot, "t"))
          expect(keys.size).toBeGreaterThan(100)
        })
    )

    scenario(
      "a read takes no more rows than it needs, and a bound that no key can be is compared as it is",
      (replica) =>
        Effect.gen(function* () {
          yield* replica.commit({
            records: Array.from({ length: 3_000 }, (_, i) => record(`t:${i}`, 1, { i, even: i % 2 === 0 })),
            through: 1
          })
          const counted = (body: (snapshot: ReplicaSnapshot) => number) =>
            Effect.scoped(Effect.map(replica.snapshot, (snapshot) => [body(snapshot), snapshot.rowsRead()]))
          expect(
            yield* counted((snapshot) => Array.from(snapshot.rows("t", undefined, { atMost: 10 })).length)
          ).toEqual([10, 10])
          expect(
            yield* counted(
              (snapshot) =>
                Array.from(snapshot.rows("t", new Range({ value: 2_990, inclusive: true }, undefined))).length
            )
          ).toEqual([10, 10])
          const [first, read] = yield* counted((snapshot) => {
            for (const row of snapshot.rows("t")) return row?.version ?? 0
            return 0
          })
          expect(first).toBe(1)
          expect(read).toBeLessThanOrEqual(64)
          expect(yield* counted((snapshot) => Array.from(snapshot.rows("t")).length)).toEqual([3_000, 3_000])
          const odd = new Range({ value: new Datetime(0, 0), inclusive: true }, undefined)
          expect(yield* counted((snapshot) => Array.from(snapshot.rows("t", odd)).length)).toEqual([0, 3_000])
        })
    )

    scenario("a filter leaves out only rows that cannot pass it, and still counts them", (replica) =>
      Effect.gen(function* () {
        const typed = record("t:9", 1, { a: new Float(1), b: id("p:1") })
        const rooted = record("t:8", 1, { $: 1, a: 5 })
        yield* replica.commit({
          records: [
            record("t:1", 1, { a: 1, b: "x" }),
            record("t:2", 1, { a: "1", b: "x" }),
            record("t:3", 1, { b: "x", c: true }),
            record("t:4", 1, { a: 1, b: "p:1", c: false }),
            rooted,
            typed
          ],
          through: 1
        })
        const snapshot = yield* replica.snapshot
        const kept = (where: ReadonlyArray<readonly [string, string | number | boolean]>) =>
          Array.from(snapshot.rows("t", undefined, { where }), (row) => row?.id ?? "-").join(" ")
        expect(kept([["a", 1]])).toBe("t:1 - - t:4 t:8 t:9")
        expect(kept([["a", "1"]])).toBe("- t:2 - - t:8 t:9")
        expect(
          kept([
            ["a", 1],
            ["b", "p:1"]
          ])
        ).toBe("- - - t:4 t:8 t:9")
        expect(kept([["c", true]])).toBe("- - t:3 - t:8 -")
        expect(kept([["nothing", "x"]])).toBe("- - - - t:8 -")
      })
    )

    scenario(
      "edges are found by their ends in the order of their tables and keys, moved and removed with their records",
      (replica) =>
        Effect.gen(function* () {
          const edge = (text: string, from: string, to: string) => record(text, 1, { in: id(from), out: to })
          const ends = (of: string, direction: "in" | "out", table?: string) =>
            Effect.scoped(
              Effect.map(replica.snapshot, (snapshot) =>
                snapshot
                  .edges(id(of), direction, table)
                  .map(({ text }) => text)
                  .join(" ")
              )
            )
          yield* replica.commit({
            records: [
              edge("likes:10", "p:1", "p:2"),
              edge("likes:9", "p:1", "p:3"),
              edge("knows:a", "p:1", "p:2"),
              record("likes:11", 1, { in: id("p:1") }),
              record("likes:12", 1, { in: "p 1", out: id("p:2") })
            ],
            through: 1
          })
          expect([
            yield* ends("p:1", "out"),
            yield* ends("p:1", "out", "likes"),
            yield* ends("p:2", "in"),
            yield* ends("p:2", "out")
          ]).toEqual(["knows:a likes:9 likes:10", "likes:9 likes:10", "knows:a likes:10", ""])
          yield* replica.commit({ records: [edge("likes:9", "p:2", "p:3"), gone("knows:a", 2)], through: 2 })
          expect([yield* ends("p:1", "out"), yield* ends("p:2", "out"), yield* ends("p:3", "in")]).toEqual([
            "likes:10",
            "likes:9",
            "likes:9"
          ])
        })
    )

    scenario(
      "D28 keeps the declared tables and whether a clone was completed, and names every table that is declared or has records",
      (replica) =>
        Effect.gen(function* () {
          const tables = [
            { name: "zoo", types: { at: "datetime", "tags.*": "uuid" } },
            { name: "b", types: {} }
          ]
          yield* replica.putTables(tables)
          yield* replica.markWhole
          yield* replica.commit({ records: [record("a:1", 1, {}), record("b:1", 1, {}), gone("c:1", 1)], through: 1 })
          expect([yield* replica.tables, yield* replica.whole, yield* replica.names]).toEqual([
            tables,
            true,
            ["a", "b", "zoo"]
          ])
          const snapshot = yield* replica.snapshot
          expect([snapshot.tables(), snapshot.types("zoo"), snapshot.types("b"), snapshot.types("a")]).toEqual([
            ["a", "b", "zoo"],
            tables[0]!.types,
            {},
            undefined
          ])
          yield* replica.clear
          expect([yield* replica.tables, yield* replica.whole, yield* replica.names]).toEqual([[], false, []])
        })
    )

    scenario(
      "D41 a bucket holds the records whose id hashes into it, new ones, changed ones, no deleted ones",
      (replica) =>
        Effect.gen(function* () {
          const ids = Array.from({ length: 600 }, (_, i) => `t:${i}`)
          const index = bucketOf("t:77")
          const wanted = ids.filter((text) => bucketOf(text) === index)
          yield* replica.commit({ records: ids.map((text) => record(text, 1, {})), through: 1 })
          const found = () =>
            Effect.map(replica.bucket("t", index), (records) =>
              records.map(({ id: { text }, version }) => `${text} ${version}`)
            )
          expect(yield* found()).toEqual(wanted.map((text) => `${text} 1`))
          yield* replica.commit({ records: [record("t:77", 2, { changed: true })], through: 2 })
          expect(yield* found()).toContain("t:77 2")
          yield* replica.commit({ records: [gone("t:77", 3)], through: 3 })
          expect(yield* found()).not.toContain("t:77 2")
          expect(yield* replica.bucket("u", index)).toEqual([])
        })
    )
  })
}
