/**
 * `Replica` in a SQLite file: one connection that writes, and one for each frozen state.
 *
 * A frozen state is a read transaction in WAL mode: it costs nothing, and commits go on beside it; SQLite's own log
 * grows meanwhile, which is why freezes have deadlines. Commits are not flushed one by one: the scheduler's log
 * survives a power cut, and the position is part of each commit, so lost commits are replayed. `sync` flushes. For the
 * same reason a few records may wait in memory: written together they cost a fraction, and no answer waits for it; a
 * read writes them first. Records lie in key order, deleted ones apart, so that reading a table in chunks reads each
 * page once. The Merkle bucket of a record is found when buckets are read, because hashing costs more than writing.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Scope } from "effect"
import { bucketOf } from "../core/integrity/merkle.ts"
import * as Layout from "../core/storeLayout.ts"
import * as Encode from "../core/surql/values/encode.ts"
import { keyText } from "../core/surql/values/keyText.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import type { RecordId, RecordKey } from "../core/surql/values/value.ts"
import { recordOfRow } from "../node/database/replicaRecord.ts"
import { ReplicaError, type ReplicaRecord, type ReplicaShape } from "../ports/Replica.ts"
import { originalText, storedText } from "./shared/keptText.ts"
import { RecentRecords } from "./shared/recentRecords.ts"
import { chunkOf, type StateReader, snapshotOf, storedRecord } from "./shared/replicaRows.ts"
import { type Cell, failure, type Link, link, type Statement } from "./shared/sqliteLink.ts"
import * as Reads from "./sqliteStateReader.ts"

/** Opens another connection to the same file. */
export type Open = Effect.Effect<SqlClient.SqlClient, ReplicaError, Scope.Scope>

/**
 * Rewrites the texts of array and object keys, whose form has changed since layout 1; `keyOf` finds the key of a row.
 */
const rewritten = (table: "record" | "tombstone", keyOf: (row: ReadonlyArray<Cell>) => RecordKey | undefined) =>
  function* ({ all }: Link): Iterable<Statement> {
    const id = table === "record" ? "id" : "NULL"
    for (const row of all(`SELECT tbl, key, ${id} FROM ${table} WHERE key >= '3'`)) {
      const key = keyOf(row),
        text = key === undefined ? row[1]! : keyText(key)
      if (text !== row[1]) yield [`UPDATE ${table} SET key = ? WHERE tbl = ? AND key = ?`, [text, row[0]!, row[1]!]]
    }
  }

/** Decodes the key of a text, which ends with the whole key as JSON. */
const keyAtEnd = ([, text]: ReadonlyArray<Cell>): RecordKey | undefined => {
  const whole = String(text)
  for (let at = 0; at < whole.length; at++) {
    if (whole[at] !== "[" && whole[at] !== "{") continue
    try {
      return Encode.decode(whole.slice(at)) as RecordKey
    } catch {
      // No JSON begins here.
    }
  }
  return undefined
}

type Step = (link: Link) => Iterable<Statement>

const making =
  (statements: ReadonlyArray<string>): Step =>
  () =>
    statements.map((sql): Statement => [sql])

/**
 * Steps from each layout of the file to the next, starting with an empty file; `user_version` holds the number of the
 * layout.
 */
const layouts: ReadonlyArray<ReadonlyArray<Step>> = [
  [
    making([
      `CREATE TABLE record (tbl TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, source TEXT, target TEXT, bucket INTEGER, content TEXT NOT NULL,
    PRIMARY KEY (tbl, key)) WITHOUT ROWID`,
      "CREATE INDEX record_bucket ON record (tbl, bucket)",
      "CREATE INDEX record_source ON record (source, tbl, key) WHERE source IS NOT NULL",
      "CREATE INDEX record_target ON record (target, tbl, key) WHERE target IS NOT NULL",
      "CREATE TABLE tombstone (tbl TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (tbl, key)) WITHOUT ROWID",
      "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
    ])
  ],
  [rewritten("record", ([, , id]) => Ids.parse(originalText(String(id)))?.key), rewritten("tombstone", keyAtEnd)]
]

/** Newest layout that this version knows. */
export const layout = layouts.length

const prepare = (link: Link): void => {
  const { all, write } = link
  for (const pragma of ["busy_timeout = 0", "synchronous = NORMAL", "cache_size = -65536"]) all(`PRAGMA ${pragma}`)
  const version = Number(all("PRAGMA user_version")[0]?.[0] ?? 0)
  const unusable = Layout.layoutFault(version, layout) ?? Layout.integrityFault(all("PRAGMA quick_check(1)")[0]?.[0])
  if (unusable !== undefined) throw new ReplicaError(unusable)
  if (version === layout) return
  for (let from = version; from < layout; from++)
    write([...layouts[from]!.flatMap((step) => [...step(link)]), [`PRAGMA user_version = ${from + 1}`]])
}

