/**
 * `/proxy/query` without HTTP: the same answers as the evaluator over records in memory, at the cost of what is
 * answered.
 *
 * Cost is told by rows read and by turns of the event loop between, never by a clock.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Clock, Effect, Either, Exit, Fiber, FastCheck as fc, Layer, Scope } from "effect"
import { afterAll, describe, expect } from "vitest"
import { runs, seed } from "../../../kit/data/random.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { queryBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import * as Encode from "../../../src/core/surql/values/encode.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { isObj, type Obj, type RecordId, type Value } from "../../../src/core/surql/values/value.ts"
import * as MemoryReplica from "../../../src/drivers/memoryReplica.ts"
import { layerReplica } from "../../../src/host/sqlite/ReplicaFile.ts"
import { Replica, type ReplicaRecord, type ReplicaShape, type ReplicaSnapshot } from "../../../src/ports/Replica.ts"
import { Turn } from "../../../src/ports/Turn.ts"
import { exactType } from "../../../src/protocol/wire.ts"
import { type Answer, ProxyQuery } from "../../../src/scheduler/replica/ProxyQuery.ts"
import { totalBytesOf } from "../../../src/scheduler/replica/queryAdmission.ts"
import { gone, id, record } from "../../../src/testing/Replica.suite.ts"
import { constant, records as readRecords } from "../../core/surql/engine.ts"
import * as Generate from "../../core/surql/generate.ts"

const root = mkdtempSync(join(tmpdir(), "svc-proxy-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
const layers = { memory: () => MemoryReplica.layer, SQLite: () => layerReplica(join(root, String(folders++))) }

const limits = {
  queryRows: 10_000,
  querySteps: 5_000_000,
  queryBytes: 67_108_864,
  queryBytesTotal: 0,
  rowSteps: 1_000_000
}

const proxy = (given: Partial<typeof limits> = {}) =>
  ProxyQuery.layer({ ...limits, ...given }).pipe(Layer.provide(Turn.layerYield))

/** A clock by which every slice is over as soon as somebody looks. */
const restless = (): Clock.Clock => {
  const clock = Clock.make()
  let at = 0
  return Object.assign(clock, { unsafeCurrentTimeNanos: () => BigInt((at += 20)) * 1_000_000n })
}

/** The replica with what each snapshot of it has read. */
const counting = (snapshots: Array<ReplicaSnapshot>): Layer.Layer<Replica, never, Replica> =>
  Layer.effect(
    Replica,
    Effect.map(
      Replica,
      (replica): ReplicaShape => ({
        ...replica,
        snapshot: Effect.tap(replica.snapshot, (snapshot) => Effect.sync(() => snapshots.push(snapshot)))
      })
    )
  )

const commit = (records: ReadonlyArray<ReplicaRecord>, through = 1) =>
  Effect.flatMap(Replica, (replica) => replica.commit({ records, through }))

interface Params {
  readonly [name: string]: unknown
}

const textOf = ({ body }: Answer): string => Buffer.concat(body).toString("utf8")

/** The answer, sent. */
const ask = (query: string, params?: Params) =>
  Effect.flatMap(ProxyQuery, ({ run }) => run({ query, params, accept: undefined })).pipe(
    Effect.map((answer) => ({ ...answer, body: textOf(answer) })),
    Effect.scoped
  )
const plain = (query: string, params?: Params) =>
  Effect.map(ask(query, params), ({ body }) => JSON.parse(body) as unknown)
const exact = (query: string, params?: { readonly [name: string]: Value }) =>
  Effect.flatMap(ProxyQuery, ({ run }) =>
    Effect.map(
      run({
        query,
        params: params && (JSON.parse(Encode.encode(params)) as Params),
        accept: `text/html, ${exactType}; q=1`
      }),
      (answer) => Encode.decode(textOf(answer))
    )
  ).pipe(Effect.scoped)

