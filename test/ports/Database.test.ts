/**
 * The layers of `Database`: each runs the conformance suite, and SQLite besides shows what it does with a bad file.
 *
 * Damage and foreign files are made byte by byte here, because a store that serves half a file is worse than none.
 */

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Either, Layer } from "effect"
import { afterAll, expect, test } from "vitest"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import * as SqliteDatabase from "../../src/drivers/sqliteDatabase.ts"
import { layerSqlite } from "../../src/host/sqlite/Sqlite.ts"
import { Database, type DatabaseError, startPosition } from "../../src/ports/Database.ts"
import { databaseSuite } from "../../src/testing/Database.suite.ts"

const folder = mkdtempSync(join(tmpdir(), "svc-database-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const freshFile = (): string => join(folder, `${files++}.sqlite`)
const sqlite = (file: string): Layer.Layer<Database, DatabaseError> =>
  SqliteDatabase.layer.pipe(Layer.provide(layerSqlite(file)))

databaseSuite("memory", () => Layer.fresh(Database.layerMemory))
databaseSuite("sqlite", () => sqlite(freshFile()))

const use = <A>(
  file: string,
  body: (database: Database["Type"]) => Effect.Effect<A, DatabaseError>
): Promise<Either.Either<A, DatabaseError>> =>
  Effect.runPromise(Effect.flatMap(Database, body).pipe(Effect.provide(Layer.fresh(sqlite(file))), Effect.either))

const fill = (database: Database["Type"]): Effect.Effect<void, DatabaseError> =>
  database.commit({
    records: Array.from({ length: 2_000 }, (_, i) => ({
      id: Ids.make("t", i),
      version: 1,
      doc: { text: `some text to fill pages with ${i}`, id: Ids.make("t", i) }
    })),
    putViews: [],
    removeViews: [],
    position: { ...startPosition, writes: 2_000 }
  })

test("D22 what SQLite committed is there when it is opened again", async () => {
  const file = freshFile()
  await use(file, fill)
  const position = await use(file, (database) => database.position)
  expect(position).toEqual(Either.right({ ...startPosition, writes: 2_000 }))
})

test("D22 a file that is no database is refused as damaged", async () => {
  const file = freshFile()
  writeFileSync(file, "this is not a database, it only has the right name ".repeat(100))
  const result = await use(file, (database) => database.position)
  expect(Either.isLeft(result) && result.left.reason).toBe("damaged")
})

test("D22 a database with overwritten pages is refused as damaged", async () => {
  const file = freshFile()
  await use(file, fill)
  const size = statSync(file).size
  const handle = openSync(file, "r+")
  for (let at = 8192; at < size; at += 4096) writeSync(handle, Buffer.alloc(512, 0xa5), 0, 512, at)
  closeSync(handle)
  const result = await use(file, (database) => database.position)
  expect(Either.isLeft(result) && result.left.reason).toBe("damaged")
})

test("D22 a second opener is told that the store is locked", async () => {
  const file = freshFile()
  const result = await use(file, (database) =>
    Effect.zipRight(
      fill(database),
      Effect.promise(() => use(file, (other) => other.position))
    )
  )
  const inner = Either.isRight(result) ? result.right : undefined
  expect(inner !== undefined && Either.isLeft(inner) && inner.left.reason).toBe("locked")
})

test("a store of the layout before is taken over, texts that look like kept ones included", async () => {
  const file = freshFile()
  const texts = ['"quoted"', "plain"]
  await use(file, fill)
  await Effect.runPromise(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.gen(function* () {
        for (const text of texts)
          yield* sql`INSERT INTO view (key, id, surql, client_id, ttl_ms, params, format, last_active_at_ms) VALUES (${text}, ${text}, ${text}, ${text}, 1, ${"{}"}, ${"flat"}, 0)`
        yield* sql`PRAGMA user_version = 1`
      })
    ).pipe(Effect.provide(Layer.fresh(layerSqlite(file))))
  )
  const views = () =>
    use(file, (database) =>
      Effect.map(database.views, (found) => found.map(({ clientId, id, key, surql }) => [key, id, surql, clientId]))
    )
  expect(await views()).toEqual(Either.right(texts.map((text) => [text, text, text, text])))
  // Once, not with every start.
  expect(await views()).toEqual(Either.right(texts.map((text) => [text, text, text, text])))
})

test("a store of a later version is refused, not guessed at", async () => {
  const file = freshFile()
  await use(file, fill)
  const bytes = readFileSync(file)
  bytes.writeUInt32BE(99, 60)
  writeFileSync(file, bytes)
  const result = await use(file, (database) => database.position)
  expect(Either.isLeft(result) && result.left.reason).toBe("newer")
})
