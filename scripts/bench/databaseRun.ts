/**
 * Measures what passes between this service and a database server: edges in batches beside single statements, and a
 * table read in chunks beside one statement for all of it.
 *
 * Wall time, because what is waited for is the server. On the built code, through the drivers a node uses; the server
 * is another process. Both sides take turns, round after round. Started by `database.ts`, which points the imports of
 * `src` at `dist`.
 */
import { Effect, Layer, Logger, LogLevel, Redacted } from "effect"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId, RecordKey } from "../../src/core/surql/values/value.ts"
import * as SurrealUpstream from "../../src/drivers/surrealUpstream.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import { SurrealClient } from "../../src/ports/SurrealClient.ts"
import { Upstream } from "../../src/ports/Upstream.ts"

const [portText, countText] = process.argv.slice(-2)
const count = Number(countText)
const rounds = 5
const edgesPerRound = 5_000
const singlesPerRound = 500
const batch = 500

/** Not the tests': this runs on the built code alone. */
const access = {
  namespace: "n",
  database: "d",
  user: "root",
  pass: Redacted.make("root"),
  authLevel: undefined,
  absent: "create"
} as const
const patience = { connectTimeoutMs: 10_000, requestTimeoutMs: 600_000, maxPauseMs: 1_000 }
const layer = Layer.provideMerge(
  SurrealUpstream.layer,
  layerServer({ kind: "server", url: `ws://127.0.0.1:${portText}/rpc` }, access, patience)
).pipe(Layer.provideMerge(Logger.minimumLogLevel(LogLevel.Warning)))

/** Milliseconds an effect takes. */
const timed = <E, R>(effect: Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    const start = performance.now()
    yield* effect
    return performance.now() - start
  })

const view = (key: string) => ({
  key,
  id: `incantation:${key}`,
  surql: "SELECT * FROM post",
  clientId: "c",
  ttlMs: 1e9,
  params: "null",
  format: "flat",
  lastActiveAtMs: Date.now()
})
const posts = (from: number, size: number): ReadonlyArray<RecordId> =>
  Array.from({ length: size }, (_, i) => Ids.make("post", from + i))

const fill = Effect.gen(function* () {
  const { query } = yield* SurrealClient
  yield* query("DEFINE TABLE post")
  for (let from = 0; from < count; from += 500) {
    const rows = posts(from, Math.min(500, count - from)).map(
      (id, i): Obj => ({
        id,
        author: Ids.make("user", (from + i) % 997),
        title: `Post number ${from + i}`,
        likes: ((from + i) * 7919) % 1000,
        draft: i % 2 === 0,
        tags: ["a", "b"]
      })
    )
    yield* query("INSERT INTO post $rows RETURN NONE", { rows })
  }
})

let views = 0

/** Edges of a new view, one after the other, in the batches the writer makes. */
const inBatches = (flying: number) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    const keys = Array.from({ length: flying }, () => `b${views++}`)
    for (const key of keys) yield* upstream.register(view(key), "me")
    return yield* timed(
      Effect.forEach(
        keys,
        (key) =>
          Effect.gen(function* () {
            for (let from = 0; from < edgesPerRound / flying; from += batch) {
              const puts = posts(from, batch).map((out) => ({ path: "", parent: undefined, out, version: 1 }))
              yield* upstream.apply([{ key, clientId: "c", owner: "me", assignment: 1, puts, removals: [] }])
            }
          }),
        { concurrency: "unbounded" }
      )
    )
  })

const singles = (flying: number) =>
  Effect.gen(function* () {
    const { query } = yield* SurrealClient
    const upstream = yield* Upstream
    const key = `s${views++}`
    yield* upstream.register(view(key), "me")
    const from = Ids.make("_svc_query", key)
    return yield* timed(
      Effect.forEach(
        posts(0, singlesPerRound),
        (to) =>
          query("CREATE _svc_list_ref SET in = $from, out = $to, version = 1, clientId = 'c' RETURN NONE", {
            from,
            to
          }),
        { concurrency: flying }
      )
    )
  })

const inChunks = (size: number) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    return yield* timed(
      Effect.gen(function* () {
        let read = 0
        for (let after: RecordKey | undefined; ; ) {
          const chunk = yield* upstream.chunk("post", after, size)
          read += chunk.length
          if (chunk.length < size) return read === count ? undefined : yield* Effect.die(`read ${read} of ${count}`)
          after = chunk.at(-1)?.id.key
        }
      })
    )
  })

/** A million rows in one answer are more than a socket takes: as many as fit. */
const atOnce = Math.min(count, 100_000)
const plain = Effect.flatMap(SurrealClient, ({ query }) => timed(query(`SELECT * FROM post LIMIT ${atOnce}`)))

interface Figures {
  readonly name: string
  /** Microseconds of wall time per unit, one figure per round. */
  readonly figures: Array<number>
}

const line = (name: string): Figures => ({ name, figures: [] })

const run = Effect.gen(function* () {
  yield* Effect.flatMap(Upstream, ({ prepare }) => prepare)
  const fillMs = yield* timed(fill)
  const edges = [
    line(`edges in batches of ${batch}`),
    line(`edges in batches of ${batch}, 4 views at once`),
    line("edges one by one"),
    line("edges one by one, 16 at once")
  ] as const
  const reads = [line("records in chunks of 1,000"), line("records in one statement")] as const
  for (let round = 0; round <= rounds; round++) {
    const took = [
      (yield* inBatches(1)) / edgesPerRound,
      (yield* inBatches(4)) / edgesPerRound,
      (yield* singles(1)) / singlesPerRound,
      (yield* singles(16)) / singlesPerRound
    ]
    if (round > 0) took.forEach((ms, i) => edges[i]?.figures.push(ms * 1000))
  }
  for (let round = 0; round <= (count > 100_000 ? 1 : 3); round++) {
    const took = [(yield* inChunks(1_000)) / count, (yield* plain) / atOnce]
    if (round > 0) took.forEach((ms, i) => reads[i]?.figures.push(ms * 1000))
  }
  // A node that comes next would take these views over, and write their edges.
  yield* Effect.flatMap(SurrealClient, ({ query }) => query("REMOVE TABLE _svc_list_ref; REMOVE TABLE _svc_query"))
  return { fillMs, edges, reads }
})

const found = await Effect.runPromise(Effect.provide(run, layer))
process.stdout.write(JSON.stringify(found), () => process.exit())