/** Rows are bound in statements of few sizes, which stay prepared. */
const sizes = [64, 16, 4, 1] as const

const inParts = <A, B>(rows: ReadonlyArray<A>, make: (part: ReadonlyArray<A>, size: number) => B): ReadonlyArray<B> => {
  const made: Array<B> = []
  for (let at = 0; at < rows.length; ) {
    const size = sizes.find((each) => each <= rows.length - at)!
    made.push(make(rows.slice(at, at + size), size))
    at += size
  }
  return made
}

const repeated = (make: (marks: string) => string, columns: number): { readonly [size: number]: string } => {
  const one = `(${Array(columns).fill("?").join(",")})`
  return Object.fromEntries(sizes.map((size) => [size, make(Array(size).fill(one).join(","))]))
}

const puts = repeated(
  (marks) => `INSERT INTO record (tbl, key, id, version, source, target, content) VALUES ${marks}
  ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version, source = excluded.source, target = excluded.target, content = excluded.content`,
  7
)
const buries = repeated(
  (marks) =>
    `INSERT INTO tombstone (tbl, key, version) VALUES ${marks} ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version`,
  3
)
const removals = repeated((marks) => `DELETE FROM record WHERE (tbl, key) IN (VALUES ${marks})`, 2)
/** Reads live and deleted records: a record that was created again has a tombstone too. */
const lookups = repeated(
  (marks) => `WITH wanted(t, k) AS (VALUES ${marks})
  SELECT t, k, version, id, content FROM wanted JOIN record ON tbl = t AND key = k UNION ALL SELECT t, k, version, NULL, NULL FROM wanted JOIN tombstone ON tbl = t AND key = k`,
  2
)

const putMeta = (name: "applied" | "whole" | "tables" | "synced", value: string): Statement => [
  "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  [name, value]
]

const writeAll = (link: Link, recent: RecentRecords, records: ReadonlyArray<ReplicaRecord>, through: number): void => {
  const last = new Map(records.map((record) => [record.id.text, record]))
  const alive: Array<ReadonlyArray<Cell>> = [],
    dead: Array<ReadonlyArray<Cell>> = []
  const chars: Array<number> = []
  for (const { doc, id, version } of last.values()) {
    if (doc === undefined) {
      dead.push([storedText(id.table), keyText(id.key), version])
      chars.push(0)
    } else {
      const row = storedRecord(id, version, doc)
      chars.push(row.content.length)
      alive.push([
        storedText(row.table),
        row.key,
        storedText(row.id),
        version,
        row.source === undefined ? null : storedText(row.source),
        row.target === undefined ? null : storedText(row.target),
        row.content
      ])
    }
  }
  link.write([
    ...inParts(alive, (part, size): Statement => [puts[size]!, part.flat()]),
    ...inParts(dead, (part, size): Statement => [removals[size]!, part.flatMap(([table, key]) => [table!, key!])]),
    ...inParts(dead, (part, size): Statement => [buries[size]!, part.flat()]),
    putMeta("applied", String(through))
  ])
  let at = 0
  for (const record of last.values()) recent.renew(record, chars[at++]!)
}

const current = (
  link: Link,
  known: (id: string) => ReplicaRecord | undefined,
  recent: RecentRecords,
  ids: ReadonlyArray<RecordId>
): ReadonlyMap<string, ReplicaRecord> => {
  const found = new Map<string, ReplicaRecord>()
  const wanted = new Map<string, { readonly id: RecordId; readonly place: readonly [string, string] }>()
  for (const id of ids) {
    const held = known(id.text)
    if (held === undefined) wanted.set(id.text, { id, place: [storedText(id.table), keyText(id.key)] })
    else found.set(id.text, held)
  }
  if (wanted.size === 0) return found
  const byPlace = new Map(Array.from(wanted.values(), ({ id, place }) => [place.join("\u0000"), id]))
  const graves: Array<ReplicaRecord> = []
  for (const [table, key, version, id, content] of inParts([...wanted.values()], (part, size) =>
    link.all(
      lookups[size]!,
      part.flatMap(({ place }) => place)
    )
  ).flat()) {
    if (content === null)
      graves.push({ id: byPlace.get(`${table}\u0000${key}`)!, version: Number(version), doc: undefined })
    else {
      const record = recordOfRow({ id: originalText(String(id)), version: Number(version), content: String(content) })
      found.set(record.id.text, record)
      recent.put(record, String(content).length)
    }
  }
  for (const grave of graves) if (!found.has(grave.id.text)) found.set(grave.id.text, grave)
  return found
}

