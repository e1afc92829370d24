/**
 * The workloads W1-W10: data, change histories and plain answers, all from one seed.
 *
 * Why generated whole before anything runs: every peer must see the same history, and none may pay for making it. The
 * work per change is the same at every size of a workload; only what surrounds it grows: the views in W1, W7 and
 * W8 to W10, the rows in the others. W5 (load and registration) is read off the set-up of the others.
 */
import { Dice, Drawn, grouped, Newest, newestFirst, type Sizes } from "./history.ts"
import { w8, w9, w10 } from "./pageWorkloads.ts"
import type { Answer, Change, Row, Workload, WorkloadName } from "./program.ts"

const post = (dice: Dice, authors: number, created: number): Omit<Row, "id"> => ({
  author: dice.below(authors),
  title: `Post number ${dice.below(1_000_000)}`,
  body: "x".repeat(40),
  likes: dice.below(100),
  published: dice.below(2) === 0,
  created_at: created
})

/** `count` posts; `created_at` is unique (7919 is prime to every size), in no relation to the id. */
const posts = (
  dice: Dice,
  count: number,
  authors: number,
  author: (id: number) => number = () => dice.below(authors)
): ReadonlyArray<Row> =>
  Array.from(
    { length: count },
    (_, id) => ({ id, ...post(dice, authors, 1_000_000 + ((id * 7919) % count)), author: author(id) }) as Row
  )

const postTable = (rows: ReadonlyArray<Row>): Workload["tables"] => ({
  post: { refs: { author: "user" }, sample: rows[0]! }
})

/**
 * Fixed rows, more and more views: four content edits in ten changes, two moves to another author, two inserts, two
 * deletes.
 */
const w1 = (views: number, { rows: count, history }: Sizes): Workload => {
  const dice = new Dice(1)
  const rows = posts(dice, count, views)
  const changes: Array<Change> = []
  const table = new Drawn("post", rows, changes)
  for (let n = 0; n < history; n++) {
    const kind = n % 5
    if (kind < 2) table.update(table.any(dice), { title: `Edited ${n}` })
    else if (kind === 2) {
      const row = table.any(dice)
      table.update(row, { author: dice.other(views, row["author"] as number) })
    } else if (kind === 3) table.insert(post(dice, views, 5_000_000 + n))
    else table.remove(table.any(dice))
  }
  return {
    name: "W1",
    size: views,
    tables: postTable(rows),
    rows: { post: rows },
    views,
    changes,
    ordered: false,
    answer: (tables) => {
      const groups = grouped(tables["post"]!.values(), "author")
      return (view) => groups.get(view) ?? []
    }
  }
}

/** One filtered view over more and more rows: rows enter, leave, change inside and outside the filter. */
const w2 = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(2)
  const rows = posts(dice, size, 100)
  const changes: Array<Change> = []
  const table = new Drawn("post", rows, changes)
  for (let n = 0; n < history; n++) {
    const kind = n % 6
    if (kind === 0) table.update(table.any(dice), { title: `Edited ${n}` })
    else if (kind === 1) {
      const row = table.any(dice)
      table.update(row, { likes: dice.other(100, row["likes"] as number) })
    } else if (kind < 4) {
      const row = table.any(dice)
      table.update(row, { published: !row["published"] })
    } else if (kind === 4) table.insert(post(dice, 100, 5_000_000 + n))
    else table.remove(table.any(dice))
  }
  const matches = (row: Row): boolean => row["published"] === true && (row["likes"] as number) >= 50
  return {
    name: "W2",
    size,
    tables: postTable(rows),
    rows: { post: rows },
    views: 1,
    changes,
    ordered: false,
    answer: (tables) => () => [...tables["post"]!.values()].filter(matches)
  }
}

/**
 * The newest 20 published posts: three deletes and three inserts in ten hit the window, one falls out of it, three are
 * elsewhere.
 */
