/**
 * Reads the change table (D44): takes its rows, has them made durable, deletes them, for ever.
 *
 * A row is deleted with the next read, so only when its record is durable here; a process that ends in between reads
 * the row again, and equal content changes nothing. The order of rows does not matter: a record that is read is at
 * least as new as the row that named it, and a later write has a row of its own. A database that is away or hangs is
 * asked again with growing pauses; its writers never notice, their rows wait.
 *
 * A live query wakes the reader from its pauses. It costs the engine 0.17 ms for each row written to the table, even if
 * its condition never holds (3.0.2: an INSERT of 500 rows takes ten times as long, and 2.5 times with the event alone).
 * So the query exists only after some seconds without many rows; until then reads follow each other closely without it.
 */
import { Duration, Effect, Either } from "effect"
import { stretchSize } from "../../core/record/reconcile.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import { compareKey } from "../../core/surreal/surrealChanges.ts"
import { changeTable, isOwn, queryTable } from "../../core/surreal/surrealSchema.ts"
import type { Readings } from "../../core/telemetry/meters.ts"
import { Progress, type ProgressShape } from "../../ports/Progress.ts"
import { steadyOf } from "../../ports/Turn.ts"
import {
  type ChangeRow,
  type ChangesRead,
  type ChangeTable,
  type ReadBounds,
  UpstreamError,
  type ViewCall
} from "../../ports/Upstream.ts"
import * as Backoff from "../work/backoff.ts"
import { type CallTrouble, ViewCalls } from "./viewCalls.ts"

export interface NamedRecord {
  readonly id: RecordId
  /** The record in the database; undefined: it does not exist. */
  readonly found: ChangesRead["records"][number] | undefined
}

/** The users' records that a read names, without duplicates. */
export const namedRecords = ({ records, rows }: ChangesRead): ReadonlyArray<NamedRecord> => {
  const found = new Map(records.map((record) => [record.id.text, record]))
  const ids = new Map(rows.flatMap(({ record }) => (isOwn(record.table) ? [] : [[record.text, record]])))
  return [...ids.values()].map((id) => ({ id, found: found.get(id.text) }))
}

/** Takes rows of the change table and deletes earlier ones, for the service that follows the database. */
export type TakeRows = (
  most: ReadBounds,
  done: ReadonlyArray<RecordId>,
  apart: ReadonlyArray<RecordId>
) => Effect.Effect<ChangesRead | undefined, UpstreamError>

interface Sink<E extends { readonly message: string }> {
  /**
   * Makes these records durable and shows them, all in one step; answers ids (as text) that must be read again because
   * they have changed meanwhile.
   */
  readonly apply: (named: ReadonlyArray<NamedRecord>) => Effect.Effect<ReadonlySet<string>, E>
  /** Ids of these tables' records that are here; undefined if there are more than `most`. */
  readonly held: (tables: ReadonlySet<string>, most: number) => Effect.Effect<ReadonlyArray<RecordId> | undefined, E>
  /** Reads these tables and applies differences stretch by stretch. */
  readonly refresh: (tables: ReadonlySet<string>) => Effect.Effect<void, { readonly message: string }>
  /** Whether rows can be taken now. */
  readonly open: () => boolean
  /** Limit of one step's text now, in bytes. */
  readonly room: () => number
  /**
   * Compares everything with the database, or these registrations alone, as rows of the setup or of a deleted
   * registration ask.
   */
  readonly compare: (asked: "everything" | ReadonlyArray<RecordId>) => Effect.Effect<void, { readonly message: string }>
  /** Carries out a client's call; answers why it is refused, or fails if it may be tried again. */
  readonly call: (call: ViewCall) => Effect.Effect<string | undefined, CallTrouble>
  /** Forks an effect for the reader's lifetime. */
  readonly fork: (later: Effect.Effect<void>) => Effect.Effect<void>
}

interface ReaderSettings {
  /** Most rows in one read; fewer if their records are large. */
  readonly size: number
  /** Warns if the table's end has not been reached for this long; 0: never. */
  readonly warnMs: number
}

/** Figures of the reader, from memory. */
export interface ReaderFigures {
  /** Whether the database has a change table; undefined until it was asked. */
  readonly installed: boolean | undefined
  /** Whether more rows wait than one read takes. */
  readonly catchingUp: boolean
  /** Rows read and not yet deleted. */
  readonly waiting: number
  /** Rows taken since the process began, and the records they named. */
  readonly rows: number
  readonly records: number
  readonly failures: number
  /** Rows that name records the database cannot read. */
  readonly unreadable: number
  /** When a read last reached the table's end, in ms since 1970; undefined before the first read. */
  readonly wholeAtMs: number | undefined
  /** The current warning that the table's end has not been reached for long. */
  readonly behind: string | undefined
}

