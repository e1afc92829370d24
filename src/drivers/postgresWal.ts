/**
 * The WAL in PostgreSQL: one row per record, and one row per log that says where it ends and whose it is.
 *
 * One autocommitted statement both appends and fences: it moves the log's end only in the writer's own epoch and only
 * from the position it expects, so of two writers, or of two attempts of one, exactly one is accepted. An answer that
 * was lost is not guessed: the row says afterwards whether the records are there, and until it does the append waits.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Chunk, Deferred, Duration, Effect, Fiber, Option, Schedule, type Scope, Stream } from "effect"
import type { WalRecord } from "../core/wal/walFormat.ts"
import { StartFault } from "../ports/StartFault.ts"
import { checked, dropped, WalFailed, type WalShape } from "../ports/Wal.ts"

export interface PostgresWalOptions {
  /** Name of the log; several clusters may share a database. */
  readonly log: string
  /** As people are told of it. */
  readonly shown: string
  /** Name of the scheduler that opens the log, for the message to a second scheduler. */
  readonly holder: string
  /** For a log that is new. */
  readonly newLogId: string
  readonly leaseMs: number
  /** Takes a server too that answers before it has flushed. */
  readonly isRelaxed: boolean
}

const layout = 1
const oldestServer = 140_000
const pageRecords = 1_000
const pageBytes = 4_194_304
const retryMs = 200
/** A statement without an answer by then is asked about on another connection. */
const answerMs = 5_000

const tables = [
  `CREATE TABLE IF NOT EXISTS svc_log_head (log text PRIMARY KEY, layout int NOT NULL, log_id text NOT NULL,
    epoch bigint NOT NULL, beat bigint NOT NULL, last_seq bigint NOT NULL, kept_after bigint NOT NULL, holder text)`,
  `CREATE TABLE IF NOT EXISTS svc_log (log text, seq bigint, line text NOT NULL, PRIMARY KEY (log, seq))`
]

const asksServer = `SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS sync, current_setting('server_encoding') AS encoding`

const appending = `WITH h AS (
    UPDATE svc_log_head SET last_seq = last_seq + $1 WHERE log = $2 AND epoch = $3 AND last_seq = $4 RETURNING last_seq
  ), i AS (
    INSERT INTO svc_log SELECT $2, $4::bigint + n, line FROM h, unnest($5::text[]) WITH ORDINALITY AS u(line, n)
  ) SELECT last_seq FROM h`

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

type Row = { readonly [column: string]: unknown }

interface Head {
  readonly logId: string
  readonly layout: number
  readonly epoch: number
  readonly beat: number
  readonly lastSeq: number
  readonly keptAfter: number
  readonly holder: string | undefined
}

const headOf = (row: Row): Head => ({
  logId: String(row.log_id),
  layout: Number(row.layout),
  epoch: Number(row.epoch),
  beat: Number(row.beat),
  lastSeq: Number(row.last_seq),
  keptAfter: Number(row.kept_after),
  holder: typeof row.holder === "string" ? row.holder : undefined
})

/** What the server says of itself. */
export interface Server {
  readonly version: number
  readonly fsync: string
  readonly synchronousCommit: string
  readonly encoding: string
}

/** Why this server cannot keep the log, if it cannot. */
export const serverFault = (server: Server, isRelaxed: boolean): string | undefined => {
  if (!(server.version >= oldestServer))
    return `the server is PostgreSQL ${Math.trunc(server.version / 10_000)}; it must be ${oldestServer / 10_000} or later`
  if (server.encoding !== "UTF8") return `the database's encoding is ${server.encoding}; make one with ENCODING 'UTF8'`
  const off = server.fsync === "off" ? "fsync" : server.synchronousCommit === "off" ? "synchronous_commit" : undefined
  return off === undefined || isRelaxed
    ? undefined
    : `the server has ${off} off, so a power failure would lose what was answered; turn it on, or set SVC_LOG_DURABILITY=relaxed to accept that`
}

const textOf = ({ cause, message }: SqlError): string =>
  cause instanceof Error && cause.message !== "" ? cause.message : message

