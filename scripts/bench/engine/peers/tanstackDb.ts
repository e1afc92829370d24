/**
 * `@tanstack/db`: a collection per table fed by its sync interface, live queries watched as its framework adapters do.
 *
 * Why that way: an application gets its rows by `begin`, `write`, `commit` and its results through an adapter's
 * observer, which lets queries of one shape share their work where the library can. The listener is called with every
 * change; results are read from the snapshot at the end.
 */
import { installed } from "../installed.ts"
import type { Answer, Change, Peer, Row, Workload } from "../program.ts"

/** What is used of the package: expressions and queries are opaque here. */
type Ref = { readonly [field: string]: unknown }
type Refs = { readonly [alias: string]: Ref }
interface Query {
  readonly from: (source: object) => Query
  readonly where: (f: (refs: Refs) => unknown) => Query
  readonly orderBy: (f: (refs: Refs) => unknown, direction?: string) => Query
  readonly limit: (count: number) => Query
  readonly groupBy: (f: (refs: Refs) => unknown) => Query
  readonly select: (f: (refs: Refs) => object) => Query
  readonly findOne: () => Query
}
interface Writer {
  readonly begin: () => void
  readonly write: (message: object) => void
  readonly commit: () => void
  readonly markReady: () => void
}
interface Observer {
  readonly subscribe: (listener: (changes: ReadonlyArray<unknown> | undefined) => void) => () => void
  readonly getSnapshot: () => { readonly data: ReadonlyArray<{ readonly [field: string]: unknown }> | undefined }
}
interface TanStackDb {
  readonly createCollection: (options: object) => object
  readonly createLiveQueryObserver: (live: unknown, options: object) => Observer
  readonly resolveLiveQueryValue: (query: unknown, options: object) => unknown
  readonly Query: new () => Query
  readonly BTreeIndex: unknown
  readonly eq: (a: unknown, b: unknown) => unknown
  readonly and: (a: unknown, b: unknown) => unknown
  readonly gte: (a: unknown, b: unknown) => unknown
  readonly count: (a: unknown) => unknown
  readonly sum: (a: unknown) => unknown
  readonly materialize: (query: Query) => unknown
}

const queryOf = (
  db: TanStackDb,
  work: Workload,
  tables: { readonly [table: string]: object },
  view: number
): Query | undefined => {
  const from = (alias: string): Query => new db.Query().from({ [alias]: tables[alias]! })
  const newest = (query: Query, alias: string, limit: number): Query =>
    query.orderBy((refs) => refs[alias]!["created_at"], "desc").limit(limit)
  switch (work.name) {
    case "W1":
      return from("post").where(({ post }) => db.eq(post!["author"], view))
    case "W2":
      return from("post").where(({ post }) => db.and(db.eq(post!["published"], true), db.gte(post!["likes"], 50)))
    case "W3":
      return newest(
        from("post").where(({ post }) => db.eq(post!["published"], true)),
        "post",
        20
      )
    case "W4":
      return from("thread").select(({ thread }) => ({
        id: thread!["id"],
        author: thread!["author"],
        title: thread!["title"],
        writer: db.materialize(from("user").where(({ user }) => db.eq(user!["id"], thread!["author"]))),
        comments: db.materialize(
          newest(
            from("comment").where(({ comment }) => db.eq(comment!["thread"], thread!["id"])),
            "comment",
            10
          )
        )
      }))
    case "W6":
      return from("sale")
        .groupBy(({ sale }) => sale!["category"])
        .select(({ sale }) => ({
          category: sale!["category"],
          n: db.count(sale!["id"]),
          total: db.sum(sale!["amount"])
        }))
    case "W7":
      return newest(
        from("post").where(({ post }) => db.eq(post!["author"], view)),
        "post",
        10
      )
    // Pages by rank are not in its language; what W4b, W4c, W9 and W10 cost is not measured.
    default:
      return undefined
  }
}

/** Results carry the library's own fields (`$key` and others), which are no part of the answer. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith("$"))
      .map(([key, part]) => [key, plain(part)])
  )
}

export const tanstackDb: Peer = async (work) => {
  const db = await installed<TanStackDb>("@tanstack/db")
  const writers: { [table: string]: Writer } = {}
  const tables: { [table: string]: object } = {}
  for (const table of Object.keys(work.tables)) {
    tables[table] = db.createCollection({
      id: table,
      getKey: (row: Row) => row.id,
      startSync: true,
      gcTime: 0,
      autoIndex: "eager",
      defaultIndexType: db.BTreeIndex,
      sync: { rowUpdateMode: "full", sync: (writer: Writer) => void (writers[table] = writer) }
    })
  }
  if (queryOf(db, work, tables, 0) === undefined) return undefined
  const observers: Array<Observer> = []
  const told = { changes: 0 }
  return {
    load: () => {
      for (const [table, rows] of Object.entries(work.rows)) {
        const { begin, write, commit, markReady } = writers[table]!
        begin()
        for (const value of rows) write({ type: "insert", value })
        commit()
        markReady()
      }
    },
    register: () => {
      for (let view = 0; view < work.views; view++) {
        const observer = db.createLiveQueryObserver(
          db.resolveLiveQueryValue(queryOf(db, work, tables, view)!, { gcTime: 0 }),
          { mode: "granular" }
        )
        observer.subscribe((changes) => void (told.changes += changes?.length ?? 0))
        observers.push(observer)
      }
    },
    prepare: ({ table, before, after }: Change) => ({
      writer: writers[table]!,
      message: {
        type: after === undefined ? "delete" : before === undefined ? "insert" : "update",
        key: (after ?? before)!.id,
        value: after ?? before
      }
    }),
    apply: (input) => {
      const { writer, message } = input as { readonly writer: Writer; readonly message: object }
      writer.begin()
      writer.write(message)
      writer.commit()
    },
    settle: () => new Promise((done) => setTimeout(done, 0)),
    result: (view) => plain(observers[view]!.getSnapshot().data ?? []) as Answer,
    plan: () => `observer of a live query, ${told.changes} changes told`
  }
}