/**
 * Shortest and longest pause between reads that find nothing; the longest makes three reads a second. With the look at
 * definitions (`schemaWatch.ts`) and the lease, a database at rest gets less than five requests a second.
 */
const firstIdleMs = 1
const idleMs = 300
/** Pause between reads that find nothing while there is no live query, and before one is registered. */
const listenMs = 8
/** Above so many rows in one read, or notifications within a second, reading without a live query is cheaper. */
const manyRows = 100
/** How long the reader then works without a live query. */
const calmMs = 5_000
/** Pauses while there is no change table, and while the sink is closed. */
const absentMs = 1_000
const closedMs = 50
const failing = { baseMs: 50, capMs: 2_000 }
/** Pause before an unreadable record is read again. */
const unreadableMs = 30_000
const smallest = 100

export class ChangeReader<E extends { readonly message: string }> {
  private readonly table: Pick<ChangeTable, "listen" | "answer" | "whole"> & { readonly take: TakeRows }
  private readonly max: number
  private readonly warnMs: number
  private size: number
  private done: ReadonlyArray<RecordId> = []
  /**
   * Rows that are not deleted yet, by the text of their id: those that ask for a compare, calls, and rows with an
   * unreadable record.
   */
  private readonly apart = new Map<string, RecordId>()
  /** Rows whose compare has not been made. */
  private compares: ReadonlyArray<ChangeRow> = []
  private comparing = false
  private readonly calls: ViewCalls
  private pauseMs = firstIdleMs
  private failedInARow = 0
  private step: ReturnType<ProgressShape["open"]> | undefined
  private readonly counts = { rows: 0, records: 0, failures: 0, unreadable: 0 }
  private installed: boolean | undefined
  private listening = false
  private unheard = false
  private heard = { sinceMs: 0, count: 0 }
  /** When a read last brought many rows. */
  private manyAtMs = -calmMs
  private wholeAtMs: number | undefined
  private behind: string | undefined
  /** One read at a time: it is applied before the next, so that no older state overwrites a newer one. */
  private readonly turn = Effect.unsafeMakeSemaphore(1)
  /** Open while rows may have been written since the last read began. */
  private readonly bell = Effect.unsafeMakeLatch(false)

  constructor(
    table: ChangeReader<E>["table"],
    private readonly sink: Sink<E>,
    { size, warnMs }: ReaderSettings
  ) {
    this.table = table
    this.max = this.size = size
    this.warnMs = warnMs
    this.calls = new ViewCalls({
      carryOut: sink.call,
      answer: table.answer,
      fork: sink.fork,
      finished: (id) => {
        this.done = [...this.done, id]
        this.apart.delete(id.text)
        this.bell.unsafeOpen()
      }
    })
  }

