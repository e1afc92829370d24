/**
 * A log in PostgreSQL: one row per record, and one row per log with its end and its leader.
 *
 * One autocommitted statement both appends and fences: it moves the log's end only in the writer's own term and only
 * from the position it expects, so of two writers, or of two attempts, exactly one is accepted. The pool has a row of
 * the same kind, so that its writes and the log's do not wait for each other; a take-over moves both.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { type Attempt, type Contacts, type Frame, noContacts } from "../../core/cluster/term.ts"
import type { LogRow, ReportedMember, SharedLogShape } from "../../ports/SharedLog.ts"
import { recordsDropped, type WalFailed } from "../../ports/Wal.ts"
import { Link, type Row } from "./link.ts"
import * as Pool from "./pool.ts"

interface PostgresLogOptions {
  /** Name of the log; several clusters may share a database. */
  readonly log: string
  /** Name of the log for people. */
  readonly shown: string
  /** Id for a new log. */
  readonly newLogId: string
  readonly leaseMs: number
  /** Accepts a server that answers before it has flushed. */
  readonly isRelaxed: boolean
}

const layout = 1
const oldestServer = 140_000
const pageRecords = 1_000
const pageBytes = 4_194_304
/** How long a scheduler without an announcement is known, and the log kept for it. */
const forgottenMs = 600_000

const tables = {
  svc_log_head: `log text PRIMARY KEY, layout int NOT NULL, log_id text NOT NULL,
    epoch bigint NOT NULL, beat bigint NOT NULL, last_seq bigint NOT NULL, kept_after bigint NOT NULL, holder text`,
  svc_log: "log text, seq bigint, line text NOT NULL, PRIMARY KEY (log, seq)",
  svc_log_member: `log text, self text, name text NOT NULL, url text NOT NULL,
    applied bigint NOT NULL, synced bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (log, self)`,
  svc_log_ways: "log text, self text, ways text NOT NULL, PRIMARY KEY (log, self)",
  ...Pool.tables
}

const asksServer = `SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS sync, current_setting('server_encoding') AS encoding`

/** Asked in the writing session, since each session may have its own settings. */
const flushes = "current_setting('fsync') <> 'off' AND current_setting('synchronous_commit') <> 'off' AS flushed"

const asksRow = `SELECT h.*, m.url FROM svc_log_head h
  LEFT JOIN svc_log_member m ON m.log = h.log AND m.self = h.holder WHERE h.log = $1`

const appending = `WITH h AS (
    UPDATE svc_log_head SET last_seq = last_seq + $1 WHERE log = $2 AND epoch = $3 AND last_seq = $4 RETURNING last_seq
  ), i AS (
    INSERT INTO svc_log SELECT $2, $4::bigint + n, line FROM h, unnest($5::text[]) WITH ORDINALITY AS u(line, n)
  ) SELECT ${flushes} FROM h`

const claiming = `WITH h AS (
    UPDATE svc_log_head SET epoch = $2::bigint + 1, beat = beat + 1, holder = $5
    WHERE log = $1 AND epoch = $2 AND beat = $3 AND last_seq = $4 RETURNING *
  ), p AS (
    UPDATE svc_log_pool_head t SET epoch = h.epoch FROM h WHERE t.log = h.log
  ) SELECT h.*, m.url FROM h LEFT JOIN svc_log_member m ON m.log = h.log AND m.self = h.holder`

const beating = `UPDATE svc_log_head SET beat = beat + 1 WHERE log = $1 AND epoch = $2 RETURNING ${flushes}`

const reading = `SELECT seq, line FROM (
    SELECT seq, line, sum(octet_length(line)) OVER (ORDER BY seq) - octet_length(line) AS before
    FROM (SELECT seq, line FROM svc_log WHERE log = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT ${pageRecords}) p
  ) q WHERE before < ${pageBytes} ORDER BY seq`

const dropping = `WITH h AS (
    UPDATE svc_log_head SET kept_after = least($3::bigint, last_seq)
    WHERE log = $1 AND epoch = $2 AND kept_after < least($3::bigint, last_seq) RETURNING kept_after
  ), d AS (
    DELETE FROM svc_log USING h WHERE log = $1 AND seq <= h.kept_after
  ) SELECT kept_after FROM h`

