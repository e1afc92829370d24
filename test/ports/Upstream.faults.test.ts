/**
 * Writing edges to a database that dies, hangs, cuts connections and ends sessions meanwhile; and edges to hostile ids.
 *
 * Why here and not with the edge writer: that a write repeated after an uncertain end changes nothing is a promise of
 * the port and its driver; the edge writer only has to repeat.
 */

import { join } from "node:path"
import { Chunk, Effect, Exit, Fiber, FastCheck as fc, Layer, Logger, LogLevel, Option, Schedule, Stream } from "effect"
import { afterAll, expect, test } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { store } from "../../src/core/settings/address.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { type RecordKey, Uuid, type Value } from "../../src/core/surql/values/value.ts"
import * as SurrealUpstream from "../../src/drivers/surrealUpstream.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import { SurrealClient } from "../../src/ports/SurrealClient.ts"
import { type Edge, Upstream, type UpstreamError } from "../../src/ports/Upstream.ts"

const folder = temporaryFolder()
const servers: Array<ServerProcess> = []
afterAll(async () => {
  for (const server of servers) await server.kill()
  removeFolder(folder)
})

const kept = (server: ServerProcess): ServerProcess => {
  servers.push(server)
  return server
}

const clientOf = (server: ServerProcess, requestTimeoutMs: number) => {
  const address = store(server.url)
  if (address?.kind !== "server") throw new Error("no server")
  return layerServer(
    address,
    { ...rootAccess, authLevel: "root" },
    { connectTimeoutMs: 20_000, requestTimeoutMs, maxPauseMs: 300 }
  )
}

const run = <A>(
  body: Effect.Effect<A, unknown, Upstream | SurrealClient>,
  server: ServerProcess,
  requestTimeoutMs = 5_000
): Promise<A> =>
  Effect.runPromise(
    body.pipe(
      Effect.provide(Layer.provideMerge(SurrealUpstream.layer, clientOf(server, requestTimeoutMs))),
      Logger.withMinimumLogLevel(LogLevel.None)
    )
  )

const view = {
  key: "v",
  id: "incantation:v",
  surql: "SELECT * FROM item",
  clientId: "c",
  ttlMs: 1000,
  params: "{}",
  format: "flat",
  lastActiveAtMs: 0
}
const edge = (key: RecordKey, version: number): Edge => ({
  path: "",
  parent: undefined,
  out: Ids.make("item", key),
  version
})
const apply = (puts: ReadonlyArray<Edge>, removals: ReadonlyArray<Edge> = []) =>
  Effect.flatMap(Upstream, (upstream) =>
    upstream.apply([{ key: "v", clientId: "c", owner: "me", assignment: 1, puts, removals }])
  )
const stubborn = <A, R>(effect: Effect.Effect<A, UpstreamError, R>) =>
  Effect.retry(effect, { while: (error) => error.transient, schedule: Schedule.spaced("20 millis") })
const allEdges = Effect.flatMap(Upstream, (upstream) =>
  Effect.map(Stream.runCollect(upstream.edges("v")), (chunks) => Chunk.toReadonlyArray(chunks).flat())
)

test("D21 edges repeated through a kill, a hang, cut connections and ended sessions are there once each, the last version of each", async () => {
  const server = kept(await ServerProcess.start({ path: `surrealkv://${join(folder, "faults")}` }))
  const rounds = 90
  const found = await run(
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* upstream.prepare
      yield* upstream.register(view, "me")
      let done = 0
      const writing = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: rounds }, (_, i) => i),
          (i) =>
            stubborn(
              apply([edge(i, 1), edge("same", i), edge(i % 7, i)], i >= 7 && i % 3 === 0 ? [edge(i - 1, 1)] : [])
            ).pipe(Effect.tap(() => Effect.sync(() => done++)))
        )
      )
      const failed = Effect.flatMap(writing.poll, (exit) =>
        Option.isSome(exit) && Exit.isFailure(exit.value) ? Effect.failCause(exit.value.cause) : Effect.void
      )
      // A write that failed for good would never get there: its failure is the test's.
      const reach = (n: number): Effect.Effect<void, UpstreamError> =>
        Effect.suspend(() =>
          done >= n ? Effect.void : failed.pipe(Effect.zipRight(Effect.sleep("10 millis")), Effect.zipRight(reach(n)))
        )
      yield* reach(15)
      yield* Effect.promise(() => server.cut())
      yield* reach(35)
      yield* Effect.promise(() => server.expireSessions())
      yield* reach(55)
      server.pause()
      yield* Effect.sleep("500 millis")
      server.resume()
      yield* reach(85)
      yield* Effect.promise(() => server.kill())
      yield* Effect.promise(async () => kept(await server.restart()))
      yield* Fiber.join(writing)
      return yield* allEdges
    }),
    server
  )
  const expected = new Map<string, number>()
  for (let i = 0; i < rounds; i++) {
    if (i >= 7 && i % 3 === 0) expected.delete(`item:${i - 1}`)
    for (const { out, version } of [edge(i, 1), edge("same", i), edge(i % 7, i)]) expected.set(out.text, version)
  }
  expect(found.length).toBe(expected.size)
  expect(new Map(found.map(({ out, version }) => [out.text, version]))).toEqual(expected)
})

