/**
 * The suite that every layer of `Database` must pass.
 *
 * A layer must return exactly what was committed, in one step or not at all: typed values, versions, tombstones,
 * registrations and the position.
 */
import { it } from "@effect/vitest"
import { Chunk, Effect, FastCheck, type Layer, Stream } from "effect"
import { describe, expect } from "vitest"
import { fromJson } from "../core/surql/values/json.ts"
import { compareStrings, identical } from "../core/surql/values/order.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import {
  Datetime,
  Decimal,
  Duration,
  Float,
  type Obj,
  type RecordId,
  Uuid,
  type Value
} from "../core/surql/values/value.ts"
import { Database, type DatabaseError, type StoredRecord, type StoredView, startPosition } from "../ports/Database.ts"

const id = (text: string): RecordId => {
  const parsed = Ids.parseLenient(text)
  if (parsed === undefined) throw new Error(`${text} is not a record id`)
  return parsed
}

const record = (text: string, version: number, content: { readonly [key: string]: Value }): StoredRecord => ({
  id: id(text),
  version,
  doc: { ...content, id: id(text) }
})

const view = (key: string, lastActiveAtMs = 0): StoredView => ({
  key,
  id: `incantation:${key}`,
  surql: "SELECT * FROM person",
  clientId: "c1",
  ttlMs: 60_000,
  params: '{"a":1}',
  format: "flat",
  lastActiveAtMs
})

const nothing = { records: [], putViews: [], removeViews: [], position: startPosition }

const allRecords = Effect.gen(function* () {
  const database = yield* Database
  const chunks = yield* Stream.runCollect(database.records)
  return new Map(
    Chunk.toReadonlyArray(chunks)
      .flat()
      .map((found) => [found.id.text, found])
  )
})