const hashedAtOnce = 256

/**
 * Computes the buckets of some records that have none yet; false if there were none. The planner takes any index that
 * begins with the table for as good, so the query names its index.
 */
const hashSome = ({ all, write }: Link, table: string): boolean => {
  const rows = all("SELECT key, id FROM record INDEXED BY record_bucket WHERE tbl = ? AND bucket IS NULL LIMIT ?", [
    storedText(table),
    hashedAtOnce
  ])
  if (rows.length === 0) return false
  write(
    rows.map(([key, id]) => [
      "UPDATE record SET bucket = ? WHERE tbl = ? AND key = ?",
      [bucketOf(originalText(String(id))), storedText(table), key!]
    ])
  )
  return true
}

const inBucket = ({ all }: Link, table: string, index: number): ReadonlyArray<ReplicaRecord> =>
  all("SELECT id, version, content FROM record INDEXED BY record_bucket WHERE tbl = ? AND bucket = ? ORDER BY key", [
    storedText(table),
    index
  ]).map(([id, version, content]) =>
    recordOfRow({ id: originalText(String(id)), version: Number(version), content: String(content) })
  )

/**
 * Flushes: a commit in full mode flushes the log of all commits before it. Answers whether the file alone, without
 * SQLite's log, holds everything.
 */
const flush = (link: Link, inUse: boolean): boolean => {
  link.all("PRAGMA synchronous = FULL")
  try {
    link.write([putMeta("synced", String(Reads.appliedOf(link)))])
  } finally {
    link.all("PRAGMA synchronous = NORMAL")
  }
  return link.all(`PRAGMA wal_checkpoint(${inUse ? "PASSIVE" : "TRUNCATE"})`)[0]?.[0] === 0 && !inUse
}

/** A frozen state and its number of readers. */
interface Held {
  readonly link: Link
  readonly stateReader: StateReader
  users: number
}

/** The frozen states. Free connections stay open, because opening one costs more than most reads. */
type States = ReturnType<typeof makeStates>

const makeStates = (open: Effect.Effect<Link, ReplicaError>) => {
  const free: Array<Link> = []
  const frozen = new Map<number, Held>()
  let inUse = 0
  let closed = false
  /** `before` runs in the same turn, right before the state is frozen. */
  const holdAfter = (before: () => void): Effect.Effect<Held, ReplicaError> =>
    Effect.suspend(() => {
      const idle = free.pop()
      return idle === undefined ? open : Effect.succeed(idle)
    }).pipe(
      Effect.flatMap((reader) =>
        attempt(() => {
          try {
            before()
          } catch (error) {
            free.push(reader)
            throw error
          }
          reader.all("BEGIN")
          inUse++
          // The first read freezes the state.
          return { link: reader, stateReader: Reads.stateReader(reader), users: 1 }
        })
      )
    )
  const letGo = (held: Held): void => {
    if (--held.users > 0 || closed) return
    inUse--
    held.link.all("ROLLBACK")
    free.push(held.link)
  }
  return {
    frozen,
    hold: holdAfter(() => {}),
    holdAfter,
    letGo,
    inUse: () => inUse > 0,
    newest: () => [...frozen.values()].at(-1),
    close: () => void (closed = true)
  }
}

const recentRecords = 20_000
const recentChars = 32_000_000
/** Most records that wait to be written. */
const maxUnwritten = 500

const attempt = <A>(body: () => A): Effect.Effect<A, ReplicaError> => Effect.try({ try: body, catch: failure })

/** Committed records, written or not: their position, the latest of them, and their way into the file. */
class Committed {
  private readonly recent = new RecentRecords(recentRecords, recentChars)
  private readonly unwritten = new Map<string, ReplicaRecord>()
  applied: number
  private written: number
  private isFailing = false

  constructor(private readonly writer: Link) {
    this.applied = this.written = Reads.appliedOf(writer)
  }

  current(ids: ReadonlyArray<RecordId>): ReadonlyMap<string, ReplicaRecord> {
    return current(this.writer, (id) => this.unwritten.get(id) ?? this.recent.get(id), this.recent, ids)
  }

  take(records: ReadonlyArray<ReplicaRecord>, through: number): void {
    if (through < this.applied) return
    if (this.isFailing || this.unwritten.size + records.length > maxUnwritten) this.catchUp()
    if (records.length > maxUnwritten) {
      writeAll(this.writer, this.recent, records, through)
      this.written = through
    } else for (const record of records) this.unwritten.set(record.id.text, record)
    this.applied = through
  }

