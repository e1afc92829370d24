/**
 * The layers of `Upstream`: each runs the conformance suite; the real database besides shows what only it can meet.
 *
 * Inside the process and over a socket, because the two drivers share statements but not a line of how they get there.
 */

import { join } from "node:path"
import { Effect, Either, Layer } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import { nameText } from "../../src/core/surql/values/names.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../../src/core/surql/values/value.ts"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"
import * as MemoryUpstream from "../../src/drivers/memoryUpstream.ts"
import * as SurrealUpstream from "../../src/drivers/surrealUpstream.ts"
import { layerEmbedded, layerServer } from "../../src/host/surreal/Surreal.ts"
import { SurrealClient } from "../../src/ports/SurrealClient.ts"
import { Upstream, UpstreamError } from "../../src/ports/Upstream.ts"
import { upstreamSuite } from "../../src/testing/Upstream.suite.ts"

const folder = temporaryFolder()
let server: RpcServer
let databases = 0
beforeAll(async () => void (server = await RpcServer.start({ path: `surrealkv://${join(folder, "server")}` })))
afterAll(async () => {
  await server.kill()
  removeFolder(folder)
})

const access = (user = "root") => ({
  ...rootAccess,
  database: `d${databases++}`,
  user
})
const overSocket = Layer.unwrapEffect(
  Effect.sync(() => layerServer({ kind: "server", url: `${server.url}/rpc` }, access()))
)
const inProcess = layerEmbedded({ kind: "embedded", url: "mem://" }, access())

/** The database with these records in it, written as a user writes them. */
const holding =
  <E>(client: Layer.Layer<SurrealClient, E>) =>
  (records: ReadonlyArray<Obj>): Layer.Layer<Upstream, UpstreamError> => {
    const tables = [...new Set(records.map(({ id }) => (id as RecordId).table))]
    const fill = Effect.flatMap(SurrealClient, ({ query }) =>
      query(
        `RETURN 1; ${tables.map((table) => `DEFINE TABLE ${nameText(table)}`).join(";")}; FOR $row IN $records { CREATE $row.id CONTENT $row }`,
        { records }
      )
    )
    return SurrealUpstream.layer.pipe(
      Layer.provideMerge(Layer.effectDiscard(fill)),
      Layer.provide(client),
      Layer.fresh,
      Layer.catchAll((error) => Layer.fail(new UpstreamError({ reason: "refused", message: String(error) })))
    )
  }

upstreamSuite("memory", (records) => MemoryUpstream.layer(records))
upstreamSuite("surreal in the process", holding(inProcess))
upstreamSuite("surreal over a socket", holding(overSocket))

type Both<A> = (upstream: Upstream["Type"], client: SurrealClient["Type"]) => Effect.Effect<A, unknown>
const use = <A>(body: Both<A>, user?: string): Promise<A> => {
  const client = layerServer({ kind: "server", url: `${server.url}/rpc` }, access(user))
  return Effect.runPromise(
    Effect.all([Upstream, SurrealClient]).pipe(
      Effect.flatMap(([upstream, surreal]) => body(upstream, surreal)),
      Effect.provide(Layer.provideMerge(SurrealUpstream.layer, client))
    )
  )
}

const view = {
  key: "a",
  id: "incantation:a",
  surql: "SELECT * FROM item",
  clientId: "c",
  ttlMs: 1000,
  params: "null",
  format: "flat",
  lastActiveAtMs: 0
}
const edges = (outs: ReadonlyArray<RecordId>) => [
  {
    key: "a",
    clientId: "c",
    owner: "me",
    assignment: 1,
    removals: [],
    puts: outs.map((out) => ({ path: "", parent: undefined, out, version: 1 }))
  }
]