const w3 = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(3)
  const rows = posts(dice, size, 100)
  const changes: Array<Change> = []
  const table = new Drawn("post", rows, changes)
  const published = new Newest(rows.filter((row) => row["published"] === true))
  const inWindow = (): Row => published.at(dice.below(Math.min(20, published.size)))
  for (let n = 0; n < history; n++) {
    const kind = n % 10
    if (kind < 6 && kind % 2 === 0) {
      const row = inWindow()
      published.remove(row)
      table.remove(row)
    } else if (kind < 6) published.add(table.insert({ ...post(dice, 100, 5_000_000 + n), published: true }))
    else if (kind === 6) {
      const row = inWindow()
      published.remove(row)
      published.add(table.update(row, { created_at: -n }))
    } else {
      const row = table.any(dice)
      if (row["published"] === true) published.remove(row)
      const after = table.update(row, kind === 7 ? { title: `Edited ${n}` } : { published: kind === 8 })
      if (after["published"] === true) published.add(after)
    }
  }
  return {
    name: "W3",
    size,
    tables: postTable(rows),
    rows: { post: rows },
    views: 1,
    changes,
    ordered: true,
    answer: (tables) => () =>
      [...tables["post"]!.values()]
        .filter((row) => row["published"] === true)
        .sort(newestFirst)
        .slice(0, 20)
  }
}

interface Discussions {
  readonly users: number
  readonly threads: number
  readonly rows: {
    readonly user: ReadonlyArray<Row>
    readonly thread: ReadonlyArray<Row>
    readonly comment: ReadonlyArray<Row>
  }
  readonly changes: Array<Change>
  readonly drawn: { readonly user: Drawn; readonly thread: Drawn; readonly comment: Drawn }
  readonly tables: Workload["tables"]
}

/** Comments in a tenth as many threads, by a tenth as many users as threads; `dated`: threads have a `created_at` of their own. */
const discussions = (dice: Dice, size: number, dated: boolean): Discussions => {
  const [users, threads] = [Math.ceil(size / 100), Math.ceil(size / 10)]
  const user: ReadonlyArray<Row> = Array.from({ length: users }, (_, id) => ({ id, name: `User ${id}` }))
  const thread: ReadonlyArray<Row> = Array.from({ length: threads }, (_, id) => ({
    id,
    author: dice.below(users),
    title: `Thread ${id}`,
    ...(dated ? { created_at: 1_000_000 + ((id * 7919) % threads) } : {})
  }))
  const comment: ReadonlyArray<Row> = Array.from({ length: size }, (_, id) => ({
    id,
    thread: dice.below(threads),
    text: `Comment ${id}`,
    created_at: 1_000_000 + ((id * 7919) % size)
  }))
  const changes: Array<Change> = []
  return {
    users,
    threads,
    rows: { user, thread, comment },
    changes,
    drawn: {
      user: new Drawn("user", user, changes),
      thread: new Drawn("thread", thread, changes),
      comment: new Drawn("comment", comment, changes)
    },
    tables: {
      user: { refs: {}, sample: user[0]! },
      thread: { refs: { author: "user" }, sample: thread[0]! },
      comment: { refs: { thread: "thread" }, sample: comment[0]! }
    }
  }
}

/** Threads as they are shown: with their author and their ten newest comments. */
const shownThreads = (
  now: Parameters<Workload["answer"]>[0],
  choose: (threads: ReadonlyArray<Row>) => ReadonlyArray<Row>
): ReturnType<Workload["answer"]> => {
  const comments = grouped(now["comment"]!.values(), "thread")
  return () =>
    choose([...now["thread"]!.values()]).map((row) => ({
      ...row,
      writer: [now["user"]!.get(row["author"] as number)!],
      comments: (comments.get(row.id) ?? []).sort(newestFirst).slice(0, 10)
    }))
}

/**
 * Threads with their author and their ten newest comments: size counts comments; ten per thread, ten threads per user.
 */