/** Also forgets the earlier processes of the same scheduler. */
const announcing = `WITH d AS (
    DELETE FROM svc_log_member WHERE log = $1 AND self <> $2
      AND (name = $3 OR at < now() - ${forgottenMs} * interval '1 ms') RETURNING self
  ), e AS (
    DELETE FROM svc_log_ways w USING d WHERE w.log = $1 AND w.self = d.self
  ), w AS (
    INSERT INTO svc_log_ways VALUES ($1, $2, $7) ON CONFLICT (log, self) DO UPDATE SET ways = excluded.ways
  ) INSERT INTO svc_log_member VALUES ($1, $2, $3, $4, $5, $6, now()) ON CONFLICT (log, self)
    DO UPDATE SET url = excluded.url, applied = excluded.applied, synced = excluded.synced, at = excluded.at`

const listing = `SELECT m.*, w.ways, extract(epoch FROM now() - m.at) * 1000 AS ago FROM svc_log_member m
  LEFT JOIN svc_log_ways w ON w.log = m.log AND w.self = m.self
  WHERE m.log = $1 AND m.at >= now() - $2::float8 * interval '1 ms' ORDER BY m.name, m.self`

const ends = `SELECT last_seq, kept_after, (SELECT min(seq) FROM svc_log WHERE log = $1) AS first,
    (SELECT max(seq) FROM svc_log WHERE log = $1) AS last FROM svc_log_head WHERE log = $1`

const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const rowOf = (row: Row): LogRow => ({
  epoch: Number(row.epoch),
  beat: Number(row.beat),
  lastSeq: Number(row.last_seq),
  keptAfter: Number(row.kept_after),
  leader: textIn(row.holder),
  leaderUrl: textIn(row.url)
})

const memberOf = (row: Row): ReportedMember => ({
  ...noContacts,
  ...(JSON.parse(textIn(row.ways) ?? "{}") as Omit<Contacts, "self">),
  self: String(row.self),
  name: String(row.name),
  url: String(row.url),
  applied: Number(row.applied),
  synced: Number(row.synced),
  agoMs: Number(row.ago)
})

/** Properties of the server, as it reports them. */
interface Server {
  readonly version: number
  readonly fsync: string
  readonly synchronousCommit: string
  readonly encoding: string
}

/** Why this server cannot keep the log; undefined if it can. */
export const serverFault = (server: Server, isRelaxed: boolean): string | undefined => {
  if (!(server.version >= oldestServer))
    return `the server is PostgreSQL ${Math.trunc(server.version / 10_000)}; it must be ${oldestServer / 10_000} or later`
  if (server.encoding !== "UTF8") return `the database's encoding is ${server.encoding}; make one with ENCODING 'UTF8'`
  const off = server.fsync === "off" ? "fsync" : server.synchronousCommit === "off" ? "synchronous_commit" : undefined
  return off === undefined || isRelaxed
    ? undefined
    : `the server has ${off} off, so a power failure would lose what was answered; turn it on, or set SVC_LOG_DURABILITY=relaxed to accept that`
}

/** Fails unless the first and the last record are those in the log's row. */
const whole = (link: Link, log: string): Effect.Effect<void, WalFailed> =>
  Effect.flatMap(link.asked(ends, [log]), ([row]) => {
    const [keptAfter, lastSeq] = [Number(row?.kept_after), Number(row?.last_seq)]
    const isWhole =
      lastSeq === keptAfter ? row?.last === null : Number(row?.first) === keptAfter + 1 && Number(row?.last) === lastSeq
    return isWhole
      ? Effect.void
      : link.failed(
          "damaged",
          `its records are seq ${String(row?.first)} to ${String(row?.last)}, and it should hold ${keptAfter + 1} to ${lastSeq}`
        )
  })

/** Creates only missing tables: the right to create may be revoked once they exist. */
const made = (link: Link): Effect.Effect<void, WalFailed> =>
  Effect.gen(function* () {
    for (const [name, columns] of Object.entries(tables)) {
      const [found] = yield* link.asked("SELECT to_regclass($1) IS NOT NULL AS is", [name])
      // Two sessions that create at once conflict in the catalogue; the second attempt finds the table.
      if (found?.is !== true)
        yield* Effect.retry(link.asked(`CREATE TABLE IF NOT EXISTS ${name} (${columns})`), { times: 3 })
    }
  })