test("no upstream is an empty one", async () => {
  const answers = await Effect.runPromise(
    Effect.flatMap(Upstream, (none) =>
      Effect.all([
        none.tables,
        none.chunk("t", undefined, 9),
        none.registrations,
        none.apply(edges([])),
        none.register(view, "me")
      ])
    ).pipe(Effect.provide(Upstream.layerNone))
  )
  expect(answers).toEqual([[], [], [], { lost: [], refused: [] }, 1])
})

test("D1 the declared types of a table are read, and what the database computes is told apart", async () => {
  const tables = await use((upstream, client) =>
    Effect.zipRight(
      client.query(
        "DEFINE TABLE item; DEFINE FIELD at ON item TYPE option<datetime>; DEFINE FIELD o.price ON item TYPE decimal; DEFINE FIELD tags ON item TYPE array<record<tag>>; DEFINE TABLE sums AS SELECT count() FROM item GROUP ALL"
      ),
      upstream.tables
    )
  )
  expect(tables).toMatchObject([
    {
      name: "item",
      derived: false,
      announced: false,
      types: { at: "none | datetime", "o.price": "decimal", tags: "array<record<tag>>", "tags.*": "record<tag>" }
    },
    { name: "sums", derived: true, announced: false, types: {} }
  ])
})

test("D4 without our tables there are no registrations and no versions", async () => {
  expect(await use((upstream) => Effect.all([upstream.registrations, upstream.highestVersion]))).toEqual([[], 0])
})

test("D21 an edge the database does not take does not hold up the others", async () => {
  const outs = Array.from({ length: 20 }, (_, i) => Ids.make("item", i))
  const [applied, written] = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* upstream.prepare
      yield* client.query(
        "DEFINE FIELD OVERWRITE out ON _svc_list_ref TYPE record ASSERT record::id($value) NOT IN [3, 11]"
      )
      yield* upstream.register(view, "me")
      return [
        yield* upstream.apply(edges(outs)),
        yield* client.query("SELECT VALUE record::id(out) FROM _svc_list_ref")
      ] as const
    })
  )
  expect(applied.lost).toEqual([])
  expect(applied.refused.map(({ edge, reason }) => [edge.out.text, reason.includes("item:")])).toEqual([
    ["item:3", true],
    ["item:11", true]
  ])
  expect(written[0]).toEqual(outs.map(({ key }) => key).filter((key) => key !== 3 && key !== 11))
})

test("D21 edges that are all refused cost a request for hundreds of them, not one each", async () => {
  const outs = Array.from({ length: 800 }, (_, i) => Ids.make("item", i))
  const asked = () => [...server.calls.values()].reduce((sum, count) => sum + count, 0)
  const [applied, requests] = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* upstream.prepare
      yield* client.query("DEFINE FIELD OVERWRITE out ON _svc_list_ref TYPE record ASSERT record::id($value) = 799")
      yield* upstream.register(view, "me")
      const before = asked()
      return [yield* upstream.apply(edges(outs)), asked() - before] as const
    })
  )
  expect([applied.lost, applied.refused.length]).toEqual([[], 799])
  expect(applied.refused.map(({ edge }) => edge.out.text)).toEqual(outs.slice(0, 799).map(({ text }) => text))
  // 800, its halves, and each half one by one.
  expect(requests).toBe(1 + 2 + 2)
})

test("D21 a batch is one transaction: it is there whole or not at all", async () => {
  const found = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* upstream.prepare
      yield* upstream.register(view, "me")
      server.slow(30)
      const writing = yield* Effect.fork(
        Effect.exit(upstream.apply(edges(Array.from({ length: 500 }, (_, i) => Ids.make("item", i)))))
      )
      const seen = new Set<number>()
      for (let i = 0; i < 12; i++) {
        const [rows] = yield* client.query("SELECT VALUE version FROM _svc_list_ref")
        seen.add((rows as ReadonlyArray<unknown>).length)
      }
      server.slow(0)
      yield* writing.await
      return [...seen]
    })
  )
  expect(found.filter((count) => count !== 0 && count !== 500)).toEqual([])
})