const without = (v: Value): Value => {
  if (Array.isArray(v))
    return v.map((row: Value) => {
      if (!isObj(row)) return row
      const { _svc_rv: _, ...rest } = row
      return rest
    })
  return isObj(v) ? (without([v]) as unknown as Value) : v
}

const shown = (v: Value): string => Encode.encode(isObj(v) ? (without([v]) as ReadonlyArray<Value>)[0] : without(v))

/** Ranges of ids in all their forms, windows, orders, equalities: what is pushed down. */
const chunkQuery: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(
      "*",
      "id, a",
      "*, (SELECT VALUE id FROM p) AS all",
      "VALUE id",
      "a, ->e->p AS to",
      "*, a.x AS b",
      "* OMIT a",
      "count() AS n, array::group(a) AS as"
    ),
    fc.constantFrom(
      "p",
      "p",
      "p",
      "q",
      "e",
      "p:1..",
      "p:..2",
      "p:1..=3",
      "p:1>..",
      "p, q",
      "nope",
      "ONLY p",
      "p:[1]..",
      "$t",
      "(SELECT * FROM p)"
    ),
    fc.array(
      fc.constantFrom(
        "id > p:1",
        "id >= p:2",
        "id < p:`x y`",
        "id <= p:3",
        "id = p:2",
        "p:1 < id",
        "id > $last",
        "id != p:1",
        "a = 1",
        "b = 'a'",
        "a = $one",
        "b = 'p:1'",
        "l = true",
        "o.x = 1",
        "a + 1 > 1",
        "id > 'p:1'",
        "id > q:1",
        "a = 1.0f",
        "c = NONE",
        "'b' = b"
      ),
      { maxLength: 2 }
    ),
    fc.constantFrom("", "", "GROUP ALL", "SPLIT l"),
    fc.constantFrom("", "ORDER BY id", "ORDER BY id DESC", "ORDER BY a, id"),
    fc.constantFrom("", "LIMIT 1", "LIMIT 2", "LIMIT 2 START 1", "START 1", "LIMIT 0", "LIMIT $one")
  )
  .filter(([fields, , , group]) => fields.startsWith("count()") === (group === "GROUP ALL"))
  .map(
    ([fields, from, where, group, order, window]) =>
      `SELECT ${fields} FROM ${from.startsWith("ONLY") && window === "" ? "p" : from} ${where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`} ${group === "SPLIT l" ? group : ""} ${group === "GROUP ALL" ? group : ""} ${group === "GROUP ALL" || fields.startsWith("VALUE") || fields.startsWith("a, ") ? "" : order} ${window}`
  )

/** One for each thing that must not be pushed down, over records where it would show. */
const traps = {
  lines: [
    "p:1 { a: 1, b: 'a' }",
    "p:2 { a: 'x', b: 'p:1' }",
    "p:3 { a: 1, b: p:1, l: [1, 2] }",
    "p:`x y` { a: 1.0f, c: true }",
    "q:1 { a: 1 }",
    "e:1 { in: p:1, out: p:3, a: 1 }",
    "e:2 { in: p:3, out: p:1, a: 2 }"
  ],
  queries: [
    "SELECT id, (SELECT VALUE id FROM p) AS all FROM p LIMIT 1",
    "SELECT id, (SELECT VALUE id FROM p) AS all FROM p WHERE a = 1",
    "SELECT * FROM p LIMIT 2 START 1",
    "SELECT id FROM p WHERE id = 'p:1'",
    "SELECT * FROM p WHERE id = p:1 AND id > p:1",
    "SELECT id FROM p WHERE a + 1 > 1 AND b = 'p:1'",
    "SELECT id FROM p WHERE b = 'p:1' AND a + 1 > 1",
    "SELECT id FROM p WHERE a = 1",
    "SELECT id FROM p WHERE b = 'p:1'",
    "SELECT id FROM p WHERE c = true",
    "SELECT * FROM p ORDER BY id DESC LIMIT 1",
    "SELECT * FROM p WHERE id > 'p:1' LIMIT 1",
    "SELECT * FROM p WHERE id > q:1",
    "SELECT * FROM p:2.. WHERE id < p:3",
    "SELECT * FROM p SPLIT l LIMIT 3",
    "SELECT a FROM p LIMIT 1 START 2",
    "SELECT * FROM $t",
    "SELECT * FROM $t ORDER BY id",
    "SELECT count() FROM p WHERE a = 1 GROUP ALL LIMIT 1",
    "SELECT id, ->e->p AS to FROM p WHERE a = 1 LIMIT 1",
    "SELECT * FROM p WHERE id > p:1 OR a = 1"
  ]
}

const params: { readonly [name: string]: Value } = { last: constant("p:1"), one: 1, t: constant("p:1..") }

for (const [name, replica] of Object.entries(layers)) {
  describe(`/proxy/query over ${name}`, () => {
    it.effect(
      "D28 random queries give the rows that the evaluator gives over records in memory, or fail as it does",
      () =>
        Effect.gen(function* () {
          const { clear } = yield* Replica
          let rows = 0,
            failed = 0,
            many = 0
          const compare = (query: string, records: ReadonlyArray<Obj>) =>
            Effect.gen(function* () {
              const parsed = parseStatements(query)
              if (Either.isLeft(parsed)) return
              const wanted = evaluate(parsed.right[0]!, {
                source: fromRecords(records),
                params,
                budget: queryBudget(limits.querySteps, limits.rowSteps)
              })
              const found = yield* Effect.either(exact(query, params))
              if (Either.isLeft(wanted)) {
                failed++
                return expect([query, Either.isLeft(found) ? found.left.message : found.right]).toEqual([
                  query,
                  wanted.left.reason
                ])
              }
              expect([query, Either.isRight(found) ? shown(found.right) : found.left.message]).toEqual([
                query,
                Encode.encode(wanted.right)
              ])
              if (Array.isArray(wanted.right)) rows += wanted.right.length
              if (Array.isArray(wanted.right) && wanted.right.length > 2) many++
            })
          const load = (lines: ReadonlyArray<string>) => {
            const records = readRecords(lines)
            return Effect.as(
              Effect.zipRight(
                clear,
                commit(records.map((doc, i) => ({ id: doc["id"] as RecordId, version: i + 1, doc })))
              ),
              records
            )
          }
          const trapped = yield* load(traps.lines)
          for (const query of traps.queries) yield* compare(query, trapped)
          for (const lines of fc.sample(Generate.data, { numRuns: runs(5), seed })) {
            const records = yield* load(lines)
            for (const query of fc.sample(chunkQuery, { numRuns: 30, seed: seed + rows }))
              yield* compare(query, records)
            for (const query of fc.sample(Generate.query, { numRuns: 10, seed: seed + rows }))
              yield* compare(query, records)
          }
          expect([rows > 150, failed > 5, many > 20]).toEqual([true, true, true])
        }).pipe(Effect.provide(proxy().pipe(Layer.provideMerge(replica()))))
    )

    it.effect(
      "D28 one statement answers its value, several an array of values; a missing table answers []; INFO names tables and declared fields",
      () =>
        Effect.gen(function* () {
          const { putTables } = yield* Replica
          yield* putTables([
            { name: "person", types: { at: "datetime", "tags.*": "uuid" } },
            { name: "empty", types: {} }
          ])
          yield* commit([record("person:a", 3, { name: "Ann" }), record("other:1", 1, {})])
          expect(yield* plain("SELECT * FROM nowhere")).toEqual([])
          expect(yield* plain("SELECT name FROM person; RETURN 1 + 1; INFO FOR DB")).toEqual([
            [{ name: "Ann" }],
            2,
            {
              tables: expect.objectContaining({
                person: expect.any(String),
                empty: expect.any(String),
                other: expect.any(String)
              }) as unknown
            }
          ])
          expect(yield* plain("INFO FOR TABLE person")).toMatchObject({
            fields: {
              at: "DEFINE FIELD at ON person TYPE datetime PERMISSIONS FULL",
              "tags.*": "DEFINE FIELD tags.* ON person TYPE uuid PERMISSIONS FULL"
            }
          })
          expect(yield* plain("RETURN (SELECT VALUE name FROM person)[0]")).toBe("Ann")
          expect(yield* plain("SELECT * FROM ONLY person:nobody")).toBe(null)
        }).pipe(Effect.provide(proxy().pipe(Layer.provideMerge(replica()))))
    )

    it.effect("D4 rows of SELECT * carry _svc_rv in exact answers, in plain ones where it is named beside", () =>
      Effect.gen(function* () {
        yield* commit([record("t:1", 7, { a: [1, 2], link: id("t:2") }), record("t:2", 9, { $: 1 })])
        const stored = [
          { id: "t:1", _svc_rv: 7, a: [1, 2], link: "t:2" },
          { id: "t:2", _svc_rv: 9, $: 1 }
        ]
        expect(yield* plain("SELECT *, _svc_rv FROM t")).toEqual(stored)
        expect(yield* plain("SELECT * FROM t")).toEqual(stored.map(({ _svc_rv: _, ...row }) => row))
        expect(((yield* exact("SELECT * FROM t")) as ReadonlyArray<Obj>).map((row) => row["_svc_rv"])).toEqual([7, 9])
        expect(yield* plain("SELECT *, a AS b, _svc_rv FROM t WHERE a")).toEqual([
          { id: "t:1", _svc_rv: 7, a: [1, 2], b: [1, 2], link: "t:2" }
        ])
        expect(yield* plain("SELECT _svc_rv, * FROM t SPLIT a LIMIT 2")).toEqual([
          { id: "t:1", _svc_rv: 7, a: 1, link: "t:2" },
          { id: "t:1", _svc_rv: 7, a: 2, link: "t:2" }
        ])
        expect(yield* plain("SELECT *, _svc_rv FROM ONLY t:2")).toEqual({ id: "t:2", _svc_rv: 9, $: 1 })
        expect(yield* plain("SELECT a, _svc_rv FROM t:1; SELECT VALUE id FROM t:1")).toEqual([[{ a: [1, 2] }], ["t:1"]])
        expect((yield* exact("SELECT * OMIT _svc_rv FROM t:2")) as unknown).toEqual([{ id: id("t:2"), $: 1 }])
      }).pipe(Effect.provide(proxy().pipe(Layer.provideMerge(replica()))))
    )

    it.effect(
      "D1 D2 the exact answer gives back every typed value as it is, the plain one as the database writes it; parameters are typed alike",
      () =>
        Effect.gen(function* () {
          const doc = constant(
            "{ at: d'2020-01-01T00:00:00.000000001Z', text: '2020-01-01T00:00:00Z', price: 1.50dec, one: 1.0f, int: 1, big: 9007199254740993, gone: NONE, none: [NONE, NULL], took: 1h30m, link: q:[1, u'018a6680-bef9-701b-9025-e1754f296a0f'], linkText: 'q:1', set: <set> [1, 2], bytes: <bytes> 'ab', where: (1.5, 2.5) }"
          ) as Obj
          const own = id("t:`a b`")
          const whole = { ...doc, id: own }
          yield* commit([{ id: own, version: 2, doc: whole }])
          for (const query of ["SELECT * FROM t", "SELECT *, 1 AS extra FROM t WHERE one = 1"]) {
            const [row] = (yield* exact(query)) as ReadonlyArray<Obj>
            const { _svc_rv: version, extra: _, ...rest } = row!
            expect([version, Encode.encode(rest)]).toEqual([2, Encode.encode(whole)])
            const { body } = yield* ask(query)
            expect(JSON.parse(body)).toMatchObject([
              {
                id: "t:`a b`",
                at: "2020-01-01T00:00:00.000000001Z",
                price: "1.5",
                one: 1,
                took: "1h30m",
                link: "q:[1, u'018a6680-bef9-701b-9025-e1754f296a0f']",
                set: [1, 2],
                none: [null, null],
                where: { type: "Point", coordinates: [1.5, 2.5] }
              }
            ])
            expect(body).toContain('"one":1.0')
            expect(body).toContain('"big":9007199254740993')
          }
          expect(
            yield* exact("SELECT VALUE id FROM t WHERE at = $at AND link = $link", { at: doc["at"], link: doc["link"] })
          ).toEqual([own])
          expect(
            yield* plain("SELECT VALUE id FROM t WHERE at = $at", { at: "2020-01-01T00:00:00.000000001Z" })
          ).toEqual([own.text])
        }).pipe(Effect.provide(proxy().pipe(Layer.provideMerge(replica()))))
    )

    it.effect("D20 a table pulled in chunks, by id, by range or by window behind an id, costs what it holds", () => {
      const snapshots: Array<ReplicaSnapshot> = []
      const read = (): number => snapshots.splice(0).reduce((sum, snapshot) => sum + snapshot.rowsRead(), 0)
      return Effect.gen(function* () {
        const size = 1_200,
          chunk = 50
        const ids = Array.from({ length: size }, (_, i) => `t:${i % 2 === 0 ? i : `k${i}`}`)
        yield* commit([
          ...ids.map((text, i) => record(text, 1, { i, even: i % 2 === 0 })),
          ...Array.from({ length: size }, (_, i) => gone(`t:gone${i}`, 1))
        ])
        const pull = (next: (last: RecordId | undefined) => Effect.Effect<Value, unknown, ProxyQuery>) =>
          Effect.gen(function* () {
            const found: Array<string> = []
            for (let last: RecordId | undefined; ; ) {
              const rows = (yield* next(last)) as ReadonlyArray<Obj>
              found.push(...rows.map((row) => (row["id"] as RecordId).text))
              if (rows.length < chunk) return found
              last = rows.at(-1)!["id"] as RecordId
            }
          })
        const wanted = [...ids].sort((a, b) => Ids.compareKeys(id(a).key, id(b).key))
        expect(
          yield* pull((last) =>
            last === undefined
              ? exact(`SELECT * FROM t ORDER BY id LIMIT ${chunk}`)
              : exact(`SELECT * FROM t WHERE id > $last ORDER BY id LIMIT ${chunk}`, { last })
          )
        ).toEqual(wanted)
        expect(read()).toBe(size)
        expect(
          yield* pull((last) =>
            exact(
              last === undefined ? `SELECT * FROM t LIMIT ${chunk}` : `SELECT * FROM ${last.text}>.. LIMIT ${chunk}`
            )
          )
        ).toEqual(wanted)
        expect(read()).toBe(size)
        expect(
          yield* pull((last) =>
            last === undefined
              ? exact(`SELECT id, i FROM t LIMIT ${chunk}`)
              : exact(`SELECT id, i FROM t WHERE id > $last ORDER BY id LIMIT ${chunk}`, { last })
          )
        ).toEqual(wanted)
        expect(read()).toBe(size)
        expect(yield* plain("SELECT VALUE i FROM t:10..20")).toEqual([10, 12, 14, 16, 18])
        expect(read()).toBe(5)
        expect(yield* plain("SELECT VALUE i FROM t WHERE id = t:10")).toEqual([10])
        expect(read()).toBe(1)
        // With a filter it reads until it has enough; pages grow, so at most twice that.
        expect(yield* plain("SELECT VALUE i FROM t WHERE even = true LIMIT 10")).toEqual([
          0, 2, 4, 6, 8, 10, 12, 14, 16, 18
        ])
        expect(read()).toBeLessThanOrEqual(64)
      }).pipe(Effect.provide(proxy().pipe(Layer.provide(counting(snapshots)), Layer.provideMerge(replica()))))
    })

    it.effect("D28 rows, steps and steps of one row are bounded, and the error names the setting", () =>
      Effect.gen(function* () {
        yield* commit(Array.from({ length: 60 }, (_, i) => record(`t:${i}`, 1, { i })))
        const reason = (query: string) => Effect.map(Effect.flip(ask(query)), (error) => [error._tag, error.message])
        for (const query of [
          "SELECT * FROM t",
          "SELECT i FROM t",
          "SELECT i FROM t WHERE i >= 0 ORDER BY i",
          "SELECT * FROM t LIMIT 51"
        ]) {
          expect(yield* reason(query)).toEqual([
            "QueryFailed",
            "The query gives more than 50 rows; raise SVC_QUERY_ROWS to allow it"
          ])
        }
        expect(((yield* plain("SELECT * FROM t LIMIT 50")) as ReadonlyArray<unknown>).length).toBe(50)
        expect((yield* reason("SELECT count((SELECT * FROM t)) AS n FROM t GROUP ALL"))[1]).toMatch(
          /more than 2000 steps; raise SVC_QUERY_STEPS/
        )
        expect((yield* reason("RETURN string::repeat('ab', 60000)"))[1]).toMatch(/SVC_QUERY_(BYTES|ROW_STEPS)/)
        expect((yield* reason("SELECT array::len(array::range(0, 900)) AS n FROM t LIMIT 1"))[1]).toMatch(
          /more than 500 steps; raise SVC_QUERY_ROW_STEPS/
        )
      }).pipe(
        Effect.provide(
          proxy({ queryBytes: 100_000, queryRows: 50, querySteps: 2_000, rowSteps: 500 }).pipe(
            Layer.provideMerge(replica())
          )
        )
      )
    )

    it.effect(
      "D28 what does not parse, and every statement that writes, is refused with its place; what fails says why (D2a)",
      () =>
        Effect.gen(function* () {
          yield* commit([record("t:1", 1, { a: "x" })])
          for (const query of [
            "CREATE t:2",
            "UPDATE t SET a = 1",
            "DELETE t",
            "INSERT INTO t {}",
            "DEFINE TABLE x",
            "REMOVE TABLE t",
            "RELATE t:1->e->t:2",
            "LET $x = 1",
            "BEGIN",
            "USE NS a",
            "SELECT * FROM t; DELETE t",
            "SELECT * FROM (DELETE t)",
            "INFO FOR ROOT",
            ""
          ]) {
            expect([query, (yield* Effect.flip(ask(query)))._tag]).toEqual([query, "QueryRefused"])
          }
          expect(yield* Effect.flip(ask("SELECT *\nFROM t WHERE"))).toMatchObject({
            _tag: "QueryRefused",
            line: 2,
            column: 13
          })
          expect(yield* Effect.flip(ask("SELECT * FROM t; SELECT a + 1 FROM t"))).toMatchObject({
            _tag: "QueryFailed",
            message: expect.stringContaining("Cannot perform addition") as unknown
          })
          expect(yield* plain("SELECT VALUE a FROM t")).toEqual(["x"])
        }).pipe(Effect.provide(proxy().pipe(Layer.provideMerge(replica()))))
    )

    it.effect("D48 answers count until they are sent, and beyond the limit others are refused by name", () =>
      Effect.gen(function* () {
        const { run } = yield* ProxyQuery
        const asked = (query: string) => run({ query, params: undefined, accept: undefined })
        const long = "RETURN array::repeat(string::repeat('x', 1000), 90)"
        const first = yield* Scope.make()
        const rest = yield* Scope.make()
        for (const scope of [first, rest, rest]) yield* Scope.extend(asked(long), scope)
        expect(yield* Effect.flip(asked("RETURN 1"))).toMatchObject({
          _tag: "QueryBusy",
          message: expect.stringMatching(
            /^answers of 270\d+ bytes .* limit is 200000 \(setting SVC_QUERY_BYTES_TOTAL\)/
          ) as unknown
        })
        yield* Scope.close(first, Exit.void)
        expect(yield* plain("RETURN 1")).toBe(1)
        // What fails, or is given up, counts nothing.
        for (let n = 0; n < 5; n++)
          expect(yield* Effect.flip(ask("RETURN 1 + NONE"))).toMatchObject({ _tag: "QueryFailed" })
        for (let n = 0; n < 5; n++) {
          const running = yield* Effect.fork(ask(long))
          yield* Effect.yieldNow()
          yield* Fiber.interrupt(running)
        }
        yield* Scope.close(rest, Exit.void)
        expect((yield* ask(long)).length).toBeGreaterThan(90_000)
      }).pipe(
        Effect.scoped,
        Effect.provide(proxy({ queryBytes: 100_000, queryBytesTotal: 200_000 }).pipe(Layer.provideMerge(replica())))
      )
    )

    it.effect("D48 as many run at once as there is room for", () =>
      Effect.gen(function* () {
        let open = 0,
          most = 0
        const counted = Layer.effect(
          Replica,
          Effect.map(Replica, (real) => ({
            ...real,
            snapshot: Effect.zipRight(
              Effect.acquireRelease(
                Effect.sync(() => void (most = Math.max(most, ++open))),
                () => Effect.sync(() => void open--)
              ),
              real.snapshot
            )
          }))
        )
        yield* Effect.all(
          Array.from({ length: 20 }, () => ask("SELECT VALUE array::len(array::range(0, 500)) FROM [1, 2, 3]")),
          { concurrency: "unbounded" }
        ).pipe(
          Effect.provide(
            proxy({ queryBytes: 100_000, queryBytesTotal: 300_000 }).pipe(
              Layer.provide(counted),
              Layer.provide(replica())
            )
          )
        )
        expect(most).toBe(3)
      })
    )

    it.effect(
      "D27 D28 a query reads one state from its first row to its last while changes go on, and lets others in",
      () =>
        Effect.gen(function* () {
          const { commit: write, freeze, thaw } = yield* Replica
          yield* commit(Array.from({ length: 3_000 }, (_, i) => record(`t:${i}`, 1, { v: 1 })))
          const query = "SELECT math::sum(v) AS sum, count() AS n FROM t GROUP ALL"
          let done = false,
            between = 0
          const running = yield* Effect.fork(Effect.tap(plain(query), () => Effect.sync(() => void (done = true))))
          while (!done) {
            yield* write({
              records: [record(`t:${between}`, 2, { v: 1_000 }), record(`t:new${between}`, 1, { v: 1 })],
              through: 2 + between
            })
            between++
            yield* Effect.yieldNow()
          }
          const [{ n, sum }] = (yield* Effect.fromFiber(running)) as readonly [
            { readonly n: number; readonly sum: number }
          ]
          expect(sum).toBe(3_000 + 1_000 * (n - 3_000))
          // It pauses every few hundred rows, and each time somebody else has a turn.
          expect(between - (n - 3_000)).toBeGreaterThan(10)
          const answer = yield* ask("SELECT VALUE v FROM t:0")
          expect(answer).toEqual({ seq: 1 + between, body: "[1000]", length: 6, contentType: "application/json" })
          const seq = yield* freeze(1)
          yield* write({ records: [gone("t:0", 3)], through: seq + 1 })
          expect(yield* ask("SELECT VALUE v FROM t:0")).toMatchObject({ seq, body: "[1000]" })
          yield* thaw(1)
          expect(yield* ask("SELECT VALUE v FROM t:0")).toMatchObject({ seq: seq + 1, body: "[]" })
        }).pipe(Effect.provide(proxy().pipe(Layer.provide(Layer.setClock(restless())), Layer.provideMerge(replica()))))
    )
  })
}

describe("the bytes of all queries", () => {
  it("D48 are those of the setting, else a quarter of the heap, and never less than one query's", () => {
    const of = (queryBytesTotal: number, heap?: number) =>
      totalBytesOf({ ...limits, queryBytes: 100, queryBytesTotal }, heap)
    expect([of(1000), of(1000, 800), of(10), of(0, 4000), of(0, 200), of(0)]).toEqual([1000, 1000, 100, 1000, 100, 800])
  })
})