/** Checks the server, and creates the tables and the rows of this log; answers the log's id. */
const prepare = (link: Link, { isRelaxed, log, newLogId }: PostgresLogOptions): Effect.Effect<string, WalFailed> =>
  Effect.gen(function* () {
    const [server] = yield* link.asked(asksServer)
    const fault = serverFault(
      {
        version: Number(server?.version),
        fsync: String(server?.fsync),
        synchronousCommit: String(server?.sync),
        encoding: String(server?.encoding)
      },
      isRelaxed
    )
    if (fault !== undefined) return yield* link.failed("failed", fault)
    yield* made(link)
    yield* link.asked("INSERT INTO svc_log_head VALUES ($1, $2, $3, 0, 0, 0, 0, NULL) ON CONFLICT DO NOTHING", [
      log,
      layout,
      newLogId
    ])
    yield* link.asked(Pool.begins, [log])
    const [row] = yield* link.asked(asksRow, [log])
    if (row === undefined) return yield* link.failed("damaged", "its row in svc_log_head is gone")
    if (Number(row.layout) > layout)
      return yield* link.failed("newer", `a later version wrote it (layout ${row.layout}, this one knows ${layout})`)
    yield* whole(link, log)
    return String(row.log_id)
  })

/** The statements of an opened log. */
const statements = (link: Link, log: string): Omit<SharedLogShape, "logId" | "shown" | "durability"> => {
  const durability = ([row]: ReadonlyArray<Row>) =>
    row === undefined ? undefined : row.flushed === true ? ("flushed" as const) : ("relaxed" as const)
  const row = Effect.flatMap(link.run(asksRow, [log]), ([found]) =>
    found === undefined ? link.failed("damaged", "its row in svc_log_head is gone") : Effect.succeed(rowOf(found))
  )
  return {
    row,
    claim: ({ beat, epoch, lastSeq }: Frame, self) =>
      Effect.map(link.run(claiming, [log, epoch, beat, lastSeq, self]), ([won]) =>
        won === undefined ? undefined : rowOf(won)
      ),
    beat: (epoch) => Effect.map(link.run(beating, [log, epoch]), durability),
    handOver: (self) =>
      Effect.asVoid(link.asked("UPDATE svc_log_head SET holder = NULL WHERE log = $1 AND holder = $2", [log, self])),
    append: ({ count, epoch, lastSeq }: Attempt, records) =>
      Effect.map(link.run(appending, [count, log, epoch, lastSeq, records]), durability),
    page: (after, upTo) =>
      // Bounded on both sides: a planner without statistics would sort everything behind `after` for each page.
      Effect.flatMap(link.run(reading, [log, after, Math.min(upTo, after + pageRecords)]), (rows) => {
        const records = rows.map(({ line, seq }) => ({ seq: Number(seq), json: String(line) }))
        if (records.length > 0 && records.every(({ seq }, i) => seq === after + 1 + i)) return Effect.succeed(records)
        return Effect.flatMap(row, ({ keptAfter }) =>
          after < keptAfter
            ? recordsDropped(after, keptAfter)
            : link.failed("damaged", `seq ${after + 1} should come next, and it is not there`)
        )
      }),
    drop: (epoch, seq) =>
      Effect.flatMap(link.run(dropping, [log, epoch, seq - 1]), ([kept]) =>
        // No row: nothing to drop, or an earlier attempt has dropped it and its answer was lost.
        kept === undefined ? Effect.map(row, ({ keptAfter }) => keptAfter) : Effect.succeed(Number(kept.kept_after))
      ),
    announce: ({ applied, name, self, synced, url, ...ways }) =>
      Effect.asVoid(link.run(announcing, [log, self, name, url, applied, synced, JSON.stringify(ways)])),
    members: (withinMs) => Effect.map(link.run(listing, [log, withinMs]), (rows) => rows.map(memberOf)),
    pool: (term) => Pool.make(link, log, term)
  }
}

/** Opens the log for reading; a leader is not disturbed. */
export const open = (sql: SqlClient.SqlClient, options: PostgresLogOptions): Effect.Effect<SharedLogShape, WalFailed> =>
  Effect.gen(function* () {
    const { isRelaxed, leaseMs, log, shown } = options
    const link = new Link(sql, { shown, answerMs: Math.min(5000, Math.max(500, leaseMs / 2)) })
    const logId = yield* prepare(link, options)
    return { ...statements(link, log), logId, shown, durability: isRelaxed ? "relaxed" : "flushed" }
  })
