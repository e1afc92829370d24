/**
 * The layers of `JobStore`: each runs the conformance suite; the real database besides shows what only it can meet.
 *
 * Over a socket, with the schema of the specification, because permissions, types and conflicts are the database's.
 */
import { Context, Effect, Layer, TestClock } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import { Duration, type Obj, type RecordId } from "../../src/core/surql/values/value.ts"
import * as SurrealJobs from "../../src/drivers/surrealJobs.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import { JobStore, JobStoreError } from "../../src/ports/JobStore.ts"
import { SurrealClient } from "../../src/ports/SurrealClient.ts"
import * as RecordJobs from "../../src/ssp/jobs/recordJobs.ts"
import { id, job, jobStoreSuite, table } from "../../src/testing/JobStore.suite.ts"

let server: RpcServer
let databases = 0
beforeAll(async () => void (server = await RpcServer.start()))
afterAll(() => server.kill())

const client = Layer.unwrapEffect(
  Effect.sync(() =>
    layerServer({ kind: "server", url: `${server.url}/rpc` }, { ...rootAccess, database: `jobs${databases++}` })
  )
)

/** As the specification has the table, without its permissions. */
const schema = `DEFINE TABLE ${table} SCHEMAFULL; DEFINE FIELD path ON ${table} TYPE string; DEFINE FIELD payload ON ${table} TYPE any; DEFINE FIELD retries ON ${table} TYPE int VALUE 0;
  DEFINE FIELD max_retries ON ${table} TYPE int DEFAULT 3; DEFINE FIELD retry_strategy ON ${table} TYPE string DEFAULT 'linear'; DEFINE FIELD status ON ${table} TYPE string DEFAULT 'pending';
  DEFINE FIELD errors ON ${table} TYPE array<object> DEFAULT []; DEFINE FIELD OVERWRITE errors.* ON ${table} TYPE object FLEXIBLE; DEFINE FIELD updated_at ON ${table} TYPE option<datetime>;
  DEFINE INDEX status ON ${table} FIELDS status`

const fill = (records: ReadonlyArray<Obj>) =>
  Effect.flatMap(SurrealClient, ({ query }) =>
    query(`${schema}; FOR $row IN $records { CREATE $row.id CONTENT $row }`, { records })
  )

const overSocket = (records: ReadonlyArray<Obj>): Layer.Layer<JobStore | SurrealClient, JobStoreError> =>
  SurrealJobs.layer.pipe(
    Layer.provideMerge(Layer.effectDiscard(fill(records))),
    Layer.provideMerge(client),
    Layer.fresh,
    Layer.catchAll((error) => Layer.fail(new JobStoreError({ transient: false, message: String(error) })))
  )

/** Leases run out without anybody waiting for it. */
const olderBy = (ms: number) =>
  Effect.flatMap(SurrealClient, ({ query }) =>
    query("UPDATE _svc_job SET until = until - $ms", { ms: new Duration(Math.floor(ms / 1000), 0) })
  ).pipe(
    Effect.asVoid,
    Effect.mapError((error) => new JobStoreError({ transient: false, message: String(error) }))
  )

class InMemory extends Context.Tag("test/InMemory")<InMemory, ReturnType<typeof RecordJobs.memoryJobRecords>>() {}

const recordOf = (doc: Obj): RecordId => doc["id"] as RecordId

jobStoreSuite(
  "memory",
  (docs) => {
    const records = RecordJobs.memoryJobRecords(docs)
    return Layer.merge(RecordJobs.layer(records), Layer.succeed(InMemory, records))
  },
  (ms) => TestClock.adjust(ms),
  (doc) =>
    Effect.flatMap(InMemory, ({ put, remove }) => {
      remove(recordOf(doc))
      return Effect.asVoid(put([[{ id: recordOf(doc), doc, was: undefined }]]))
    })
)
jobStoreSuite("surreal over a socket", overSocket, olderBy, (doc) =>
  Effect.flatMap(SurrealClient, ({ query }) =>
    query("DELETE $id; CREATE $id CONTENT $doc", { id: recordOf(doc), doc })
  ).pipe(
    Effect.asVoid,
    Effect.mapError((error) => new JobStoreError({ transient: false, message: String(error) }))
  )
)

const use = <A>(
  records: ReadonlyArray<Obj>,
  body: (store: JobStore["Type"], surreal: SurrealClient["Type"]) => Effect.Effect<A, unknown>
): Promise<A> =>
  Effect.runPromise(
    Effect.all([JobStore, SurrealClient]).pipe(
      Effect.flatMap(([store, surreal]) => Effect.zipRight(store.prepare, body(store, surreal))),
      Effect.provide(overSocket(records))
    )
  )

const me = { holder: "a", incarnation: "1" }
const succeeded = (ref: RecordId) => ({ ref, event: "Succeeded" as const, error: undefined })

test("D35 eight runners that claim the same forty jobs win each exactly once", async () => {
  const all = Array.from({ length: 40 }, (_, n) => id(n))
  const won = await use(
    all.map((_, n) => job(n)),
    (store) =>
      Effect.forEach(
        Array.from({ length: 8 }),
        (_, n) =>
          store
            .claim(all, { holder: `r${n}`, incarnation: "1" }, 60_000)
            .pipe(Effect.retry({ times: 50, while: (error) => error.transient })),
        { concurrency: "unbounded" }
      )
  )
  expect(
    won
      .flat()
      .map((found) => found.id)
      .sort()
  ).toEqual(all.map(({ text }) => text).sort())
})

test("a write that the database refuses does not hold up the others, and alone it says so", async () => {
  const [both, alone] = await use([job("a"), job("b")], (store, surreal) =>
    Effect.gen(function* () {
      yield* store.claim([id("a"), id("b")], me, 60_000)
      yield* surreal.query(
        `DEFINE EVENT stop ON ${table} WHEN $after.status = 'success' AND $after.id = ${table}:b THEN { THROW 'not this one' }`
      )
      return [
        yield* store.write([succeeded(id("a")), succeeded(id("b"))], me),
        yield* Effect.either(store.write([succeeded(id("b"))], me))
      ] as const
    })
  )
  expect([...both]).toEqual(["mail_job:a"])
  expect(alone).toMatchObject({
    _tag: "Left",
    left: { transient: false, message: expect.stringContaining("not this one") }
  })
})

test("D38 a failed attempt that is written twice stands there once", async () => {
  const error = { attempt: 1, code: 500, reason: "no", at: "2026-01-01T00:00:00Z" }
  const found = await use([job("a")], (store) =>
    Effect.gen(function* () {
      yield* store.claim([id("a")], me, 60_000)
      for (let i = 0; i < 2; i++) yield* store.write([{ ref: id("a"), event: "AttemptFailed", error }], me)
      return yield* store.find(id("a"))
    })
  )
  expect(found?.errors).toEqual([error])
})
