/**
 * better-sqlite3, in memory: the write, then the query again for the views that the change can concern.
 *
 * Why only those: with a view per author a sensible program runs the queries of the old and of the new author again,
 * not all of them. It has the indexes that the queries want and prepared statements. It gets no delta and no hash.
 */
import { installed } from "../installed.ts"
import type { Answer, Change, Peer, Row, Workload, WorkloadName } from "../program.ts"

const newestThreads = "SELECT id FROM thread ORDER BY created_at DESC LIMIT 10"

const queries: { readonly [name in WorkloadName]: string } = {
  W1: "SELECT * FROM post WHERE author = ?",
  W2: "SELECT * FROM post WHERE published = 1 AND likes >= 50",
  W3: "SELECT * FROM post WHERE published = 1 ORDER BY created_at DESC LIMIT 20",
  W4: "SELECT t.*, u.name AS writer_name FROM thread t JOIN user u ON u.id = t.author",
  W6: "SELECT category, count(*) AS n, sum(amount) AS total FROM sale GROUP BY category",
  W7: "SELECT * FROM post WHERE author = ? ORDER BY created_at DESC LIMIT 10",
  W4b: newestThreads,
  W4c: newestThreads,
  W8: "SELECT * FROM story WHERE published = 1 ORDER BY score DESC, id LIMIT 50 OFFSET ?",
  W9: "SELECT * FROM story WHERE published = 1 AND score < ? ORDER BY score DESC, id LIMIT 50",
  W10: `SELECT * FROM story WHERE channel IN (${Array.from({ length: 20 }, () => "?").join(", ")}) ORDER BY at DESC, id LIMIT 50`
}

const indexes: { readonly [name in WorkloadName]: ReadonlyArray<string> } = {
  W1: ["post (author)"],
  W2: ["post (published, likes)"],
  W3: ["post (published, created_at)"],
  W4: ["thread (author)", "comment (thread, created_at)"],
  W6: ["sale (category, amount)"],
  W7: ["post (author, created_at)"],
  W4b: ["thread (created_at)", "comment (thread, created_at)"],
  W4c: ["thread (created_at)", "comment (thread, created_at)"],
  W8: ["story (published, score DESC, id)"],
  W9: ["story (published, score DESC, id)"],
  W10: ["story (at DESC, id)"]
}

const stored = (value: unknown): unknown => (typeof value === "boolean" ? Number(value) : value)

interface Statement {
  readonly run: (...values: ReadonlyArray<unknown>) => unknown
  readonly all: (...values: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
}

interface Connection {
  readonly prepare: (sql: string) => Statement
  readonly exec: (sql: string) => void
  readonly transaction: (body: () => void) => () => void
  readonly close: () => void
}

/** Threads are read again one by one: the result is a row per thread, and a change names the threads it concerns. */
class Threads {
  readonly rows = new Map<number, { readonly [field: string]: unknown }>()
  private readonly head: Statement
  private readonly newest: Statement
  private readonly ofUser: Statement
  private readonly everything: Statement
  private readonly isTop: boolean

  /** `isTop`: the ten newest threads only, all of them asked again. */
  constructor(db: Connection, isTop: boolean) {
    this.isTop = isTop
    this.head = db.prepare(`${queries.W4} WHERE t.id = ?`)
    this.newest = db.prepare("SELECT * FROM comment WHERE thread = ? ORDER BY created_at DESC LIMIT 10")
    this.ofUser = db.prepare("SELECT id FROM thread WHERE author = ?")
    this.everything = db.prepare(isTop ? newestThreads : "SELECT id FROM thread")
  }

  read(id: number): void {
    const [head] = this.head.all(id) as ReadonlyArray<Row & { readonly writer_name: string }>
    if (head === undefined) this.rows.delete(id)
    else
      this.rows.set(id, {
        id,
        author: head["author"],
        title: head["title"],
        ...(this.isTop ? { created_at: head["created_at"] } : {}),
        writer: [{ id: head["author"], name: head.writer_name }],
        comments: this.newest.all(id)
      })
  }

  readAll(): void {
    if (this.isTop) this.rows.clear()
    for (const { id } of this.everything.all() as ReadonlyArray<Row>) this.read(id)
  }