/** The server's own word that a statement did nothing; undefined where it may have been carried out. */
const refusal = (error: SqlError, shown: string): WalFailed | undefined => {
  const { code, severity } = (error.cause ?? {}) as { readonly code?: unknown; readonly severity?: unknown }
  if (severity !== "ERROR" || typeof code !== "string" || /^(08|40|57|XX)/.test(code)) return undefined
  return new WalFailed({
    reason: code === "53100" ? "full" : "failed",
    message: `the log at ${shown} refused: ${textOf(error)} (${code})`,
    cause: error
  })
}

class NoAnswer extends Error {
  override readonly name = "NoAnswer"
}

type Fault = SqlError | NoAnswer

const wordsOf = (error: Fault): string => (error instanceof NoAnswer ? error.message : textOf(error))

/** One log on one server: statements about it, and what their failures mean. */
class Link {
  private readonly sql: SqlClient.SqlClient
  readonly log: string
  readonly shown: string

  constructor(sql: SqlClient.SqlClient, { log, shown }: PostgresWalOptions) {
    this.sql = sql
    this.log = log
    this.shown = shown
  }

  failed(reason: WalFailed["reason"], what: string): WalFailed {
    return new WalFailed({ reason, message: `the log at ${this.shown} (SVC_LOG_URL): ${what}` })
  }

  run(text: string, values: ReadonlyArray<unknown> = []): Effect.Effect<ReadonlyArray<Row>, Fault> {
    return Effect.timeoutFail(Effect.disconnect(this.sql.unsafe<Row>(text, values)), {
      duration: Duration.millis(answerMs),
      onTimeout: () => new NoAnswer(`no answer within ${answerMs} ms`)
    })
  }

  /** Undefined: the statement may have been carried out. */
  refused(error: Fault): WalFailed | undefined {
    return error instanceof NoAnswer ? undefined : refusal(error, this.shown)
  }

  /** For statements that may be carried out more than once. */
  asked(text: string, values?: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<Row>, WalFailed> {
    return this.run(text, values).pipe(
      Effect.retry({
        while: (error) => this.refused(error) === undefined,
        times: 10,
        schedule: Schedule.spaced(retryMs)
      }),
      Effect.mapError(
        (error) => this.refused(error) ?? this.failed("unreachable", `it does not answer: ${wordsOf(error)}`)
      )
    )
  }

  get head(): Effect.Effect<Head, WalFailed> {
    return Effect.flatMap(this.asked("SELECT * FROM svc_log_head WHERE log = $1", [this.log]), ([row]) =>
      row === undefined ? this.failed("damaged", "its row in svc_log_head is gone") : Effect.succeed(headOf(row))
    )
  }

  held(by: string | undefined): WalFailed {
    return this.failed(
      "locked",
      `${by ?? "another scheduler"} has it and is alive; stop that one first, or give this cluster a log of its own (?log=name)`
    )
  }
}

/** A server that can keep the log, with the tables and the row of this one. */
const prepare = (link: Link, newLogId: string, isRelaxed: boolean): Effect.Effect<Head, WalFailed> =>
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
    // Two that create at once collide in the catalogue; the second attempt finds what the first one made.
    for (const table of tables) yield* Effect.retry(link.asked(table), { times: 3 })
    yield* link.asked("INSERT INTO svc_log_head VALUES ($1, $2, $3, 0, 0, 0, 0, NULL) ON CONFLICT DO NOTHING", [
      link.log,
      layout,
      newLogId
    ])
    const head = yield* link.head
    return head.layout > layout
      ? yield* link.failed("newer", `a later version wrote it (layout ${head.layout}, this one knows ${layout})`)
      : head
  })