  catchUp(): void {
    if (this.unwritten.size === 0 && this.written === this.applied) return
    // Still set if the next line throws: then no record is taken until a write has worked.
    this.isFailing = true
    writeAll(this.writer, this.recent, [...this.unwritten.values()], this.applied)
    this.isFailing = false
    this.unwritten.clear()
    this.written = this.applied
  }

  clear(): void {
    this.writer.write(["record", "tombstone", "meta"].map((table) => [`DELETE FROM ${table}`]))
    this.applied = this.written = 0
    this.unwritten.clear()
    this.recent.clear()
  }
}

const shapeOf = (writer: Link, states: States): ReplicaShape => {
  const now = Reads.stateReader(writer)
  const committed = new Committed(writer)
  const catchUp = attempt(() => committed.catchUp())
  /** Writes waiting records, then runs work that reads the file or reports its content. */
  const upToDate = <A>(body: () => A): Effect.Effect<A, ReplicaError> =>
    attempt(() => {
      committed.catchUp()
      return body()
    })
  const hold = Effect.zipRight(catchUp, states.hold)
  return {
    applied: Effect.sync(() => committed.applied),
    current: (ids) => attempt(() => committed.current(ids)),
    commit: ({ records, through }) => attempt(() => committed.take(records, through)),
    catchUp,
    sync: upToDate(() => void flush(writer, states.inUse())),
    freeze: (id) =>
      Effect.suspend(() => {
        const held = states.frozen.get(id)
        if (held !== undefined) return Effect.succeed(held.stateReader.seq)
        return Effect.uninterruptible(
          Effect.map(hold, (fresh) => {
            states.frozen.set(id, fresh)
            return fresh.stateReader.seq
          })
        )
      }),
    thaw: (id) =>
      Effect.sync(() => {
        const held = states.frozen.get(id)
        if (held === undefined || !states.frozen.delete(id)) return
        states.letGo(held)
      }),
    snapshot: Effect.acquireRelease(
      Effect.suspend(() => {
        const newest = states.newest()
        if (newest === undefined) return hold
        newest.users++
        return Effect.succeed(newest)
      }),
      (held) => Effect.sync(() => states.letGo(held))
    ).pipe(Effect.map(({ stateReader }) => snapshotOf(stateReader))),
    records: (table, after, size) => upToDate(() => chunkOf(now, table, after, size)),
    bucket: (table, index) =>
      upToDate(() => hashSome(writer, table)).pipe(
        Effect.tap((some) => (some ? Effect.sleep(0) : Effect.void)),
        Effect.repeat({ while: (some) => some }),
        Effect.zipRight(upToDate(() => inBucket(writer, table, index)))
      ),
    names: upToDate(() => Reads.namesOf(writer)),
    tables: attempt(() => Reads.tablesOf(writer)),
    putTables: (tables) => upToDate(() => writer.write([putMeta("tables", JSON.stringify(tables))])),
    whole: attempt(() => Reads.metaOf(writer, "whole") === "true"),
    markWhole: upToDate(() => writer.write([putMeta("whole", "true")])),
    clear: attempt(() => committed.clear())
  }
}

/** A replica, and its file. */
export interface ReplicaWithFile {
  readonly replica: ReplicaShape
  /**
   * Freezes the file itself, complete, while the scope is open; answers the position. A reader that began when SQLite's
   * log was empty keeps every checkpoint out of the file. Fails while another state is frozen.
   */
  readonly still: Effect.Effect<number, ReplicaError, Scope.Scope>
}

const busy = (): ReplicaError => new ReplicaError({ reason: "locked", message: "a state of the replica is held" })

export const makeWithFile = (open: Open): Effect.Effect<ReplicaWithFile, ReplicaError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const connected = open.pipe(Effect.flatMap(link), Scope.extend(scope))
    const writer = yield* connected
    yield* attempt(() => prepare(writer))
    const states = makeStates(Effect.uninterruptible(connected))
    // A reader that outlives the replica finds its connection closed.
    yield* Effect.addFinalizer(() => Effect.sync(states.close))
    const replica = yield* attempt(() => shapeOf(writer, states))
    const emptied = (): void => {
      if (states.inUse() || !flush(writer, false)) throw busy()
    }
    const still = Effect.acquireRelease(Effect.zipRight(replica.catchUp, states.holdAfter(emptied)), (held) =>
      Effect.sync(() => states.letGo(held))
    )
    return { replica, still: Effect.map(still, ({ stateReader }) => stateReader.seq) }
  })

export const make = (open: Open): Effect.Effect<ReplicaShape, ReplicaError, Scope.Scope> =>
  Effect.map(makeWithFile(open), ({ replica }) => replica)
