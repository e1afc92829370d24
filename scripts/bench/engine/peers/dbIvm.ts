/**
 * `@tanstack/db-ivm`: operators wired by hand, results kept by the program that listens to the output.
 *
 * The program also keeps the rows by id: a change brings the new state of a record, and the library must be given the
 * old one to take back. Two programs for views by author. `shared`: the views are an input of their own, joined with
 * the posts by author, what somebody writes who knows that all views are alike. `each`: a pipeline per view, what
 * somebody writes who does not. Operators must be wired before data flows, so but for `shared` loading and registering
 * is one.
 */
import { installed } from "../installed.ts"
import type { Answer, Peer, Program, Row, Workload, WorkloadName } from "../program.ts"

/** What is used of the package. */
type Batch<T> = ReadonlyArray<readonly [T, number]>
type Operator = (stream: Stream) => Stream
interface Stream {
  readonly pipe: (...operators: ReadonlyArray<Operator>) => Stream
}
interface Input extends Stream {
  readonly sendData: (batch: unknown) => void
}
interface Graph {
  readonly newInput: () => Input
  readonly finalize: () => void
  readonly run: () => void
}
interface Message<T> {
  readonly getInner: () => Batch<T>
}
interface DbIvm {
  readonly D2: new () => Graph
  readonly MultiSet: new (data: unknown) => unknown
  readonly map: <T>(f: (value: T) => unknown) => Operator
  readonly filter: <T>(f: (value: T) => boolean) => Operator
  readonly output: <T>(f: (message: Message<T>) => void) => Operator
  readonly join: (other: Stream, type: string) => Operator
  readonly consolidate: () => Operator
  readonly groupBy: <T>(key: (value: T) => object, aggregates: object) => Operator
  readonly groupByOperators: { readonly count: () => object; readonly sum: <T>(value: (row: T) => number) => object }
  readonly topKWithFractionalIndex: (compare: (a: Row, b: Row) => number, options: object) => Operator
  readonly groupedTopKWithFractionalIndex: (compare: (a: Row, b: Row) => number, options: object) => Operator
}

const open = (): Promise<DbIvm> => installed<DbIvm>("@tanstack/db-ivm")

const newestFirst = (a: Row, b: Row): number => (b["created_at"] as number) - (a["created_at"] as number)
const matches = (row: Row): boolean => row["published"] === true && (row["likes"] as number) >= 50

/** A result as rows by id. */
type Kept = Map<unknown, Row>

/** Where a row of an output belongs: the map that holds the result, the key in it, and what to keep there. */
type Place<T> = (value: T) => readonly [Map<unknown, unknown>, unknown, unknown]

/** The end of a pipeline that takes a row's old state before it gives the new one. */
const listen = <T>(ivm: DbIvm, place: Place<T>): Operator =>
  ivm.output<T>((message) => {
    for (const [value, count] of message.getInner()) {
      const [held, key, kept] = place(value)
      if (count > 0) held.set(key, kept)
      else held.delete(key)
    }
  })

/** The end of a top-k or a join, where a row may come and go within one message in either order: the net counts. */
const listenNet = <T>(ivm: DbIvm, place: Place<T>): Operator =>
  ivm.output<T>((message) => {
    const batch = message.getInner()
    const moved = new Map<Map<unknown, unknown>, Map<unknown, { net: number; kept: unknown }>>()
    for (const [value, count] of batch) {
      const [held, key, kept] = place(value)
      let keys = moved.get(held)
      if (keys === undefined) moved.set(held, (keys = new Map()))
      const move = keys.get(key)
      if (move === undefined) keys.set(key, { net: count, kept: count > 0 ? kept : undefined })
      else {
        move.net += count
        if (count > 0) move.kept = kept
      }
    }
    for (const [held, keys] of moved)
      for (const [key, { net, kept }] of keys) {
        if ((held.has(key) ? 1 : 0) + net <= 0) held.delete(key)
        else if (kept !== undefined) held.set(key, kept)
      }
  })