/** Registers the tests of one layer. `make` makes a fresh, empty layer each time. */
export const databaseSuite = (name: string, make: () => Layer.Layer<Database, DatabaseError>): void => {
  describe(`Database conformance: ${name}`, () => {
    it.effect("starts empty", () =>
      Effect.gen(function* () {
        const database = yield* Database
        expect(yield* allRecords).toEqual(new Map())
        expect(yield* database.views).toEqual([])
        expect(yield* database.position).toEqual(startPosition)
      }).pipe(Effect.provide(make()))
    )

    it.effect("D4 gives back records, versions and tombstones; the last write of an id wins", () =>
      Effect.gen(function* () {
        const database = yield* Database
        yield* database.commit({
          ...nothing,
          records: [
            record("person:a", 1, { name: "x" }),
            record("person:b", 7, {}),
            record("person:a", 2, { name: "y" })
          ]
        })
        yield* database.commit({ ...nothing, records: [{ id: id("person:b"), version: 7, doc: undefined }] })
        const found = yield* allRecords
        expect([...found.keys()].sort()).toEqual(["person:a", "person:b"])
        expect(found.get("person:a")).toMatchObject({ version: 2, doc: { name: "y" } })
        expect(found.get("person:b")).toMatchObject({ version: 7, doc: undefined })
      }).pipe(Effect.provide(make()))
    )

    it.effect("D1 gives back typed values as they were", () =>
      Effect.gen(function* () {
        const database = yield* Database
        const doc = {
          at: fromJson("2020-01-02T03:04:05.000000006Z"),
          since: new Datetime(-5, 7),
          long: new Duration(3, 1),
          one: new Float(1),
          big: 9007199254740993n,
          none: [undefined, null],
          uuid: new Uuid("018f4e2a-0000-7000-8000-000000000000"),
          link: id("person:`a b`"),
          nested: { deep: [{ link: id("x:1") }] },
          text: "\u0000 ' \" \\ 😀"
        }
        yield* database.commit({ ...nothing, records: [record("person:[1, 'a']", 1, doc)] })
        const found = (yield* allRecords).get("person:[1, 'a']")
        expect(found).toBeDefined()
        expect(found?.doc?.["at"]).toBeInstanceOf(Datetime)
        expect(found?.doc?.["decimal"]).not.toBeInstanceOf(Decimal)
        expect(identical(found?.doc as Obj, { ...doc, id: id("person:[1, 'a']") })).toBe(true)
      }).pipe(Effect.provide(make()))
    )

    it.effect("gives back any JSON content under hostile names and ids", () =>
      Effect.gen(function* () {
        const database = yield* Database
        const samples = FastCheck.sample(
          FastCheck.record({
            key: FastCheck.fullUnicodeString({ minLength: 1 }),
            body: FastCheck.dictionary(
              FastCheck.fullUnicodeString(),
              FastCheck.jsonValue() as FastCheck.Arbitrary<unknown>
            )
          }),
          200
        )
        const hostile = ["'; DROP TABLE record; --", "__proto__", "constructor", "\u0000", "`", "⟩", "a:b:c"].map(
          (key) => ({
            key,
            body: JSON.parse(`{"__proto__": {"x": 1}, "constructor": [1]}`) as { [key: string]: unknown }
          })
        )
        const written = [...samples, ...hostile].map(({ key, body }, i) => {
          const own = Ids.make("t", key)
          return { id: own, version: i + 1, doc: { ...(fromJson(body) as Obj), id: own } }
        })
        const last = new Map(written.map((one) => [one.id.text, one]))
        expect(last.size).toBeGreaterThan(100)
        // A layer may write many records by another path than a few.
        for (const size of [written.length, 40]) {
          yield* database.reset
          for (let at = 0; at < written.length; at += size)
            yield* database.commit({ ...nothing, records: written.slice(at, at + size) })
          const found = yield* allRecords
          expect(found.size).toBe(last.size)
          for (const [text, expected] of last) {
            expect(identical(found.get(text)?.doc, expected.doc), text).toBe(true)
            expect(found.get(text)?.version).toBe(expected.version)
          }
        }
      }).pipe(Effect.provide(make()))
    )

    it.effect("D9 keeps one registration per key, removes it, and keeps the position", () =>
      Effect.gen(function* () {
        const database = yield* Database
        yield* database.commit({ ...nothing, putViews: [view("a"), view("b")] })
        yield* database.commit({
          ...nothing,
          putViews: [view("a", 5)],
          removeViews: ["b", "unknown"],
          position: { writes: 3, seq: 9, logId: "log", epoch: 2 }
        })
        expect(yield* database.views).toEqual([view("a", 5)])
        expect(yield* database.position).toEqual({ writes: 3, seq: 9, logId: "log", epoch: 2 })
      }).pipe(Effect.provide(make()))
    )

    it.effect("D9 gives back a registration whatever its texts hold, and finds it again", () =>
      Effect.gen(function* () {
        const database = yield* Database
        // Compared by key, since stores differ in their order.
        const hostile = ["\u0000 and more", '"', '"quoted"', "a'b", "\ufffd", "😀\u0000"].map((text) => ({
          ...view(text),
          id: text,
          surql: `SELECT * FROM a WHERE b = '${text}'`,
          clientId: text
        }))
        const byKey = Effect.map(database.views, (views) => views.toSorted((a, b) => compareStrings(a.key, b.key)))
        yield* database.commit({ ...nothing, putViews: hostile })
        expect(yield* byKey).toEqual(hostile)
        yield* database.commit({
          ...nothing,
          putViews: hostile.map((each) => ({ ...each, ttlMs: 5 })),
          removeViews: [hostile[0]!.key, hostile[2]!.key]
        })
        expect((yield* byKey).map(({ key, ttlMs }) => [key, ttlMs])).toEqual(
          [1, 3, 4, 5].map((at) => [hostile[at]!.key, 5])
        )
      }).pipe(Effect.provide(make()))
    )

    it.effect("D16 reset forgets everything", () =>
      Effect.gen(function* () {
        const database = yield* Database
        yield* database.commit({
          records: [record("person:a", 1, {})],
          putViews: [view("a")],
          removeViews: [],
          position: { writes: 1, seq: 1, logId: "l", epoch: 1 }
        })
        yield* database.reset
        expect((yield* allRecords).size).toBe(0)
        expect(yield* database.views).toEqual([])
        expect(yield* database.position).toEqual(startPosition)
      }).pipe(Effect.provide(make()))
    )

    it.effect("reads more records than one chunk holds, each once", () =>
      Effect.gen(function* () {
        const database = yield* Database
        const many = Array.from({ length: 5_001 }, (_, i) => record(`t:${i}`, 1, { i }))
        yield* database.commit({ ...nothing, records: many })
        const chunks = yield* Stream.runCollect(database.records)
        expect(Chunk.toReadonlyArray(chunks).flat().length).toBe(5_001)
      }).pipe(Effect.provide(make()))
    )
  })
}
