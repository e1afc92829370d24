/**
 * Zero's query engine (ZQL): memory sources, queries of its builder, materialized array views with a listener each.
 *
 * Why its inner modules: the engine is published only as part of the client, which would bring a server's protocol and
 * a browser's storage with it; `QueryDelegateBase` is how Zero itself puts engine and sources together. The program
 * keeps the rows by id, because an edit must bring the old row; after a change each view is told of the end of the
 * transaction, as the client does.
 */
import { fileURLToPath } from "node:url"
import { installed } from "../installed.ts"
import type { Answer, Change, Peer, Row, Workload } from "../program.ts"

/** What is used of the package. */
interface Query {
  readonly where: (field: string, ...rest: ReadonlyArray<unknown>) => Query
  readonly orderBy: (field: string, direction: string) => Query
  readonly limit: (count: number) => Query
  readonly related: (name: string, refine?: (query: Query) => Query) => Query
}
interface View {
  readonly data: unknown
  readonly addListener: (listener: (data: unknown) => void) => () => void
}
interface Source {
  readonly push: (change: unknown) => Iterable<unknown>
}
interface Delegate {
  readonly materialize: (query: Query) => View
}
interface Modules {
  readonly MemorySource: new (table: string, columns: object, primaryKey: ReadonlyArray<string>) => Source
  readonly QueryDelegateBase: abstract new () => Delegate
  readonly createBuilder: (schema: object) => { readonly [table: string]: Query }
  readonly makeSourceChangeAdd: (row: Row) => unknown
  readonly makeSourceChangeRemove: (row: Row) => unknown
  readonly makeSourceChangeEdit: (row: Row, before: Row) => unknown
}

const modules = async (): Promise<Modules> => {
  const base = fileURLToPath(import.meta.resolve("@rocicorp/zero")).replace(/zero\/src\/zero\.js$/, "")
  const parts = await Promise.all(
    [
      "zql/src/ivm/memory-source.js",
      "zql/src/query/query-delegate-base.js",
      "zql/src/query/create-builder.js",
      "zql/src/ivm/source.js"
    ].map((path) => installed<object>(base + path))
  )
  return Object.assign({}, ...parts) as Modules
}

const relationships = {
  thread: {
    writer: [{ sourceField: ["author"], destField: ["id"], destSchema: "user", cardinality: "many" }],
    comments: [{ sourceField: ["id"], destField: ["thread"], destSchema: "comment", cardinality: "many" }]
  }
}

const queryOf = (tables: { readonly [table: string]: Query }, work: Workload, view: number): Query | undefined => {
  const { post, story, thread } = tables
  switch (work.name) {
    case "W1":
      return post!.where("author", view)
    case "W2":
      return post!.where("published", true).where("likes", ">=", 50)
    case "W3":
      return post!.where("published", true).orderBy("created_at", "desc").limit(20)
    case "W4":
      return thread!
        .related("writer")
        .related("comments", (comments) => comments.orderBy("created_at", "desc").limit(10))
    case "W4b":
    case "W4c":
      return thread!
        .related("writer")
        .related("comments", (comments) => comments.orderBy("created_at", "desc").limit(10))
        .orderBy("created_at", "desc")
        .limit(10)
    // The language has no aggregates, and no page by its rank.
    case "W6":
    case "W8":
      return undefined
    case "W9":
      return story!
        .where("published", true)
        .where("score", "<", work.asks!(view).cursor)
        .orderBy("score", "desc")
        .limit(50)
    case "W10":
      return story!.where("channel", "IN", work.asks!(view).channels).orderBy("at", "desc").limit(50)
    case "W7":
      return post!.where("author", view).orderBy("created_at", "desc").limit(10)
  }
}

const columnsOf = (sample: Row): object =>
  Object.fromEntries(Object.entries(sample).map(([name, value]) => [name, { type: typeof value, optional: false }]))

interface Input {
  readonly source: Source
  readonly rows: Map<number, Row>
  readonly id: number
  readonly after: Row | undefined
}

const drain = (stream: Iterable<unknown>): void => {
  for (const _ of stream);
}

export const zero: Peer = async (work) => {
  const zql = await modules()
  const tables = Object.fromEntries(
    Object.entries(work.tables).map(([name, { sample }]) => [
      name,
      { name, columns: columnsOf(sample), primaryKey: ["id"] }
    ])
  )
  const sources = new Map(
    Object.values(tables).map(({ name, columns, primaryKey }) => [
      name,
      new zql.MemorySource(name, columns, primaryKey)
    ])
  )
  const held = new Map(Object.keys(tables).map((table) => [table, new Map<number, Row>()]))
  const committed: Array<() => void> = []
  class Host extends zql.QueryDelegateBase {
    readonly defaultQueryComplete = true
    getSource(name: string): Source | undefined {
      return sources.get(name)
    }
    onTransactionCommit(flush: () => void): () => void {
      committed.push(flush)
      return () => undefined
    }
  }
  const host = new Host()
  const builder = zql.createBuilder({ tables, relationships: work.tables["thread"] === undefined ? {} : relationships })
  if (queryOf(builder, work, 0) === undefined) return undefined
  const views: Array<View> = []
  const told = { times: 0 }
  return {
    load: () => {
      for (const [table, rows] of Object.entries(work.rows))
        for (const row of rows) {
          held.get(table)!.set(row.id, row)
          drain(sources.get(table)!.push(zql.makeSourceChangeAdd(row)))
        }
    },
    register: () => {
      for (let view = 0; view < work.views; view++) {
        const materialized = host.materialize(queryOf(builder, work, view)!)
        materialized.addListener(() => void told.times++)
        views.push(materialized)
      }
    },
    prepare: ({ table, before, after }: Change): Input => ({
      source: sources.get(table)!,
      rows: held.get(table)!,
      id: (after ?? before)!.id,
      after
    }),
    apply: (input) => {
      const { source, rows, id, after } = input as Input
      const before = rows.get(id)
      if (after === undefined) rows.delete(id)
      else rows.set(id, after)
      drain(
        source.push(
          after === undefined
            ? zql.makeSourceChangeRemove(before!)
            : before === undefined
              ? zql.makeSourceChangeAdd(after)
              : zql.makeSourceChangeEdit(after, before)
        )
      )
      for (const flush of committed) flush()
    },
    result: (view) => plain(views[view]!.data) as Answer,
    plan: () => `materialized views, listeners called ${told.times} times`
  }
}

const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]))
}