const anyValue = fc.oneof(
  fc.fullUnicodeString(),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom("'", "`", "\\", "⟩", "$x", "{", "--")
) as fc.Arbitrary<Value>
const anyKey = fc.oneof(
  fc.fullUnicodeString(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).filter((n) => !Number.isSafeInteger(Number(n))),
  fc.uuid().map((text) => new Uuid(text)),
  fc.array(anyValue, { minLength: 1, maxLength: 4 }),
  fc.dictionary(fc.fullUnicodeString({ minLength: 1, maxLength: 5 }), anyValue, { minKeys: 1, maxKeys: 3 }),
  fc
    .tuple(
      fc.constantFrom(
        "'; DELETE _svc_list_ref; --",
        "`; REMOVE TABLE item; --",
        "⟩; THROW 1; --",
        "\n",
        "\u0000",
        "${",
        "__proto__"
      ),
      fc.fullUnicodeString()
    )
    .map(([a, b]) => a + b)
) as fc.Arbitrary<RecordKey>

test("D21 random hostile ids are stored and compared exactly; none of them is ever a statement", async () => {
  const server = kept(await ServerProcess.start({ path: `surrealkv://${join(folder, "hostile")}` }))
  const seed = Number(process.env["SVC_SEED"] ?? 5)
  const keys = fc.sample(anyKey, { seed, numRuns: 1_500 * Number(process.env["SVC_RUNS"] ?? 1) })
  const puts = [...new Map(keys.map((key) => edge(key, 1)).map((one) => [one.out.text, one])).values()]
  expect(puts.length).toBeGreaterThan(keys.length * 0.9)
  const [records, edges] = await run(
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const client = yield* SurrealClient
      yield* upstream.prepare
      yield* upstream.register(view, "me")
      yield* client.query(
        "DEFINE TABLE item; BEGIN; FOR $id IN $ids { CREATE $id SET own = $id RETURN NONE }; COMMIT",
        { ids: puts.map(({ out }) => out) }
      )
      for (let i = 0; i < puts.length; i += 500) {
        // The engine loses such an id and with it the table it stands in, so it must not get it.
        const poison = edge({ a: [{ "": 1 }] }, 1)
        expect((yield* apply([poison, ...puts.slice(i, i + 500)])).refused.map((refused) => refused.edge)).toEqual([
          poison
        ])
      }
      const seen = []
      for (let after: RecordKey | undefined; ; ) {
        const chunk = yield* upstream.chunk("item", after, 400)
        seen.push(...chunk)
        if (chunk.length < 400) break
        after = chunk.at(-1)?.id.key
      }
      return [seen, yield* allEdges] as const
    }),
    server,
    30_000
  )
  const ids = new Set(puts.map(({ out }) => out.text))
  expect([records.length, edges.length]).toEqual([puts.length, puts.length])
  expect(
    records.filter(({ doc, id }) => !ids.has(id.text) || (doc["own"] as { readonly text: string }).text !== id.text)
  ).toEqual([])
  expect(edges.filter(({ out }) => !ids.has(out.text))).toEqual([])
  expect(records.map(({ id }) => id.text)).toEqual(
    [...records].sort((a, b) => Ids.compareKeys(a.id.key, b.id.key)).map(({ id }) => id.text)
  )
})