/** Begins an epoch of its own, once the holder has been silent for a lease; answers its number. */
const takeOver = (link: Link, found: Head, { holder, leaseMs }: PostgresWalOptions): Effect.Effect<number, WalFailed> =>
  Effect.gen(function* () {
    for (let waited = 0; found.holder !== undefined && waited < leaseMs; waited += retryMs) {
      yield* Effect.sleep(Duration.millis(retryMs))
      const now = yield* link.head
      if (now.beat !== found.beat || now.epoch !== found.epoch || now.lastSeq !== found.lastSeq)
        return yield* link.held(now.holder)
    }
    const epoch = found.epoch + 1
    const taken = yield* link.asked(
      `UPDATE svc_log_head SET epoch = $2::bigint + 1, beat = beat + 1, holder = $5
        WHERE log = $1 AND epoch = $2 AND beat = $3 AND last_seq = $4 RETURNING log_id`,
      [link.log, found.epoch, found.beat, found.lastSeq, holder]
    )
    if (taken.length > 0) return epoch
    // Another was faster, unless this is the answer to a repetition of a statement that had been carried out.
    const now = yield* link.head
    return now.epoch === epoch && now.holder === holder ? epoch : yield* link.held(now.holder)
  })

/** Fails unless the first and the last record are those that the log's row says. */
const whole = (link: Link, { keptAfter, lastSeq }: Head): Effect.Effect<void, WalFailed> =>
  Effect.flatMap(
    link.asked("SELECT min(seq) AS first, max(seq) AS last FROM svc_log WHERE log = $1", [link.log]),
    ([ends]) =>
      (
        lastSeq === keptAfter
          ? ends?.last === null
          : Number(ends?.first) === keptAfter + 1 && Number(ends?.last) === lastSeq
      )
        ? Effect.void
        : link.failed(
            "damaged",
            `its records are seq ${String(ends?.first)} to ${String(ends?.last)}, and it should hold ${keptAfter + 1} to ${lastSeq}`
          )
  )

/** The log of one epoch, as the process that began it knows it. */
class Held {
  private readonly link: Link
  private readonly epoch: number
  readonly lost: Deferred.Deferred<never, StartFault>
  lastSeq: number
  keptAfter: number
  isClosed = false

  constructor(link: Link, epoch: number, { keptAfter, lastSeq }: Head, lost: Deferred.Deferred<never, StartFault>) {
    this.link = link
    this.epoch = epoch
    this.keptAfter = keptAfter
    this.lastSeq = lastSeq
    this.lost = lost
  }

  private get fenced(): Effect.Effect<never, WalFailed> {
    const { message } = this.link.failed("fenced", "another scheduler has taken it over")
    const failed = new WalFailed({ reason: "fenced", message })
    return Effect.zipRight(Deferred.fail(this.lost, new StartFault({ exitCode: 4, message })), failed)
  }

  get beat(): Effect.Effect<void> {
    const { link } = this
    const beating = "UPDATE svc_log_head SET beat = beat + 1 WHERE log = $1 AND epoch = $2 RETURNING beat"
    return Effect.matchEffect(link.run(beating, [link.log, this.epoch]), {
      onSuccess: (rows) => (rows.length === 0 ? Effect.ignore(this.fenced) : Effect.void),
      onFailure: (error) => Effect.logWarning(link.failed("unreachable", `no answer: ${wordsOf(error)}`).message)
    })
  }

  get close(): Effect.Effect<void> {
    this.isClosed = true
    const { link } = this
    return Effect.catchAll(
      link.run("UPDATE svc_log_head SET holder = NULL WHERE log = $1 AND epoch = $2", [link.log, this.epoch]),
      (error) => Effect.logWarning(link.failed("unreachable", `it was not given back: ${wordsOf(error)}`).message)
    )
  }

  /** Whether the records are there, where the statement's own answer does not say. */
  private settle(count: number): Effect.Effect<boolean, WalFailed> {
    const { link } = this
    return Effect.flatMap(Effect.either(link.head), (answer) => {
      if (answer._tag === "Left")
        return answer.left.reason === "unreachable" ? Effect.succeed(false) : Effect.fail(answer.left)
      const { epoch, lastSeq } = answer.right
      if (epoch !== this.epoch) return this.fenced
      if (lastSeq === this.lastSeq) return Effect.succeed(false)
      return lastSeq === this.lastSeq + count
        ? Effect.succeed(true)
        : link.failed("damaged", `it ends at seq ${lastSeq}, and this process wrote it up to ${this.lastSeq}`)
    })
  }

