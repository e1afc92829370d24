/**
 * Measures pulls and commits of the replica on disk, in this process, round by round beside a plain SQLite table with
 * the same records.
 *
 * In one process and without HTTP, because what is asked is the cost of the replica and of the executor; both sides end
 * with the text of an answer. Started by `replica.ts`, which points the imports of `src` at `dist`.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as Encode from "../../src/core/surql/values/encode.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../../src/core/surql/values/value.ts"
import { layerTurn } from "../../src/host/process/turn.ts"
import { layerReplica } from "../../src/host/sqlite/ReplicaFile.ts"
import { Replica, type ReplicaRecord } from "../../src/ports/Replica.ts"
import { exactType } from "../../src/protocol/wire.ts"
import { ProxyQuery, type Query } from "../../src/scheduler/replica/ProxyQuery.ts"

interface Statement {
  readonly run: (...params: ReadonlyArray<unknown>) => unknown
  readonly all: (...params: ReadonlyArray<unknown>) => ReadonlyArray<{ readonly id: string }>
}

interface Driver {
  readonly prepare: (sql: string) => Statement
  readonly exec: (sql: string) => void
  readonly close: () => void
}

const count = Number(process.argv.at(-1))
const chunk = 1_000
const rounds = 5
const folder = mkdtempSync(join(tmpdir(), "svc-bench-replica-"))
const require = createRequire(join(process.cwd(), "node_modules/@effect/sql-sqlite-node/package.json"))
const Sqlite = require("better-sqlite3") as new (file: string) => Driver

interface Post {
  readonly author: string
  readonly title: string
  readonly likes: number
  readonly body: string
  readonly draft: boolean
}

const post = (i: number, turn = 0): Post => ({
  author: `user:${(i * 7919) % 1_000}`,
  title: `Post number ${i}`,
  likes: i + turn,
  body: "Lorem ipsum dolor sit amet, consectetur adipiscing elit. ".repeat(2),
  draft: i % 3 === 0
})

const key = (i: number): string => `k${String(i).padStart(9, "0")}`
const id = (i: number): RecordId => Ids.make("post", key(i))
const record = (i: number, version: number): ReplicaRecord => ({
  id: id(i),
  version,
  doc: { ...post(i, version), id: id(i) }
})

const plainTable = (): Driver => {
  const db = new Sqlite(join(folder, "plain.db"))
  db.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE post (id TEXT PRIMARY KEY, author TEXT, title TEXT, likes INTEGER, body TEXT, draft INTEGER, version INTEGER) WITHOUT ROWID"
  )
  const insert = db.prepare("INSERT INTO post VALUES (?, ?, ?, ?, ?, ?, 1)")
  for (let i = 0; i < count; i += chunk) {
    db.exec("BEGIN")
    for (let k = i; k < Math.min(count, i + chunk); k++) {
      const { author, body, draft, likes, title } = post(k)
      insert.run(`post:${key(k)}`, author, title, likes, body, draft ? 1 : 0)
    }
    db.exec("COMMIT")
  }
  return db
}

interface Cost {
  readonly cpu: number
  readonly wall: number
}

const measured = (records: number, body: () => Promise<void>) => async (): Promise<Cost> => {
  const before = process.cpuUsage(),
    start = process.hrtime.bigint()
  await body()
  const { system, user } = process.cpuUsage(before)
  return { cpu: (user + system) / records, wall: Number(process.hrtime.bigint() - start) / 1_000 / records }
}

const readPlain = (db: Driver) => {
  const page = db.prepare("SELECT * FROM post WHERE id > ? ORDER BY id LIMIT ?")
  return measured(count, async () => {
    let seen = 0
    for (let last = ""; ; ) {
      const rows = page.all(last, chunk)
      seen += JSON.stringify(rows).length > 0 ? rows.length : 0
      // As a server would: others have their turn between two pages.
      await new Promise((done) => setImmediate(done))
      if (rows.length < chunk) break
      last = rows.at(-1)!.id
    }
    if (seen !== count) throw new Error(`read ${seen} of ${count}`)
  })
}

type Run = ProxyQuery["Type"]["run"]

const sent = async (run: Run, query: Query): Promise<string> => {
  const { body } = await Effect.runPromise(Effect.scoped(run(query)))
  return Buffer.concat(body).toString("utf8")
}

/**
 * By range or by bound id; the last id is taken from the records' own order, so that reading the answer is no part of
 * it.
 */
