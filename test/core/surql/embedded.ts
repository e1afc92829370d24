/**
 * A real database in this process for one test file: connected before its tests, closed behind them.
 */
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"
import { afterAll, beforeAll } from "vitest"

/** The connection of the file's tests; `prepare` is run once on it. */
export const embedded = (prepare = ""): Surreal => {
  const db = new Surreal({ engines: createNodeEngines() })
  beforeAll(async () => {
    await db.connect("mem://")
    await db.use({ namespace: "test", database: "test" })
    if (prepare !== "") await db.query(prepare)
  })
  afterAll(async () => void (await db.close()))
  return db
}