/** The part all programs share: an input and the rows of each table, one batch per change. */
const program = (
  work: Workload,
  ivm: DbIvm,
  graph: Graph,
  inputs: { readonly [table: string]: Input },
  rest: {
    readonly wire?: () => void
    readonly result: (view: number) => Answer
    readonly plan: string
    readonly keyed: boolean
  }
): Program => {
  const entry = (row: Row): unknown => (rest.keyed ? [row.id, row] : row)
  const held = new Map(Object.keys(inputs).map((table) => [table, new Map<number, Row>()]))
  return {
    load: () => {
      rest.wire?.()
      for (const [table, rows] of Object.entries(work.rows)) {
        for (const row of rows) held.get(table)!.set(row.id, row)
        inputs[table]!.sendData(new ivm.MultiSet(rows.map((row) => [entry(row), 1])))
      }
      graph.run()
    },
    register: () => undefined,
    prepare: ({ table, before, after }) => ({
      input: inputs[table]!,
      rows: held.get(table)!,
      id: (after ?? before)!.id,
      after
    }),
    apply: (change) => {
      const { input, rows, id, after } = change as {
        readonly input: Input
        readonly rows: Map<number, Row>
        readonly id: number
        readonly after: Row | undefined
      }
      const batch: Array<unknown> = []
      const before = rows.get(id)
      if (before !== undefined) batch.push([entry(before), -1])
      if (after === undefined) rows.delete(id)
      else {
        rows.set(id, after)
        batch.push([entry(after), 1])
      }
      input.sendData(new ivm.MultiSet(batch))
      graph.run()
    },
    result: rest.result,
    plan: () => rest.plan
  }
}

/** Views are data like the posts: a join by author finds the views of a row and brings a new view its rows. */
const byAuthorShared = (work: Workload, ivm: DbIvm, windowed: boolean): Program => {
  const graph = new ivm.D2()
  const [post, wanted] = [graph.newInput(), graph.newInput()]
  const views: ReadonlyArray<Kept> = Array.from({ length: work.views }, (): Kept => new Map())
  const rows = windowed
    ? post.pipe(
        ivm.groupedTopKWithFractionalIndex(newestFirst, {
          limit: 10,
          groupKeyFn: (_: number, row: Row) => row["author"]
        }),
        ivm.map<readonly [number, readonly [Row, string]]>(([, [row]]) => [row["author"], row])
      )
    : post.pipe(ivm.map<readonly [number, Row]>(([, row]) => [row["author"], row]))
  rows.pipe(
    ivm.join(wanted, "inner"),
    listenNet<readonly [number, readonly [Row, number]]>(ivm, ([, [row, view]]) => [views[view]!, row.id, row])
  )
  graph.finalize()
  const rest = program(
    work,
    ivm,
    graph,
    { post },
    {
      keyed: true,
      plan: `${windowed ? "grouped top-k" : "posts"} joined with the views by author`,
      result: (view) => [...views[view]!.values()].sort(newestFirst)
    }
  )
  return {
    ...rest,
    register: () => {
      wanted.sendData(new ivm.MultiSet(views.map((_, view) => [[view, view], 1])))
      graph.run()
    }
  }
}

const byAuthorEach = (work: Workload, ivm: DbIvm, windowed: boolean): Program => {
  const graph = new ivm.D2()
  const post = graph.newInput()
  const views: Array<Kept> = []
  return program(
    work,
    ivm,
    graph,
    { post },
    {
      keyed: true,
      plan: `a ${windowed ? "filter and a top-k" : "filter"} per view`,
      wire: () => {
        for (let view = 0; view < work.views; view++) {
          const kept: Kept = new Map()
          views.push(kept)
          const own = post.pipe(ivm.filter<readonly [number, Row]>(([, row]) => row["author"] === view))
          if (windowed)
            own.pipe(
              ivm.topKWithFractionalIndex(newestFirst, { limit: 10 }),
              listenNet<readonly [number, readonly [Row, string]]>(ivm, ([, [row]]) => [kept, row.id, row])
            )
          else own.pipe(listen<readonly [number, Row]>(ivm, ([, row]) => [kept, row.id, row]))
        }
        graph.finalize()
      },
      result: (view) => [...views[view]!.values()].sort(newestFirst)
    }
  )
}

const filtered = (work: Workload, ivm: DbIvm): Program => {
  const graph = new ivm.D2()
  const post = graph.newInput()
  const kept: Kept = new Map()
  post.pipe(
    ivm.filter(matches),
    listen<Row>(ivm, (row) => [kept, row.id, row])
  )
  graph.finalize()
  return program(work, ivm, graph, { post }, { keyed: false, plan: "filter, output", result: () => [...kept.values()] })
}