const pull = (run: Run, exact: boolean, query: (last: RecordId | undefined) => string) =>
  measured(count, async () => {
    for (let at = 0; at < count; at += chunk) {
      const last = at === 0 ? undefined : id(at - 1)
      const params =
        exact && last !== undefined
          ? (JSON.parse(Encode.encode({ last })) as { readonly [name: string]: unknown })
          : undefined
      const body = await sent(run, { query: query(last), params, accept: exact ? exactType : undefined })
      if (body.length < 100 || !body.includes(key(Math.min(count, at + chunk) - 1)))
        throw new Error("a chunk is missing")
    }
  })

const commits = (replica: Replica["Type"], total: number, size: number, pick: (n: number) => number, version: number) =>
  measured(total, async () => {
    for (let at = 0; at < total; at += size) {
      const records = Array.from({ length: Math.min(size, total - at) }, (_, n) => record(pick(at + n), version))
      await Effect.runPromise(
        Effect.zipRight(replica.current(records.map((each) => each.id)), replica.commit({ records, through: version }))
      )
    }
  })

const race = async (contenders: ReadonlyArray<readonly [string, () => Promise<Cost>]>) => {
  const figures = contenders.map(([name]) => ({ name, figures: [] as Array<number>, wallMicros: [] as Array<number> }))
  for (let round = -1; round < rounds; round++) {
    for (const [i, [, body]] of contenders.entries()) {
      const { cpu, wall } = await body()
      if (round < 0) continue
      figures[i]!.figures.push(cpu)
      figures[i]!.wallMicros.push(wall)
    }
  }
  return figures
}

const program = Effect.gen(function* () {
  const replica = yield* Replica
  const { run } = yield* ProxyQuery
  const db = plainTable()
  const clone = yield* Effect.promise(commits(replica, count, chunk, (n) => n, 1))
  yield* replica.freeze(1)
  const decoded = async (): Promise<Cost> => {
    const body = await sent(run, { query: `SELECT * FROM post LIMIT ${chunk}`, params: undefined, accept: exactType })
    return measured(chunk, async () => void (Encode.decode(body) as ReadonlyArray<Obj>).length)()
  }
  const [plain, ...pulls] = yield* Effect.promise(() =>
    race([
      ["plain SQLite table in chunks + JSON.stringify", readPlain(db)],
      [
        "SELECT * .. WHERE id > $last ORDER BY id LIMIT 1000, exact",
        pull(run, true, (last) =>
          last === undefined
            ? `SELECT * FROM post ORDER BY id LIMIT ${chunk}`
            : `SELECT * FROM post WHERE id > $last ORDER BY id LIMIT ${chunk}`
        )
      ],
      [
        "SELECT * FROM post:last>.. LIMIT 1000, plain",
        pull(run, false, (last) =>
          last === undefined ? `SELECT * FROM post LIMIT ${chunk}` : `SELECT * FROM ${last.text}>.. LIMIT ${chunk}`
        )
      ],
      ["reading an exact answer (Encode.decode)", decoded]
    ])
  )
  yield* replica.thaw(1)
  const total = 32_000
  let version = 2
  const random = (n: number): number => (Math.imul(n + version * 7, 2_654_435_761) >>> 0) % count
  const written = yield* Effect.promise(() =>
    race([
      [
        "commit of 64 changed records anywhere, versions looked up",
        () => commits(replica, total, 64, random, version++)()
      ],
      [
        "commit of 64 changed records among 1,000, versions looked up",
        () => commits(replica, total, 64, (n) => n % 1_000, version++)()
      ]
    ])
  )
  db.close()
  return {
    plain,
    pulls: pulls.slice(0, 2),
    commits: [
      { name: "clone: commit of 1,000 new records in key order", figures: [clone.cpu], wallMicros: [clone.wall] },
      ...written,
      pulls[2]
    ]
  }
})

const layer = ProxyQuery.layer({
  queryBytes: 67_108_864,
  queryBytesTotal: 0,
  queryRows: 100_000,
  querySteps: 100_000_000,
  rowSteps: 1_000_000
}).pipe(Layer.provide(layerTurn), Layer.provideMerge(layerReplica(join(folder, "replica"))))

try {
  console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, layer))))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