  readonly append = Effect.fnUntraced(function* (this: Held, records: ReadonlyArray<string>) {
    const { link } = this
    if (records.length === 0) return this.lastSeq
    for (;;) {
      if (this.isClosed) return yield* link.failed("closed", "it is shut down")
      const answer = yield* Effect.either(
        link.run(appending, [records.length, link.log, this.epoch, this.lastSeq, records])
      )
      const refusal = answer._tag === "Left" ? link.refused(answer.left) : undefined
      if (refusal !== undefined) return yield* refusal
      if (answer._tag === "Left")
        yield* Effect.logWarning(link.failed("unreachable", `writes wait: ${wordsOf(answer.left)}`).message)
      const isThere = answer._tag === "Right" && answer.right.length > 0
      if (isThere || (yield* this.settle(records.length))) {
        this.lastSeq += records.length
        return this.lastSeq
      }
      yield* Effect.sleep(Duration.millis(retryMs))
    }
  })

  private page(after: number, upTo: number) {
    const { link } = this
    return Effect.flatMap(link.asked(reading, [link.log, after, upTo]), (rows) => {
      const records = rows.map(({ line, seq }) => ({ seq: Number(seq), json: String(line) }))
      if (records.length === 0 || records.some(({ seq }, i) => seq !== after + 1 + i))
        return after < this.keptAfter
          ? dropped(after, this.keptAfter)
          : link.failed("damaged", `seq ${after + 1} should come next, and it is not there`)
      const last = after + records.length
      const next = last < upTo ? Option.some(last) : Option.none<number>()
      return Effect.succeed([Chunk.unsafeFromArray(records), next] as const)
    })
  }

  read(afterSeq: number): Stream.Stream<WalRecord, WalFailed> {
    return Stream.suspend(() => {
      if (afterSeq < this.keptAfter) return Stream.fail(dropped(afterSeq, this.keptAfter))
      const upTo = this.lastSeq
      if (afterSeq >= upTo) return Stream.empty
      return Stream.paginateChunkEffect(afterSeq, (after) => this.page(after, upTo))
    })
  }

  dropBefore(seq: number): Effect.Effect<void, WalFailed> {
    const { link } = this
    const after = link.asked(dropping, [link.log, this.epoch, seq - 1])
    // No row: nothing to drop, or an earlier attempt has dropped it and its answer was lost.
    const kept = Effect.flatMap(after, ([row]) =>
      row === undefined ? Effect.map(link.head, (head) => head.keptAfter) : Effect.succeed(Number(row.kept_after))
    )
    return Effect.map(kept, (keptAfter) => {
      this.keptAfter = Math.max(this.keptAfter, keptAfter)
    })
  }
}

/** Opens the log and takes it over; the earlier holder, if it still runs, is refused from then on. */
export const open = (
  sql: SqlClient.SqlClient,
  options: PostgresWalOptions
): Effect.Effect<WalShape, WalFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const link = new Link(sql, options)
    const found = yield* prepare(link, options.newLogId, options.isRelaxed)
    const epoch = yield* takeOver(link, found, options)
    const held = new Held(link, epoch, found, yield* Deferred.make<never, StartFault>())
    yield* Effect.addFinalizer(() => held.close)
    yield* whole(link, found)
    yield* Effect.forkScoped(Effect.repeat(held.beat, Schedule.spaced(Duration.millis(options.leaseMs / 3))))
    const turn = yield* Effect.makeSemaphore(1)
    return {
      logId: found.logId,
      lastSeq: Effect.sync(() => held.lastSeq),
      keptAfter: Effect.sync(() => held.keptAfter),
      // Goes on without its caller: one that goes away must not leave the log's end unknown.
      append: (records) =>
        checked(records, Effect.flatMap(Effect.forkDaemon(turn.withPermits(1)(held.append(records))), Fiber.join)),
      read: (afterSeq) => held.read(afterSeq),
      dropBefore: (seq) => held.dropBefore(seq),
      lost: Deferred.await(held.lost)
    }
  })
