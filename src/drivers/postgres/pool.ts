/**
 * The scheduler's pool in the PostgreSQL of its log: rows by kind and key, written in one term and in order.
 *
 * Each write moves a counter, in its own term and from the number it expects. So a write whose answer was lost is
 * either stored or not, and a late one changes nothing.
 */
import { Effect, Schedule } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import { DatabaseError } from "../../ports/Database.ts"
import type { PoolStoreShape } from "../../ports/PoolStore.ts"
import { Heap } from "../../ports/ProcessFigures.ts"
import type { LeaderTerm } from "../../ports/SharedLog.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import { failedWithLog, type RowPut, readAll, type Row as Stored, storeOver } from "../poolRows.ts"
import type { Link } from "./link.ts"

/** Keys may be longer than an index allows, so their hash is the unique part. */
export const tables = {
  svc_log_pool_head: "log text PRIMARY KEY, epoch bigint NOT NULL, writes bigint NOT NULL",
  svc_log_pool: `log text, kind text, digest bytea, key text NOT NULL, value text NOT NULL,
    PRIMARY KEY (log, kind, digest)`
}

export const begins = `INSERT INTO svc_log_pool_head SELECT log, epoch, 0 FROM svc_log_head WHERE log = $1
  ON CONFLICT DO NOTHING`

const asksHead = "SELECT epoch, writes FROM svc_log_pool_head WHERE log = $1"
const asksLengths = "SELECT octet_length(value) AS length FROM svc_log_pool WHERE log = $1 ORDER BY kind, digest"
const asksRows = `SELECT kind, key, value FROM svc_log_pool
  WHERE log = $1 AND (kind, digest) > ($2, sha256(convert_to($3, 'UTF8'))) ORDER BY kind, digest LIMIT $4`

/** No row is changed by two parts of this statement: a row that is put again is not deleted with its prefix. */
const writing = `WITH f AS (
    UPDATE svc_log_pool_head SET writes = writes + 1 WHERE log = $1 AND epoch = $2 AND writes = $3 RETURNING 1
  ), p AS (
    SELECT kind, key, value, sha256(convert_to(key, 'UTF8')) AS digest
    FROM unnest($4::text[], $5::text[], $6::text[]) AS u(kind, key, value)
  ), x AS (
    DELETE FROM svc_log_pool t USING f, p
    WHERE t.log = $1 AND p.value IS NULL AND t.kind = p.kind AND t.digest = p.digest
  ), y AS (
    DELETE FROM svc_log_pool t USING f, unnest($7::text[], $8::text[]) AS w(kind, prefix)
    WHERE t.log = $1 AND t.kind = w.kind AND starts_with(t.key, w.prefix)
      AND NOT EXISTS (SELECT 1 FROM p WHERE p.kind = t.kind AND p.digest = t.digest)
  ), i AS (
    INSERT INTO svc_log_pool SELECT $1, p.kind, p.digest, p.key, p.value FROM f, p WHERE p.value IS NOT NULL
    ON CONFLICT (log, kind, digest) DO UPDATE SET value = excluded.value
  ) SELECT 1 FROM f`

const retryMs = 200

/**
 * A text column accepts neither NUL nor half of a surrogate pair. JSON text contains neither, and keys keep their
 * common prefixes.
 */
const keyText = (key: string): string => JSON.stringify(key)

/** Merges a list of puts: the last put of each row, and the key prefixes whose other rows are deleted. */
const folded = (puts: ReadonlyArray<RowPut>) => {
  const rows = new Map<string, RowPut>()
  const prefixes: Array<RowPut> = []
  for (const put of puts) {
    if (put.under === true) {
      prefixes.push(put)
      for (const [at, { key, kind }] of rows) if (kind === put.kind && key.startsWith(put.key)) rows.delete(at)
    } else rows.set(`${put.kind} ${put.key}`, put)
  }
  return { rows: [...rows.values()], prefixes }
}

const valuesOf = (puts: ReadonlyArray<RowPut>): ReadonlyArray<unknown> => {
  const { prefixes, rows } = folded(puts)
  return [
    rows.map(({ kind }) => kind),
    rows.map(({ key }) => keyText(key)),
    rows.map(({ value }) => (value === undefined ? null : JsonText.write(value))),
    prefixes.map(({ kind }) => kind),
    prefixes.map(({ key }) => keyText(key).slice(0, -1))
  ]
}

const pageOf =
  (link: Link, log: string) =>
  (behind: Pick<Stored, "kind" | "key">, count: number): Effect.Effect<ReadonlyArray<Stored>, DatabaseError> =>
    Effect.flatMap(
      Effect.mapError(link.asked(asksRows, [log, behind.kind, keyText(behind.key), count]), failedWithLog),
      (rows) =>
        Effect.try({
          try: () =>
            rows.map(({ key, kind, value }) => ({
              kind: String(kind),
              key: String(JSON.parse(String(key))),
              value: JsonText.parse(String(value))
            })),
          catch: (cause) =>
            new DatabaseError({ reason: "damaged", message: "the pool holds a row that is no JSON", cause })
        })
    )

/** The pool of one term. */
export const make = (link: Link, log: string, { epoch, isOver, superseded }: LeaderTerm): PoolStoreShape => {
  const turn = Effect.unsafeMakeSemaphore(1)
  let written = 0
  const over = Effect.suspend(() => link.failed("fenced", "another scheduler leads it now, or may"))
  /** Retried until the server answers or the term ends: the outcome of the last write must be known before the next. */
  const head = link.run(asksHead, [log]).pipe(
    Effect.retry({ while: ({ reason }) => reason === "unreachable" && !isOver(), schedule: Schedule.spaced(retryMs) }),
    Effect.map(([row]) => ({ epoch: Number(row?.epoch), writes: Number(row?.writes) })),
    Effect.tap((now) => (now.epoch === epoch ? Effect.void : Effect.zipRight(superseded, over)))
  )

  /** Undefined without an answer: the write may be stored, or may still arrive. */
  const attempt = (puts: ReadonlyArray<RowPut>) =>
    link.run(writing, [log, epoch, written, ...valuesOf(puts)]).pipe(
      Effect.map((rows) => rows.length > 0),
      Effect.catchIf(
        ({ reason }) => reason === "unreachable",
        () => Effect.succeed(false)
      )
    )

  const put = (puts: ReadonlyArray<RowPut>): Effect.Effect<void, WalFailed> =>
    Effect.gen(function* () {
      for (;;) {
        if (isOver()) return yield* over
        if (yield* attempt(puts)) break
        const now = yield* head
        if (now.writes === written + 1) break
        if (now.writes !== written)
          return yield* link.failed(
            "damaged",
            `its pool was written ${now.writes} times, and by this process ${written}`
          )
      }
      written++
    })

  const putAll = (puts: ReadonlyArray<RowPut>): Effect.Effect<void, DatabaseError> =>
    turn.withPermits(1)(Effect.mapError(put(puts), failedWithLog))

  const rows = Effect.gen(function* () {
    written = (yield* head).writes
    const lengths = yield* link.asked(asksLengths, [log])
    return yield* readAll(
      yield* Heap,
      lengths.map(({ length }) => Number(length)),
      pageOf(link, log)
    )
  })

  return storeOver({
    rows: Effect.mapError(rows, (error) => (error._tag === "DatabaseError" ? error : failedWithLog(error))),
    put: putAll,
    epoch
  })
}
