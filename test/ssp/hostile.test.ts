/**
 * Hostile record ids and values on their whole way (D1, D4, D21, D41): written to the real engine, announced by its
 * events, read at the door, kept in memory and in the embedded store, put into edges, read back from the database: the
 * same everywhere, and nothing else touched.
 *
 * A campaign draws ten thousand of them (`SVC_RUNS=67`); the plain run a few hundred.
 */

import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Chunk, Effect, Either, Layer, Logger, LogLevel, Stream } from "effect"
import { afterAll, beforeAll, expect } from "vitest"
import * as Hostile from "../../kit/data/hostile.ts"
import { type Rng, runs, seeded } from "../../kit/data/random.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import { StoreTrees } from "../../src/core/integrity/storeTrees.ts"
import { Store } from "../../src/core/ivm/store/store.ts"
import { type Change, decodeChange } from "../../src/core/record/change.ts"
import { nameText } from "../../src/core/surql/values/names.ts"
import { identical } from "../../src/core/surql/values/order.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { render } from "../../src/core/surql/values/text.ts"
import type { Obj, RecordId } from "../../src/core/surql/values/value.ts"
import { script } from "../../src/core/surreal/databaseSetup.ts"
import * as SqliteDatabase from "../../src/drivers/sqliteDatabase.ts"
import * as SurrealUpstream from "../../src/drivers/surrealUpstream.ts"
import { layerSqlite } from "../../src/host/sqlite/Sqlite.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import { Database, startPosition } from "../../src/ports/Database.ts"
import { SurrealClient } from "../../src/ports/SurrealClient.ts"
import { type Edge, Upstream } from "../../src/ports/Upstream.ts"

const folder = temporaryFolder()
const bodies: Array<unknown> = []
let http: Server
let server: RpcServer

beforeAll(async () => {
  http = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString("utf8")))
      response.end("{}")
    })
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
  server = await RpcServer.start({ capabilities: { network_targets: true } })
})
afterAll(async () => {
  await server.kill()
  http.close()
  removeFolder(folder)
})

const tables = ["item", "odd `'⟩ name; --"]

/** Everything that is defined in the database, and the record that injected statements are after. */
const definitions = `INFO FOR DB; ${["canary", ...tables].map((table) => `INFO FOR TABLE ${nameText(table)}`).join(";")}; SELECT * FROM canary`

const shown = (...docs: ReadonlyArray<unknown>): string => docs.map((doc) => render([doc as Obj])).join("\n")

/** Writes a record through the user's own statement and answers what the event said of it. */
const written = ({ query }: SurrealClient["Type"], id: RecordId, doc: Obj) =>
  Effect.gen(function* () {
    bodies.length = 0
    yield* query("UPSERT $id CONTENT $doc RETURN NONE", { id, doc })
    expect(bodies.length, id.text).toBe(1)
    // Where a database is, the tables it has are known, and what it declares of them.
    return Either.getOrThrowWith(
      decodeChange(bodies[0], () => ({})),
      (refused) => new Error(`${JSON.stringify(refused)}: ${JSON.stringify(bodies[0])}`)
    )
  })

const edgeText = ({ out, parent, path, version }: Edge): string =>
  JSON.stringify([path, parent?.text, out.text, version])

/** Puts every record into the edges of a view, as a main row and below another record, and reads them back. */
const throughEdges = (
  upstream: Upstream["Type"],
  client: SurrealClient["Type"],
  view: string,
  ids: ReadonlyArray<RecordId>
) =>
  Effect.gen(function* () {
    yield* upstream.register(
      {
        key: view,
        id: `incantation:${view}`,
        surql: "SELECT * FROM item",
        clientId: view,
        ttlMs: 60_000,
        params: "null",
        format: "flat",
        lastActiveAtMs: 0
      },
      view
    )
    const parent = ids[0]!
    const edges = ids.flatMap(
      (out, i): ReadonlyArray<Edge> => [
        { path: "", parent: undefined, out, version: i },
        { path: view, parent, out, version: i + 1 }
      ]
    )
    const outcome = yield* upstream.apply([
      { key: view, clientId: view, owner: view, assignment: 1, puts: edges, removals: [] }
    ])
    expect(outcome).toEqual({ lost: [], refused: [] })
    const read = Chunk.toReadonlyArray(yield* Stream.runCollect(upstream.edges(view))).flat()
    expect(read.map(edgeText).sort()).toEqual(edges.map(edgeText).sort())
    const [asked] = yield* client.query(
      "SELECT VALUE [out, version] FROM _svc_list_ref WHERE in = $in AND parent = NONE",
      { in: Ids.make("_svc_query", view) }
    )
    expect(
      (asked as ReadonlyArray<readonly [RecordId, number]>).map(([out, version]) => `${out.text} ${version}`).sort()
    ).toEqual(ids.map(({ text }, i) => `${text} ${i}`).sort())
    yield* upstream.unregister([view], view)
    expect(
      Chunk.toReadonlyArray(yield* Stream.runCollect(upstream.edges(view)))
        .flat()
        .map(edgeText),
      view
    ).toEqual([])
  })

