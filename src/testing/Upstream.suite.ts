/**
 * The suite that every layer of `Upstream` must pass.
 *
 * Records are not written through the port, because users write them with their own statements. Everything written
 * through the port is read back through it and compared exactly.
 */
import { it } from "@effect/vitest"
import { Chunk, Effect, type Layer, Stream } from "effect"
import { describe, expect } from "vitest"
import { WideDecimal } from "../core/surql/values/number.ts"
import { identical } from "../core/surql/values/order.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import {
  Datetime,
  Decimal,
  Duration,
  Float,
  type Obj,
  type RecordId,
  type RecordKey,
  Uuid
} from "../core/surql/values/value.ts"
import type { StoredView } from "../ports/Database.ts"
import { type Edge, Upstream, type UpstreamError, type ViewEdges } from "../ports/Upstream.ts"

/** Record keys in key order. */
export const oddKeys: ReadonlyArray<RecordKey> = [
  -5,
  0,
  7,
  9007199254740993n,
  "",
  "\u0000",
  "'",
  "'; REMOVE TABLE item; --",
  "123",
  "\\",
  "`",
  "a b",
  "ab",
  "ä😀",
  "⟨⟩",
  new Uuid("018f4e2a-0000-7000-8000-000000000000"),
  ["x", 1],
  ["x", [Ids.make("t", 1)]],
  { a: 1, b: ["q"] }
]

const view = (key: string, lastActiveAtMs = 5): StoredView => ({
  key,
  id: `incantation:${key}`,
  surql: "SELECT * FROM item",
  clientId: "user:ann",
  ttlMs: 90_500,
  params: '{"b":1.0,"a":null}',
  format: "flat",
  lastActiveAtMs
})

const edge = (out: RecordId, version = 1): Edge => ({ path: "", parent: undefined, out, version })
const child = (path: string, parent: RecordId, out: RecordId, version = 1): Edge => ({ path, parent, out, version })
const edgesOf = (key: string, puts: ReadonlyArray<Edge>, rest: Partial<ViewEdges> = {}): ViewEdges => ({
  key,
  clientId: "user:ann",
  owner: "me",
  assignment: 1,
  puts,
  removals: [],
  ...rest
})

const text = ({ out, parent, path, version }: Edge): string => JSON.stringify([path, parent?.text, out.text, version])

const readEdges = (key: string): Effect.Effect<ReadonlyArray<string>, UpstreamError, Upstream> =>
  Effect.flatMap(Upstream, (upstream) =>
    Effect.map(Stream.runCollect(upstream.edges(key)), (chunks) =>
      Chunk.toReadonlyArray(chunks).flat().map(text).sort()
    )
  )

const texts = (edges: ReadonlyArray<Edge>): ReadonlyArray<string> => edges.map(text).sort()

const readAll = (table: string, size: number) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    const found = []
    for (let after: RecordKey | undefined; ; ) {
      const chunk = yield* upstream.chunk(table, after, size)
      found.push(...chunk)
      if (chunk.length < size) return found
      after = chunk.at(-1)?.id.key
    }
  })