const w4 = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(4)
  const { changes, drawn, rows, tables, threads, users } = discussions(dice, size, false)
  for (let n = 0; n < history; n++) {
    const kind = n % 10
    if (kind < 3) drawn.comment.insert({ thread: dice.below(threads), text: `New ${n}`, created_at: 5_000_000 + n })
    else if (kind < 6) drawn.comment.remove(drawn.comment.any(dice))
    else if (kind < 8) drawn.comment.update(drawn.comment.any(dice), { text: `Edited ${n}` })
    else if (kind === 8)
      drawn.thread.update(
        drawn.thread.any(dice),
        n % 20 < 10 ? { title: `Edited ${n}` } : { author: dice.below(users) }
      )
    else drawn.user.update(drawn.user.any(dice), { name: `Renamed ${n}` })
  }
  return {
    name: "W4",
    size,
    views: 1,
    changes,
    ordered: false,
    rows: { ...rows },
    tables,
    answer: (now) => shownThreads(now, (threads) => threads)
  }
}

/** As W4, but of the ten newest threads only. A tenth of the changes goes to them, one in a hundred is a new thread. */
const w4b = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(41)
  const { changes, drawn, rows, tables, threads, users } = discussions(dice, size, true)
  const newest = new Newest(rows.thread)
  for (let n = 0; n < history; n++) {
    const kind = n % 10
    const shown = dice.below(10) === 0
    const of = shown ? newest.at(dice.below(10)).id : dice.below(threads)
    if (kind < 3) drawn.comment.insert({ thread: of, text: `New ${n}`, created_at: 5_000_000 + n })
    else if (kind < 6) drawn.comment.remove(drawn.comment.any(dice))
    else if (kind < 8) drawn.comment.update(drawn.comment.any(dice), { text: `Edited ${n}` })
    else if (kind === 9) drawn.user.update(drawn.user.any(dice), { name: `Renamed ${n}` })
    else if (n % 100 === 8)
      newest.add(drawn.thread.insert({ author: dice.below(users), title: `Thread ${n}`, created_at: 5_000_000 + n }))
    else {
      const row = shown ? newest.at(dice.below(10)) : drawn.thread.any(dice)
      newest.remove(row)
      newest.add(drawn.thread.update(row, { title: `Edited ${n}` }))
    }
  }
  return {
    name: "W4b",
    size,
    views: 1,
    changes,
    ordered: true,
    rows: { ...rows },
    tables,
    answer: tenNewestThreads
  }
}

/**
 * The ten newest threads as in W4b, where threads come and go: nearly a tenth of the changes is a new thread, one in
 * thirty brings a thread to the front, and each of them has another one leave.
 */
const w4c = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(42)
  const { changes, drawn, rows, tables, threads, users } = discussions(dice, size, true)
  const newest = new Newest(rows.thread)
  const editThread = (n: number): void => {
    const kind = dice.below(20)
    if (kind < 5)
      newest.add(drawn.thread.insert({ author: dice.below(users), title: `Thread ${n}`, created_at: 5_000_000 + n }))
    else {
      const row = dice.below(10) === 0 ? newest.at(dice.below(10)) : drawn.thread.any(dice)
      newest.remove(row)
      newest.add(drawn.thread.update(row, kind < 7 ? { created_at: 5_000_000 + n } : { title: `Edited ${n}` }))
    }
  }
  for (let n = 0; n < history; n++) {
    // Kinds take turns: 7 is prime to 20.
    const kind = (n * 7) % 20
    if (kind < 3) drawn.user.update(drawn.user.any(dice), { name: `Renamed ${n}` })
    else if (kind < 10) editThread(n)
    else if (kind < 14) {
      const thread = dice.below(10) === 0 ? newest.at(dice.below(10)).id : dice.below(threads)
      drawn.comment.insert({ thread, text: `New ${n}`, created_at: 5_000_000 + n })
    } else if (kind < 17) drawn.comment.remove(drawn.comment.any(dice))
    else drawn.comment.update(drawn.comment.any(dice), { text: `Edited ${n}` })
  }
  return {
    name: "W4c",
    size,
    views: 1,
    changes,
    ordered: true,
    rows: { ...rows },
    tables,
    answer: tenNewestThreads
  }
}

const tenNewestThreads: Workload["answer"] = (now) =>
  shownThreads(now, (threads) => [...threads].sort(newestFirst).slice(0, 10))

