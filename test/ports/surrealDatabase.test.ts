/**
 * `Database` in a SurrealDB: the conformance suite inside the process and over a socket, and what it does with bad
 * rows.
 *
 * The suite is the same as for SQLite and memory; what only this layer can meet is below it.
 */

import { join } from "node:path"
import { Effect, Either, Layer, Stream } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import * as SurrealDatabase from "../../src/drivers/surrealDatabase.ts"
import { layerEmbedded, layerServer } from "../../src/host/surreal/Surreal.ts"
import { Database, DatabaseError, startPosition } from "../../src/ports/Database.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { SurrealClient, type SurrealError } from "../../src/ports/SurrealClient.ts"
import { databaseSuite } from "../../src/testing/Database.suite.ts"

const folder = temporaryFolder()
let server: RpcServer
let databases = 0
// Not in memory: there the engine takes seconds for one large transaction.
beforeAll(async () => void (server = await RpcServer.start({ path: `surrealkv://${join(folder, "server")}` })))
afterAll(async () => {
  await server.kill()
  removeFolder(folder)
})

const access = { ...rootAccess, authLevel: "root" } as const
const overSocket = Layer.unwrapEffect(
  Effect.sync(() =>
    layerServer({ kind: "server", url: `${server.url}/rpc` }, { ...access, database: `d${databases++}` })
  )
)
const inProcess = (url: string) => layerEmbedded({ kind: "embedded", url }, { ...access, database: "d" })

const asDatabaseError = (error: DatabaseError | SurrealError | StartFault): DatabaseError =>
  error instanceof DatabaseError ? error : new DatabaseError({ reason: "failed", message: error.message })
const on = (client: Layer.Layer<SurrealClient, SurrealError | StartFault>): Layer.Layer<Database, DatabaseError> =>
  Layer.fresh(
    SurrealDatabase.layer.pipe(
      Layer.provide(client),
      Layer.catchAll((error) => Layer.fail(asDatabaseError(error)))
    )
  )

databaseSuite("surreal in the process", () => on(inProcess(`surrealkv://${join(folder, `s${databases++}`)}`)))
databaseSuite("surreal over a socket", () => on(overSocket))

type Use<A> = (
  database: Database["Type"],
  client: SurrealClient["Type"]
) => Effect.Effect<A, DatabaseError | SurrealError>

const use = <A>(url: string, body: Use<A>) => {
  const both = SurrealDatabase.layer.pipe(Layer.provideMerge(inProcess(url)))
  return Effect.runPromise(
    Effect.all([Database, SurrealClient]).pipe(
      Effect.flatMap(([database, client]) => body(database, client)),
      Effect.provide(Layer.fresh(both)),
      Effect.either
    )
  )
}

const two = (database: Database["Type"]) =>
  database.commit({
    records: [1, 2].map((n) => ({ id: Ids.make("t", n), version: n, doc: { id: Ids.make("t", n) } })),
    putViews: [],
    removeViews: [],
    position: { ...startPosition, writes: 2 }
  })

const reasonAfter = async (name: string, harm: string): Promise<string> => {
  const url = `surrealkv://${join(folder, name)}`
  await use(url, (database, client) => Effect.zipRight(two(database), client.query(harm)))
  const read = await use(url, (database) => Effect.zipRight(Stream.runDrain(database.records), database.views))
  return Either.isLeft(read) && read.left instanceof DatabaseError
    ? read.left.reason
    : `no failure: ${JSON.stringify(read)}`
}

test("D22 what the embedded database committed is there when it is opened again", async () => {
  const url = `surrealkv://${join(folder, "again")}`
  await use(url, two)
  const found = await use(url, (database) => Effect.zip(database.position, Stream.runCollect(database.records)))
  expect(Either.getOrThrow(found)[0]).toEqual({ ...startPosition, writes: 2 })
  expect([...Either.getOrThrow(found)[1]].flat().map(({ id, version }) => [id.text, version])).toEqual([
    ["t:1", 1],
    ["t:2", 2]
  ])
})

test("D22 a commit that fails in its last part leaves nothing of its first", async () => {
  const outcome = await use("mem://", (database, client) =>
    Effect.gen(function* () {
      yield* client.query("DEFINE FIELD OVERWRITE writes ON _svc_state TYPE int ASSERT $value < 2")
      const failed = yield* Effect.either(two(database))
      return [failed, yield* Stream.runCollect(database.records)] as const
    })
  )
  const [failed, records] = Either.getOrThrow(outcome)
  expect(Either.isLeft(failed) && [failed.left.reason, failed.left.message]).toEqual([
    "failed",
    expect.stringContaining("writes")
  ])
  expect([...records].flat()).toEqual([])
})

test("D22 rows that are not what was written are damage, and named", async () => {
  expect(await reasonAfter("content", "UPDATE _svc_record:`t:1` SET content = '{'")).toBe("damaged")
  expect(await reasonAfter("id", "CREATE _svc_record:`no id` SET version = 1")).toBe("damaged")
  expect(
    await reasonAfter(
      "position",
      "DEFINE FIELD OVERWRITE writes ON _svc_state TYPE any; UPDATE _svc_state SET writes = 'many'"
    )
  ).toBe("damaged")
})

test("a store of a later version is refused, not guessed at", async () => {
  expect(await reasonAfter("newer", "UPDATE _svc_state SET layout = 99")).toBe("newer")
})