const readAll = (upstream: Upstream["Type"], table: string) =>
  Effect.map(upstream.chunk(table, undefined, 100_000), (found) => found.map(({ doc }) => doc))

const draw = (random: Rng, count: number): ReadonlyArray<readonly [RecordId, Obj]> => {
  const drawn = new Map<string, readonly [RecordId, Obj]>()
  while (drawn.size < count) {
    const id = Ids.make(random.pick(tables), Hostile.key(random))
    drawn.set(id.text, [id, Hostile.content(random)])
  }
  return [...drawn.values()]
}

const apply = (store: Store, changes: ReadonlyArray<Change>): void => {
  for (const write of store.plan(changes)) if (write !== undefined) store.apply(write)
}

const journey = (random: Rng, records: ReadonlyArray<readonly [RecordId, Obj]>) =>
  Effect.gen(function* () {
    const [client, upstream, database] = [yield* SurrealClient, yield* Upstream, yield* Database]
    yield* client.query(
      ["canary", ...tables].map((table) => `DEFINE TABLE ${nameText(table)}`).join("; ") +
        "; CREATE canary:1 SET alive = true"
    )
    yield* client.query(
      script({
        url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
        secret: "'\"`",
        tables,
        mode: "sync",
        openToRecordUsers: true
      })
    )
    const before = yield* client.query(definitions)
    const store = new Store()
    for (const [id, doc] of records) {
      const change = yield* written(client, id, doc)
      expect(identical(change.doc, { ...doc, id }), shown(change.doc, { ...doc, id })).toBe(true)
      apply(store, [change])
    }
    for (const table of tables) {
      const found = yield* readAll(upstream, table)
      for (const doc of found)
        expect(
          identical(store.get(doc["id"] as RecordId)?.doc, doc),
          shown(store.get(doc["id"] as RecordId)?.doc, doc)
        ).toBe(true)
      const theirs = new Store()
      apply(
        theirs,
        found.map((doc) => ({
          op: "CREATE",
          id: doc["id"] as RecordId,
          doc,
          version: undefined,
          position: undefined,
          jobAssignee: undefined
        }))
      )
      expect(new StoreTrees(theirs).settle(table).node(0, 0)).toEqual(new StoreTrees(store).settle(table).node(0, 0))
    }
    const ids = records.map(([id]) => id)
    expect((yield* upstream.find(ids)).length).toBe(ids.length)
    for (let from = 0; from < ids.length; from += 100)
      yield* throughEdges(upstream, client, Hostile.viewKey(random), ids.slice(from, from + 100))
    yield* database.commit({
      records: ids.map((id) => ({ id, version: 1, doc: store.get(id)!.doc })),
      putViews: [],
      removeViews: [],
      position: startPosition
    })
    const kept = Chunk.toReadonlyArray(yield* Stream.runCollect(database.records)).flat()
    expect(kept.length).toBe(ids.length)
    for (const { doc, id } of kept)
      expect(identical(doc, store.get(id)?.doc), shown(doc, store.get(id)?.doc)).toBe(true)
    expect(shown(yield* client.query(definitions))).toBe(shown(before))
  })

seeded(
  "D1 D21 D41 hostile ids and values are the same in the database, at the door, in memory, in the store and in edges, and touch nothing else",
  "test/ssp/hostile.test.ts",
  async (random) => {
    const records = draw(random, runs(150))
    expect(new Set(records.map(([id]) => typeof id.key)).size).toBeGreaterThan(2)
    const client = layerServer({ kind: "server", url: `${server.url}/rpc` }, rootAccess)
    const layers = Layer.mergeAll(
      Layer.provideMerge(SurrealUpstream.layer, client),
      SqliteDatabase.layer.pipe(Layer.provide(layerSqlite(join(folder, "store.db"))))
    )
    await Effect.runPromise(
      Effect.provide(journey(random, records), layers).pipe(Logger.withMinimumLogLevel(LogLevel.None))
    )
  },
  3_600_000
)