  readonly figures = (): ReaderFigures => ({
    installed: this.installed,
    catchingUp: this.step !== undefined,
    waiting: this.done.length + this.apart.size,
    wholeAtMs: this.wholeAtMs,
    behind: this.behind,
    ...this.counts
  })

  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.suspend(() => {
      const open = this.sink.open()
      const next = open
        ? Effect.flatMap(Effect.either(this.turn.withPermits(1)(this.once)), (tried) =>
            Either.isLeft(tried) ? this.failed(tried.left) : this.pause(tried.right)
          )
        : Effect.sleep(closedMs)
      return Effect.zipRight(
        Effect.clockWith((clock) => this.watch(open, steadyOf(clock)())),
        next
      )
    })
  )

  /**
   * Reads these tables as of one moment and applies differences as one step, so that one transaction is seen as one.
   * Tables larger than a step are read stretch by stretch.
   */
  refresh(tables: ReadonlySet<string>): Effect.Effect<void, { readonly message: string }> {
    return Effect.flatMap(this.turn.withPermits(1)(this.readWhole(tables)), (isWhole) =>
      isWhole ? Effect.void : this.sink.refresh(tables)
    )
  }

  /** False if the tables are too large, or have changed meanwhile. */
  private readWhole(tables: ReadonlySet<string>): Effect.Effect<boolean, UpstreamError | E> {
    return Effect.gen(this, function* () {
      const held = yield* this.sink.held(tables, this.max)
      if (held === undefined) return false
      const found = yield* this.table.whole([...tables], { rows: this.max, bytes: this.sink.room() })
      if (found === undefined) return false
      const named = new Map<string, NamedRecord>(held.map((id) => [id.text, { id, found: undefined }]))
      for (const record of found) named.set(record.id.text, { id: record.id, found: record })
      return named.size === 0 || (yield* this.sink.apply([...named.values()])).size === 0
    })
  }

  /** Logs one line when the table's end has not been reached for long, and one when it has again. */
  private watch(open: boolean, nowMs: number): Effect.Effect<void> {
    if (open) this.wholeAtMs ??= nowMs
    const behindMs = nowMs - (this.wholeAtMs ?? nowMs)
    if (this.behind !== undefined || this.warnMs === 0 || behindMs <= this.warnMs) return Effect.void
    const why = !open
      ? "nothing can be taken now"
      : this.failedInARow > 0
        ? `${this.failedInARow} attempts in a row have failed`
        : "more is written than is taken, or much has waited"
    this.behind = `${changeTable} has not been read to its end for ${Math.floor(behindMs / 1_000)} s (SVC_CHANGES_BEHIND_SECS), so views are older than the database: ${why}`
    return Effect.logWarning(this.behind)
  }

  private whole(nowMs: number): Effect.Effect<void> {
    const behindMs = nowMs - (this.wholeAtMs ?? nowMs)
    this.wholeAtMs = nowMs
    if (this.behind === undefined) return Effect.void
    this.behind = undefined
    return Effect.logInfo(`${changeTable} is read to its end again, after ${Math.floor(behindMs / 1_000)} s`)
  }

  /** Reads once and applies the records. */
  private readonly once: Effect.Effect<ChangesRead | undefined, UpstreamError | E> = Effect.suspend(() => {
    this.bell.unsafeClose()
    const gone = this.done.length
    const deleted = new Set(this.done.map(({ text }) => text))
    const bytes = this.sink.room()
    return this.table.take({ rows: this.size, bytes }, this.done, [...this.apart.values()]).pipe(
      Effect.tap((read) => {
        // The database answers a DELETE without permission as if there were no row.
        if (read?.rows.some(({ id }) => deleted.has(id.text)) === true)
          return Effect.fail(
            new UpstreamError({
              reason: "unauthorized",
              message: `rows of ${changeTable} that were deleted are still there: may the database user of this service delete them?`
            })
          )
        this.done = this.done.slice(gone)
        this.installed = read !== undefined
        return read === undefined || read.rows.length + read.unreadable.length === 0
          ? Effect.void
          : this.take(read, bytes)
      })
    )
  })

  private take(read: ChangesRead, bytes: number): Effect.Effect<void, E> {
    return Effect.gen(this, function* () {
      const { partial } = read
      if (partial && this.step === undefined)
        this.step = (yield* Progress).open("catch-up", "the change table", "changes")
      yield* this.setApart(read)
      const named = namedRecords(read)
      const again = named.length === 0 ? new Set<string>() : yield* this.sink.apply(named)
      // A call comes behind the changes of its own transaction.
      for (const { call, id } of read.rows) if (call !== undefined) this.apart.set(id.text, id)
      yield* this.calls.take(read.rows)
      const done = read.rows.filter(({ id, record }) => !this.apart.has(id.text) && !again.has(record.text))
      this.done = [...this.done, ...done.map(({ id }) => id)]
      this.counts.rows += done.length
      this.counts.records += named.length - again.size
      this.step?.add(done.length)
      if (partial) this.size = stretchSize(read.records, Math.min(this.max, this.size * 2), bytes)
      else this.caughtUp()
    })
  }

  /** Resets the size of a read: one read is one step again, however large the waiting records were. */
  private caughtUp(): void {
    this.size = this.max
    this.step?.close(true)
    this.step = undefined
  }

  private setApart(read: ChangesRead): Effect.Effect<void> {
    const asking = read.rows.filter(asksCompare)
    for (const { id } of asking) this.apart.set(id.text, id)
    this.compares = [...this.compares, ...asking]
    return Effect.zipRight(
      this.compareBeside,
      Effect.forEach(read.unreadable, (row) => this.unreadable(row), { discard: true })
    )
  }

  /** Forked: a compare of everything takes long, and changes made meanwhile are shown meanwhile. */
  private readonly compareBeside: Effect.Effect<void> = Effect.suspend(() => {
    if (this.comparing || this.compares.length === 0) return Effect.void
    this.comparing = true
    const comparing = Effect.gen(this, function* () {
      while (this.compares.length > 0) {
        const rows = this.compares
        const compared = yield* Effect.either(
          this.sink.compare(
            rows.some(({ record }) => record.table === changeTable) ? "everything" : rows.map(({ record }) => record)
          )
        )
        if (Either.isLeft(compared)) {
          yield* Effect.logWarning(
            `the compare that was asked for in the database failed: ${compared.left.message}; trying again`
          )
          yield* Effect.sleep(failing.capMs)
          continue
        }
        this.compares = this.compares.slice(rows.length)
        this.done = [...this.done, ...rows.map(({ id }) => id)]
        for (const { id } of rows) this.apart.delete(id.text)
      }
    })
    return this.sink.fork(
      Effect.ensuring(
        comparing,
        Effect.sync(() => void (this.comparing = false))
      )
    )
  })

  /** Keeps the row, so that it does not block others, and reads its record again later. */
  private unreadable({ id, reason, record }: ChangesRead["unreadable"][number]): Effect.Effect<void> {
    this.apart.set(id.text, id)
    this.counts.unreadable++
    const later = Effect.zipRight(
      Effect.sleep(unreadableMs),
      Effect.sync(() => {
        this.apart.delete(id.text)
        this.counts.unreadable--
      })
    )
    return Effect.zipRight(
      Effect.logError(
        `${record.text} was written and the database cannot read it: ${reason}; views show it as it was, trying again in ${unreadableMs / 1000} s`
      ),
      this.sink.fork(later)
    )
  }

  /** Continues at once while there are rows, and pauses longer the longer there are none. */
  private pause(read: ChangesRead | undefined): Effect.Effect<void> {
    const recovered =
      this.failedInARow === 0
        ? Effect.void
        : Effect.logInfo(`the change table is read again after ${this.failedInARow} failed attempts`)
    this.failedInARow = 0
    return Effect.zipRight(
      recovered,
      Effect.clockWith((clock) => this.rest(read, steadyOf(clock)()))
    )
  }

  private rest(read: ChangesRead | undefined, nowMs: number): Effect.Effect<void> {
    const rows = read?.rows.length ?? 0
    if (rows === 0) this.caughtUp()
    if (rows > manyRows) this.manyAtMs = nowMs
    const calm = nowMs - this.manyAtMs >= calmMs
    const longest = calm ? idleMs : listenMs
    this.pauseMs = read === undefined ? absentMs : rows === 0 ? Math.min(longest, this.pauseMs * 2) : firstIdleMs
    const listens = calm && read !== undefined && rows === 0 && this.pauseMs >= listenMs
    const sleep = Effect.sleep(Duration.millis(this.pauseMs))
    return Effect.zipRight(
      read?.partial === true ? Effect.void : this.whole(nowMs),
      Effect.zipRight(listens ? this.listen : Effect.void, Effect.raceFirst(sleep, this.bell.await))
    )
  }

  /** Forked beside the reads, which do not depend on the live query. */
  private readonly listen: Effect.Effect<void> = Effect.suspend(() => {
    if (this.listening) return Effect.void
    this.listening = true
    this.heard = { sinceMs: 0, count: 0 }
    const listening = Effect.clockWith((clock) => this.table.listen(() => this.wake(steadyOf(clock)())))
    return this.sink.fork(
      Effect.ensuring(
        Effect.catchAll(listening, (error) => this.deaf(error)),
        Effect.sync(() => void (this.listening = false))
      )
    )
  })

  private wake(nowMs: number): "more" | "enough" {
    this.unheard = false
    this.pauseMs = firstIdleMs
    this.bell.unsafeOpen()
    if (nowMs - this.heard.sinceMs >= 1_000) this.heard = { sinceMs: nowMs, count: 0 }
    if (++this.heard.count <= manyRows) return "more"
    this.manyAtMs = nowMs
    return "enough"
  }

  /** Logs one line until the live query works again; reads find the writes without it. */
  private deaf(error: UpstreamError): Effect.Effect<void> {
    const told = this.unheard
      ? Effect.void
      : Effect.logInfo(
          `no live query on ${changeTable} wakes the reader (${error.message}): it is read every ${idleMs} ms; trying again`
        )
    this.unheard = true
    return Effect.zipRight(told, Effect.sleep(failing.capMs))
  }

  /** Logs one line per outage, however long it lasts. */
  private failed(error: UpstreamError | E): Effect.Effect<void> {
    this.size = Math.max(Math.min(smallest, this.max), Math.floor(this.size / 2))
    this.counts.failures++
    const told =
      this.failedInARow++ > 0
        ? Effect.logDebug(`the change table could not be read and applied: ${error.message}`)
        : Effect.logWarning(
            `the change table cannot be read and applied: ${error.message}; what is written waits there, trying again`
          )
    return Effect.zipRight(told, Backoff.pause(failing, this.failedInARow))
  }
}

/** The figures as metrics; empty without a database. */
export const readings = (figures: ReaderFigures | undefined): Readings =>
  figures === undefined
    ? {}
    : {
        changeTableRows: figures.rows,
        changeTableRecords: figures.records,
        changeTableFailures: figures.failures,
        changeTableUnreadable: figures.unreadable,
        changeTableBehind: figures.catchingUp ? 1 : 0,
        ...(figures.wholeAtMs === undefined ? {} : { changeTableWhole: figures.wholeAtMs / 1_000 })
      }

export const asksCompare = ({ record }: ChangeRow): boolean =>
  (record.table === changeTable && record.key === compareKey) || record.table === queryTable
