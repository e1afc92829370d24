/**
 * The yardstick of a bootstrap: a bare `node:http` server that answers chunks of a plain SQLite table as JSON, in key
 * order.
 *
 * Why no more than that: nobody can move the records of a table to another process for less, so a ratio to it means
 * something.
 */
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { join } from "node:path"

interface Row {
  readonly id: number
  readonly content: string
}

interface Driver {
  readonly prepare: (sql: string) => {
    readonly all: (...params: ReadonlyArray<unknown>) => ReadonlyArray<Row>
    readonly run: (...params: ReadonlyArray<unknown>) => unknown
  }
  readonly exec: (sql: string) => void
}

const require = createRequire(join(process.cwd(), "node_modules/@effect/sql-sqlite-node/package.json"))
const Sqlite = require("better-sqlite3") as new (file: string) => Driver
const db = new Sqlite(String(process.env["FILE"]))
db.exec("PRAGMA journal_mode = WAL; CREATE TABLE record (id INTEGER PRIMARY KEY, content TEXT NOT NULL); BEGIN")
const insert = db.prepare("INSERT INTO record VALUES (?, ?)")
for (let id = 0; id < Number(process.env["RECORDS"]); id++) {
  insert.run(
    id,
    JSON.stringify({
      author: `user:${id % 1000}`,
      title: `Post number ${id}`,
      likes: id % 100,
      tags: ["a", "b"],
      draft: false
    })
  )
}
db.exec("COMMIT")
const chunk = db.prepare("SELECT id, content FROM record WHERE id > ? ORDER BY id LIMIT 1000")

createServer((request, response) => {
  const rows = chunk.all(Number(new URL(request.url ?? "/", "http://bench").searchParams.get("after")))
  const answer = JSON.stringify(
    rows.map(({ content, id }) => ({ id: `post:${id}`, ...(JSON.parse(content) as object) }))
  )
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) })
  response.end(answer)
}).listen(Number(process.env["PORT"]), "127.0.0.1")