const newest = (work: Workload, ivm: DbIvm): Program => {
  const graph = new ivm.D2()
  const post = graph.newInput()
  const kept: Kept = new Map()
  post.pipe(
    ivm.filter<readonly [number, Row]>(([, row]) => row["published"] === true),
    ivm.topKWithFractionalIndex(newestFirst, { limit: 20 }),
    listenNet<readonly [number, readonly [Row, string]]>(ivm, ([, [row]]) => [kept, row.id, row])
  )
  graph.finalize()
  return program(
    work,
    ivm,
    graph,
    { post },
    { keyed: true, plan: "filter, top-k with fractional index", result: () => [...kept.values()].sort(newestFirst) }
  )
}

const groups = (work: Workload, ivm: DbIvm): Program => {
  const graph = new ivm.D2()
  const sale = graph.newInput()
  const kept = new Map<string, { readonly category: string; readonly n: number; readonly total: number }>()
  sale.pipe(
    ivm.groupBy<Row>((row) => ({ category: row["category"] }), {
      n: ivm.groupByOperators.count(),
      total: ivm.groupByOperators.sum<Row>((row) => row["amount"] as number)
    }),
    listen<readonly [string, { readonly category: string; readonly n: number; readonly total: number }]>(
      ivm,
      ([key, group]) => [kept, key, group]
    )
  )
  graph.finalize()
  return program(
    work,
    ivm,
    graph,
    { sale },
    {
      keyed: false,
      plan: "groupBy with count and sum",
      result: () => [...kept.values()].map(({ category, n, total }) => ({ category, n, total }))
    }
  )
}

/**
 * Threads (of W4b and W4c the ten newest) joined with their user, and a top ten per thread; the listener puts the two together
 * by thread.
 */
const nested = (work: Workload, ivm: DbIvm): Program => {
  const graph = new ivm.D2()
  const [user, thread, comment] = [graph.newInput(), graph.newInput(), graph.newInput()]
  const heads = new Map<number, { readonly thread: Row; readonly writer: Row }>()
  const newestOf = new Map<number, Kept>()
  const isTop = work.name === "W4b" || work.name === "W4c"
  const second = ivm.map<readonly [number, Row]>(([, row]) => [row["author"], row])
  const shown = isTop
    ? thread.pipe(
        ivm.topKWithFractionalIndex(newestFirst, { limit: 10 }),
        ivm.map<readonly [number, readonly [Row, string]]>(([, [row]]) => [row["author"], row])
      )
    : thread.pipe(second)
  shown.pipe(
    ivm.join(user, "inner"),
    ivm.consolidate(),
    listenNet<readonly [number, readonly [Row, Row]]>(ivm, ([, [row, writer]]) => [
      heads,
      row.id,
      { thread: row, writer }
    ])
  )
  comment.pipe(
    ivm.groupedTopKWithFractionalIndex(newestFirst, { limit: 10, groupKeyFn: (_: number, row: Row) => row["thread"] }),
    listenNet<readonly [number, readonly [Row, string]]>(ivm, ([, [row]]) => {
      let kept = newestOf.get(row["thread"] as number)
      if (kept === undefined) newestOf.set(row["thread"] as number, (kept = new Map()))
      return [kept, row.id, row]
    })
  )
  graph.finalize()
  return program(
    work,
    ivm,
    graph,
    { user, thread, comment },
    {
      keyed: true,
      plan: "join and grouped top-k, put together by the listener",
      result: () => {
        const shown = [...heads.values()]
        if (isTop) shown.sort((a, b) => newestFirst(a.thread, b.thread))
        return shown.map(({ thread: row, writer }) => ({
          ...row,
          writer: [writer],
          comments: [...(newestOf.get(row.id)?.values() ?? [])].sort(newestFirst)
        }))
      }
    }
  )
}

const wired: { readonly [name in WorkloadName]?: (work: Workload, ivm: DbIvm) => Program } = {
  W2: filtered,
  W3: newest,
  W4: nested,
  W4b: nested,
  W4c: nested,
  W6: groups
}

export const shared: Peer = async (work) => {
  const ivm = await open()
  if (work.name === "W1" || work.name === "W7") return byAuthorShared(work, ivm, work.name === "W7")
  const wire = wired[work.name]
  return wire?.(work, ivm)
}

export const each: Peer = async (work) =>
  work.name === "W1" || work.name === "W7" ? byAuthorEach(work, await open(), work.name === "W7") : undefined