/** Registers the tests of one layer. `make` makes a fresh database with these records, and the layer over it. */
export const upstreamSuite = (
  name: string,
  make: (records: ReadonlyArray<Obj>) => Layer.Layer<Upstream, UpstreamError>
): void => {
  const records = (table: string): ReadonlyArray<Obj> => oddKeys.map((key, n) => ({ id: Ids.make(table, key), n }))

  describe(`Upstream conformance: ${name}`, () => {
    it.effect("lists the tables that are not ours", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        yield* upstream.prepare
        expect((yield* upstream.tables).map((table) => [table.name, table.derived])).toEqual([
          ["item", false],
          ["odd `name", false]
        ])
      }).pipe(Effect.provide(make([...records("item"), ...records("odd `name")])))
    )

    it.effect("reads a table in chunks by key, every record once, whatever its id", () =>
      Effect.gen(function* () {
        for (const table of ["item", "odd `name"]) {
          for (const size of [1, 2, 7, 1000]) {
            expect(
              (yield* readAll(table, size)).map(({ id }) => id.text),
              `${table} by ${size}`
            ).toEqual(oddKeys.map((key) => Ids.make(table, key).text))
          }
        }
        expect(yield* readAll("nothing of that name", 10)).toEqual([])
      }).pipe(Effect.provide(make([...records("item"), ...records("odd `name")])))
    )

    it.effect("D1 D4 records come typed and exact, their version apart", () => {
      const doc = {
        id: Ids.make("item", 1),
        at: new Datetime(-5, 7),
        long: new Duration(3, 1),
        one: new Float(1),
        int: 1,
        big: 9007199254740993n,
        price: new Decimal(new WideDecimal("1.5")),
        uuid: new Uuid("018f4e2a-0000-7000-8000-000000000000"),
        link: Ids.make("x", "a b"),
        nested: { deep: [null, { link: Ids.make("x", 1) }] },
        text: "\u0000 ' \" \\ 😀"
      }
      return Effect.gen(function* () {
        const [found] = yield* readAll("item", 10)
        expect(identical(found?.doc, doc)).toBe(true)
        expect(found?.version).toBe(7)
      }).pipe(Effect.provide(make([{ ...doc, _svc_rv: 7 }])))
    })

    it.effect("finds the records that exist, of any table", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        const ids = [
          Ids.make("item", ["x", 1]),
          Ids.make("item", "gone"),
          Ids.make("no table", 1),
          Ids.make("odd `name", "'")
        ]
        expect((yield* upstream.find(ids)).map(({ id }) => id.text).sort()).toEqual([ids[0]?.text, ids[3]?.text].sort())
        expect(yield* upstream.find([])).toEqual([])
      }).pipe(Effect.provide(make([...records("item"), ...records("odd `name")])))
    )

    it.effect(
      "D14 D21 a registration is kept as it was, its owner changes hands with a higher assignment, its later time stays",
      () =>
        Effect.gen(function* () {
          const upstream = yield* Upstream
          yield* upstream.prepare
          expect(yield* upstream.register(view("a b'`"), "me")).toBe(1)
          expect(yield* upstream.register(view("a b'`", 90), "me")).toBe(1)
          expect(yield* upstream.register(view("a b'`", 50), "you")).toBe(2)
          expect(yield* upstream.register(view("a b'`", 60), "me")).toBe(3)
          expect(yield* upstream.registrations).toEqual([{ ...view("a b'`", 90), owner: "me", assignment: 3 }])
          yield* upstream.unregister(["a b'`"], "you")
          expect((yield* upstream.registrations).length).toBe(1)
          yield* upstream.unregister(["a b'`", "unknown"], "me")
          expect(yield* upstream.registrations).toEqual([])
        }).pipe(Effect.provide(make([])))
    )

    it.effect(
      "D21 a registration is claimed as it is: one of another owner changes hands, one that is gone does not come back",
      () =>
        Effect.gen(function* () {
          const upstream = yield* Upstream
          yield* upstream.prepare
          yield* upstream.register(view("mine"), "me")
          yield* upstream.register(view("theirs", 70), "you")
          for (const _again of [1, 2]) {
            const claimed = yield* upstream.claim(["mine", "theirs", "gone"], "me")
            expect([...claimed].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual([
              { ...view("mine"), owner: "me", assignment: 1 },
              { ...view("theirs", 70), owner: "me", assignment: 2 }
            ])
          }
          expect((yield* upstream.registrations).length).toBe(2)
        }).pipe(Effect.provide(make([])))
    )

    it.effect(
      "D14 a registration expires by the time that is stored, in one step: its edges are not written any more; a refreshed one, another's and a gone one stay as they are",
      () =>
        Effect.gen(function* () {
          const upstream = yield* Upstream
          yield* upstream.prepare
          for (const key of ["old", "refreshed", "theirs"]) yield* upstream.register(view(key, 1_000), "me")
          yield* upstream.register(view("refreshed", 60_000), "me")
          yield* upstream.register(view("theirs"), "you")
          const left = yield* upstream.expire(["old", "refreshed", "theirs", "gone"], "me", 91_500)
          expect(
            left.map(({ assignment, key, lastActiveAtMs, owner }) => [key, owner, assignment, lastActiveAtMs]).sort()
          ).toEqual([
            ["refreshed", "me", 1, 60_000],
            ["theirs", "you", 2, 1_000]
          ])
          expect(
            (yield* upstream.apply(["old", "refreshed"].map((key) => edgesOf(key, [edge(Ids.make("item", 7))])))).lost
          ).toEqual(["old"])
          expect(yield* upstream.expire(["old"], "me", 0)).toEqual([])
          expect(yield* upstream.register(view("old"), "me")).toBe(2)
        }).pipe(Effect.provide(make(records("item"))))
    )

    it.effect("D21 edges are written, changed and removed, each at its own place, and repeating changes nothing", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        yield* upstream.register(view("a"), "me")
        const [x, y] = [Ids.make("item", 7), Ids.make("item", "'")]
        const all = [
          edge(x),
          edge(y, 3),
          child("kids", x, y),
          child("kids", y, y, 2),
          child("kids.more", x, y),
          child("other", x, y)
        ]
        expect(yield* upstream.highestVersion).toBe(0)
        for (const _again of [1, 2])
          expect(yield* upstream.apply([edgesOf("a", all)])).toEqual({ lost: [], refused: [] })
        expect(yield* upstream.highestVersion).toBe(Math.max(...all.map(({ version }) => version)))
        expect(yield* readEdges("a")).toEqual(texts(all))
        for (const _again of [1, 2])
          yield* upstream.apply([edgesOf("a", [edge(x, 9)], { removals: [child("kids", x, y), edge(y)] })])
        expect(yield* readEdges("a")).toEqual(
          texts([edge(x, 9), child("kids", y, y, 2), child("kids.more", x, y), child("other", x, y)])
        )
      }).pipe(Effect.provide(make(records("item"))))
    )

    it.effect("D21 edges to records with any id come back exactly; views do not see each other's", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        const keys = ["a", "a'", "a`; --", "b"]
        for (const key of keys) yield* upstream.register(view(key), "me")
        const all = oddKeys.flatMap((key) => [
          edge(Ids.make("item", key), 2),
          child("sub", Ids.make("item", 7), Ids.make("item", key))
        ])
        yield* upstream.apply(keys.slice(0, 3).map((key) => edgesOf(key, all)))
        for (const key of keys.slice(0, 3)) expect(yield* readEdges(key)).toEqual(texts(all))
        expect(yield* readEdges("b")).toEqual([])
        yield* upstream.unregister(["a"], "me")
        expect(yield* readEdges("a")).toEqual([])
        expect(yield* readEdges("a'")).toEqual(texts(all))
      }).pipe(Effect.provide(make(records("item"))))
    )

    it.effect("D21 a former owner writes nothing, and is told; the rest of the batch is written", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        for (const key of ["mine", "moved", "again"]) yield* upstream.register(view(key), "me")
        yield* upstream.register(view("moved"), "you")
        yield* upstream.register(view("again"), "you")
        yield* upstream.register(view("again"), "me")
        const out = [edge(Ids.make("item", 7))]
        const applied = yield* upstream.apply(["mine", "moved", "again", "never"].map((key) => edgesOf(key, out)))
        expect([...applied.lost].sort()).toEqual(["again", "moved", "never"])
        expect(yield* Effect.forEach(["mine", "moved", "again", "never"], readEdges)).toEqual([texts(out), [], [], []])
      }).pipe(Effect.provide(make(records("item"))))
    )

    it.effect("D21 more edges than one chunk or one insert holds", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        yield* upstream.register(view("a"), "me")
        const many = Array.from({ length: 1_234 }, (_, i) => edge(Ids.make("item", i), i))
        yield* upstream.apply([edgesOf("a", many.slice(0, 600))])
        yield* upstream.apply([edgesOf("a", many.slice(600))])
        expect(yield* readEdges("a")).toEqual(texts(many))
        yield* upstream.unregister(["a"], "me")
        expect(yield* readEdges("a")).toEqual([])
      }).pipe(Effect.provide(make([])))
    )

    it.effect("integrity nodes are kept by table, level and index", () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        yield* upstream.prepare
        const node = (table: string, level: number, index: number, hash: string) => ({
          table,
          level,
          index,
          hash,
          count: 2,
          seq: level === 0 ? 9 : null
        })
        yield* upstream.putNodes([node("item", 0, 0, "a"), node("item", 1, 255, "b"), node("item'", 0, 0, "c")])
        yield* upstream.putNodes([node("item", 0, 0, "d")])
        expect(yield* upstream.nodes("item")).toEqual([node("item", 0, 0, "d"), node("item", 1, 255, "b")])
        expect(yield* upstream.nodes("none")).toEqual([])
      }).pipe(Effect.provide(make([])))
    )
  })
}