/** Count and sum of 100 groups over more and more rows. */
const w6 = (size: number, { history }: Sizes): Workload => {
  const dice = new Dice(6)
  const sale = (): Omit<Row, "id"> => ({
    category: `c${dice.below(100)}`,
    amount: dice.below(1000),
    note: "x".repeat(20)
  })
  const rows = Array.from({ length: size }, (_, id) => ({ id, ...sale() }) as Row)
  const changes: Array<Change> = []
  const table = new Drawn("sale", rows, changes)
  for (let n = 0; n < history; n++) {
    const kind = n % 5
    const row = table.any(dice)
    if (kind < 2) table.update(row, { amount: dice.other(1000, row["amount"] as number) })
    else if (kind === 2)
      table.update(row, { category: `c${dice.other(100, Number(String(row["category"]).slice(1)))}` })
    else if (kind === 3) table.insert(sale())
    else table.remove(row)
  }
  return {
    name: "W6",
    size,
    tables: { sale: { refs: {}, sample: rows[0]! } },
    rows: { sale: rows },
    views: 1,
    changes,
    ordered: false,
    answer: (tables) => () =>
      [...grouped(tables["sale"]!.values(), "category")].map(([category, group]) => ({
        category,
        n: group.length,
        total: group.reduce((sum, row) => sum + (row["amount"] as number), 0)
      }))
  }
}

/**
 * Fixed rows, more and more windows over them: three changes in four go to the top ten of an author, the fourth brings
 * any row there.
 */
const w7 = (views: number, { history, rows: count }: Sizes): Workload => {
  const dice = new Dice(7)
  const rows = posts(dice, count, views, (id) => id % views)
  const changes: Array<Change> = []
  const table = new Drawn("post", rows, changes)
  const windows = new Map([...grouped(rows, "author")].map(([author, own]) => [author as number, new Newest(own)]))
  for (let n = 0; n < history; n++) {
    const kind = n % 4
    const author = dice.below(views)
    const own = windows.get(author)!
    if (kind === 0 || own.size === 0) own.add(table.insert({ ...post(dice, views, 5_000_000 + n), author }))
    else if (kind === 1) {
      const row = own.at(dice.below(Math.min(10, own.size)))
      own.remove(row)
      table.remove(row)
    } else {
      const row = kind === 2 ? own.at(dice.below(Math.min(10, own.size))) : table.any(dice)
      const from = windows.get(row["author"] as number)!
      from.remove(row)
      const after = table.update(row, kind === 2 ? { title: `Edited ${n}` } : { created_at: 5_000_000 + n })
      from.add(after)
    }
  }
  return {
    name: "W7",
    size: views,
    tables: postTable(rows),
    rows: { post: rows },
    views,
    changes,
    ordered: true,
    answer: (tables) => {
      const groups = grouped(tables["post"]!.values(), "author")
      return (view) => (groups.get(view) ?? []).sort(newestFirst).slice(0, 10)
    }
  }
}

const makers: { readonly [name in WorkloadName]: (size: number, sizes: Sizes) => Workload } = {
  W1: w1,
  W2: w2,
  W3: w3,
  W4: w4,
  W4b: w4b,
  W4c: w4c,
  W6: w6,
  W7: w7,
  W8: w8,
  W9: w9,
  W10: w10
}

export const workload = (name: WorkloadName, size: number, sizes: Sizes): Workload => makers[name](size, sizes)

/** The tables after the first `count` changes. */
export const after = (work: Workload, count: number): { readonly [table: string]: ReadonlyMap<number, Row> } => {
  const tables: { [table: string]: Map<number, Row> } = {}
  for (const [table, rows] of Object.entries(work.rows)) tables[table] = new Map(rows.map((row) => [row.id, row]))
  for (const change of work.changes.slice(0, count)) {
    if (change.after === undefined) tables[change.table]!.delete(change.before!.id)
    else tables[change.table]!.set(change.after.id, change.after)
  }
  return tables
}

/** One text per result: keys sorted, rows sorted where their order is no part of the answer. */
export const canonical = (answer: Answer, ordered: boolean): string => {
  const texts = answer.map((row) => JSON.stringify(plain(row)))
  return (ordered ? texts : texts.sort()).join("\n")
}

const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => [key, plain(field)])
  )
}