test("D21 a row in our table that is not ours is named, not skipped", async () => {
  const outcome = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* client.query("DEFINE TABLE _svc_query SCHEMALESS; CREATE _svc_query:odd SET surql = 1")
      return yield* Effect.either(upstream.registrations)
    })
  )
  expect(Either.isLeft(outcome) && [outcome.left.reason, outcome.left.message]).toEqual([
    "refused",
    expect.stringContaining("_svc_query:odd")
  ])
})

test("D21 a user that may not define tables is told so", async () => {
  await server.ask("n", "any", "DEFINE USER OVERWRITE viewer ON NAMESPACE PASSWORD 'root' ROLES VIEWER")
  const outcome = await use((upstream) => Effect.either(upstream.prepare), "viewer")
  expect(Either.isLeft(outcome) && [outcome.left.reason, outcome.left.transient]).toEqual(["unauthorized", false])
})

test("D43 D44 a read of the change table brings no more text than it may, but one record always, and small ones at once", async () => {
  const read = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* client.query(`RETURN 1; ${Schema.script([Changes.changeTableDefinition])}`)
      yield* client.query(
        `FOR $n IN 1..=60 {
          CREATE type::record('item', $n) SET text = IF $n <= 20 { $text } ELSE { 'small' },
            values = [1.5dec, 2.5f, d'2024-01-01T00:00:00Z', 1h, u'018e0000-0000-7000-8000-000000000000', (1.0, 2.0),
              <bytes>'abc', 1..5, item:1, { a: NONE, b: NULL }, <set>[1, 2]];
          CREATE type::record('${Schema.changeTable}', $n) SET r = type::record('item', $n)
        }`,
        { text: "x".repeat(50_000) }
      )
      const { changes } = upstream
      const sizes: Array<readonly [rows: number, records: number, partial: boolean]> = []
      for (let done: ReadonlyArray<RecordId> = []; ; ) {
        const found = yield* changes!.take({ rows: 1_000, bytes: sizes.length === 3 ? 1 : 220_000 }, done, [])
        if (found === undefined || found === "superseded") return sizes
        sizes.push([found.rows.length, found.records.length, found.partial])
        expect(found.unreadable).toEqual([])
        if (!found.partial) return sizes
        done = found.rows.map(({ id }) => id)
      }
    })
  )
  const rows = read.map(([count]) => count)
  expect(rows.reduce((sum, count) => sum + count, 0)).toBe(60)
  expect(Math.max(...rows.slice(0, 4)), "large ones").toBeLessThanOrEqual(4)
  expect(rows[3], "however little may be read").toBe(1)
  expect(rows.at(-1), "small ones").toBeGreaterThanOrEqual(36)
  expect(read.map(([, records]) => records)).toEqual(rows)
})

test("D76 tables are read whole with no more records and text than may be; one that cannot be read is left to other ways", async () => {
  const found = await use((upstream, client) =>
    Effect.gen(function* () {
      yield* client.query(
        "FOR $n IN 1..=3 { CREATE type::record('select', $n) SET n = $n }; FOR $n IN 1..=2 { CREATE type::record('other', $n) SET n = $n }; DEFINE TABLE empty"
      )
      const whole = (tables: ReadonlyArray<string>, rows = 5, bytes = 10_000) =>
        Effect.map(upstream.changes!.whole(tables, { rows, bytes }), (records) => records?.map(({ id }) => id.text))
      return [
        yield* whole(["select", "other", "empty"]),
        yield* whole(["empty"]),
        yield* whole(["select"], 3),
        yield* whole(["select", "other"], 4),
        yield* whole(["select"], 5, 20),
        yield* whole(["select", "gone"])
      ]
    })
  )
  const [three, two] = [
    [1, 2, 3],
    [1, 2]
  ].map((keys, i) => keys.map((key) => `${i === 0 ? "select" : "other"}:${key}`))
  expect(found).toEqual([[...three!, ...two!], [], three, undefined, undefined, undefined])
})