  follow({ table, before, after }: Change): void {
    const row = (after ?? before)!
    if (this.isTop) this.readAll()
    else if (table === "user") for (const { id } of this.ofUser.all(row.id) as ReadonlyArray<Row>) this.read(id)
    else if (table === "thread") this.read(row.id)
    else
      for (const id of new Set([before?.["thread"], after?.["thread"]])) if (id !== undefined) this.read(id as number)
  }
}

interface Input {
  readonly statement: Statement
  readonly values: ReadonlyArray<unknown>
  readonly change: Change
}

const columns = (sample: Row): string =>
  Object.entries(sample)
    .map(
      ([name, value]) =>
        `${name} ${name === "id" ? "INTEGER PRIMARY KEY" : typeof value === "string" ? "TEXT" : "INTEGER"}`
    )
    .join(", ")

export const sqlite: Peer = async (work: Workload) => {
  const { default: Database } = await installed<{ readonly default: new (path: string) => Connection }>(
    "better-sqlite3"
  )
  const db = new Database(":memory:")
  const results: Array<ReadonlyArray<unknown>> = []
  const statements = new Map<string, { readonly put: Statement; readonly remove: Statement }>()
  for (const [table, { sample }] of Object.entries(work.tables)) {
    db.exec(`CREATE TABLE ${table} (${columns(sample)})`)
    const names = Object.keys(sample)
    statements.set(table, {
      put: db.prepare(
        `INSERT OR REPLACE INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`
      ),
      remove: db.prepare(`DELETE FROM ${table} WHERE id = ?`)
    })
  }
  for (const index of indexes[work.name]) db.exec(`CREATE INDEX "${index}" ON ${index}`)
  const values = (table: string, row: Row): ReadonlyArray<unknown> =>
    Object.keys(work.tables[table]!.sample).map((name) => stored(row[name]))
  const query: Statement = db.prepare(queries[work.name])
  const isTop = work.name === "W4b" || work.name === "W4c"
  const threads = work.name === "W4" || isTop ? new Threads(db, isTop) : undefined
  const byAuthor = work.name === "W1" || work.name === "W7"
  /** A change does not tell which pages it concerns. */
  const askAll = (): void => {
    for (let view = 0; view < work.views; view++) results[view] = query.all(...boundOf(work, view))
  }
  const follow = (change: Change): void => {
    if (threads !== undefined) return threads.follow(change)
    if (work.asks !== undefined) return askAll()
    if (!byAuthor) return void (results[0] = query.all())
    const [was, is] = [change.before?.["author"] as number | undefined, change.after?.["author"] as number | undefined]
    if (was !== undefined) results[was] = query.all(was)
    if (is !== undefined && is !== was) results[is] = query.all(is)
  }
  return {
    load: () => {
      db.transaction(() => {
        for (const [table, rows] of Object.entries(work.rows))
          for (const row of rows) statements.get(table)!.put.run(...values(table, row))
      })()
      db.exec("ANALYZE")
    },
    register: () => {
      if (threads !== undefined) return threads.readAll()
      if (work.asks !== undefined) return askAll()
      for (let view = 0; view < work.views; view++) results[view] = byAuthor ? query.all(view) : query.all()
    },
    prepare: (change: Change): Input => {
      const { table, before, after } = change
      const { put, remove } = statements.get(table)!
      return after === undefined
        ? { statement: remove, values: [before!.id], change }
        : { statement: put, values: values(table, after), change }
    },
    apply: (input) => {
      const { statement, values: given, change } = input as Input
      statement.run(...given)
      follow(change)
    },
    result: (view) =>
      (threads === undefined ? results[view]! : [...threads.rows.values()]).map((row) => typed(row as Row)) as Answer,
    plan: () => (threads === undefined ? queries[work.name] : "the threads that the change concerns, one by one"),
    close: () => void db.close()
  }
}

const boundOf = ({ asks, name }: Workload, view: number): ReadonlyArray<number> => {
  const { channels, cursor, start } = asks!(view)
  return name === "W8" ? [start] : name === "W9" ? [cursor] : channels
}

const typed = (row: Row): Row => (row["published"] === undefined ? row : { ...row, published: row["published"] === 1 })
