/** Rows of a scheduler's pool by kind and key: rows made from writes, and the pool read from rows. */
import { Effect, Either, Schema } from "effect"
import type { StrayRow } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import { RecentResults, type Result } from "../core/job/result.ts"
import * as Memory from "../core/record/memory.ts"
import { DatabaseError } from "../ports/Database.ts"
import type { PoolStoreShape, PoolWrite, StoredPool } from "../ports/PoolStore.ts"
import type { HeapShape } from "../ports/ProcessFigures.ts"
import type { WalFailed } from "../ports/Wal.ts"

type Kind = "member" | "view" | "quarantine" | "stray" | "job" | "result" | "meta"

/** A row to put, or with `value` undefined to delete; `under` deletes all keys with this prefix. */
export interface RowPut {
  readonly kind: Kind
  readonly key: string
  readonly value: unknown
  readonly under?: true
}

const strayKey = ({ ssp, view }: Pick<StrayRow, "ssp" | "view">): string => JSON.stringify([ssp, view])

const putsOf = (write: Exclude<PoolWrite, { readonly tag: "PersistResult" }>): ReadonlyArray<RowPut> => {
  switch (write.tag) {
    case "PersistMember":
      return [{ kind: "member", key: write.row.ssp, value: write.row }]
    case "ForgetMember":
      return [
        { kind: "member", key: write.ssp, value: undefined },
        { kind: "stray", key: `${JSON.stringify([write.ssp]).slice(0, -1)},`, value: undefined, under: true }
      ]
    case "PersistView":
      return [{ kind: "view", key: write.row.view, value: write.row }]
    case "ForgetView":
      return [{ kind: "view", key: write.view, value: undefined }]
    case "PersistQuarantine":
      return [{ kind: "quarantine", key: write.row.query, value: write.row }]
    case "ForgetQuarantine":
      return [{ kind: "quarantine", key: write.query, value: undefined }]
    case "PersistStray":
      return [{ kind: "stray", key: strayKey(write.row), value: write.row }]
    case "ForgetStray":
      return [{ kind: "stray", key: strayKey(write.row), value: undefined }]
    case "PersistJob":
      return [{ kind: "job", key: write.row.job, value: write.row }]
    case "ForgetJob":
      return [{ kind: "job", key: write.job, value: undefined }]
  }
}

export interface Row {
  readonly kind: string
  readonly key: string
  readonly value: unknown
}

const home = Schema.Struct({ ssp: Schema.String, registration: Schema.Number })

const kept = {
  member: Schema.Struct({
    ...home.fields,
    incarnation: Schema.optional(Schema.String),
    url: Schema.String,
    batch: Schema.optional(Schema.Boolean),
    jobTables: Schema.optional(Schema.Array(Schema.String)),
    tables: Schema.optional(Schema.Array(Schema.String)),
    acked: Schema.Number
  }),
  view: Schema.Struct({
    view: Schema.String,
    spec: Schema.Struct({ body: Schema.Unknown, ttlMs: Schema.Number, lastActiveAt: Schema.Number }),
    assignment: Schema.Number,
    assignedAt: Schema.Number,
    home: Schema.optional(home),
    placed: Schema.Boolean,
    gone: Schema.optionalWith(Schema.Boolean, { default: () => false })
  }),
  stray: Schema.Struct({ ...home.fields, view: Schema.String, assignment: Schema.Number }),
  job: Schema.Struct({
    job: Schema.String,
    table: Schema.String,
    home: Schema.optional(home),
    told: Schema.Boolean,
    created: Schema.optional(Schema.Number)
  }),
  quarantine: Schema.Struct({
    query: Schema.String,
    view: Schema.String,
    ends: Schema.Number,
    at: Schema.Number
  }),
  /** `at` grows with each result, over restarts too. */
  result: Schema.Struct({
    at: Schema.Number,
    result: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
} as const

/** Characters read at once: while rows are decoded, their text is in memory beside the result. */
const pageLength = 2 ** 20

const lengthOf = (lengths: ReadonlyArray<number>): number => lengths.reduce((sum, length) => sum + length, 0)

/** Number of rows from index `from` on that are read at once. */
const pageOf = (lengths: ReadonlyArray<number>, from: number): number => {
  let count = 0
  for (let length = 0; from + count < lengths.length && length < pageLength; count++) length += lengths[from + count]!
  return count
}

/** Fails if the heap has no room for text of this length and its decoded form; `read` of `all` were read before. */
export const checkRoom = (
  heap: HeapShape,
  length: number,
  { all, read, unit }: { readonly read: number; readonly all: number; readonly unit: string }
): Effect.Effect<void, DatabaseError> =>
  Effect.suspend(() => {
    const memory = heap.measured()
    return Memory.isLoadable(memory, 2 * length)
      ? Effect.void
      : new DatabaseError({ reason: "failed", message: Memory.notLoadable(memory, read, all, unit) })
  })

/** Key before all rows. */
const begin: Pick<Row, "kind" | "key"> = { kind: "", key: "" }

/**
 * Reads all rows page by page; fails if the heap has no room for them.
 *
 * `lengths`: of the rows' values, in reading order. `page`: the next `count` rows behind one.
 */
export const readAll = <E>(
  heap: HeapShape,
  lengths: ReadonlyArray<number>,
  page: (behind: Pick<Row, "kind" | "key">, count: number) => Effect.Effect<ReadonlyArray<Row>, E>
): Effect.Effect<ReadonlyArray<Row>, E | DatabaseError> =>
  Effect.gen(function* () {
    const rows: Array<Row> = []
    const all = lengthOf(lengths)
    for (let read = 0; rows.length < lengths.length; ) {
      const end = rows.length + pageOf(lengths, rows.length)
      const length = lengthOf(lengths.slice(rows.length, end))
      yield* checkRoom(heap, length, { read, all, unit: "characters of the pool" })
      rows.push(...(yield* page(rows.at(-1) ?? begin, end - rows.length)))
      if (rows.length !== end)
        return yield* new DatabaseError({
          reason: "failed",
          message: `the pool has ${rows.length} rows, and just had ${end}: another process writes it`
        })
      read += length
    }
    return rows
  })

/** Rows of one kind; throws a {@link DatabaseError} that names the first that does not decode. */
const rowsOf = <A, I>(
  rows: ReadonlyArray<Row>,
  kind: Kind,
  schema: Schema.Schema<A, I>
): ReadonlyArray<readonly [key: string, row: A]> => {
  const decode = Schema.decodeUnknownEither(schema)
  return rows
    .filter((row) => row.kind === kind)
    .map(({ key, value }) => [
      key,
      Either.getOrThrowWith(
        decode(value),
        ({ message }) =>
          new DatabaseError({
            reason: "damaged",
            message: `the ${kind} ${JSON.stringify(key)} of the pool does not decode: ${message}`
          })
      )
    ])
}

/** Throws a {@link DatabaseError} if a row does not decode. Fields that JSON leaves out come back as undefined. */
const openedFrom = (rows: ReadonlyArray<Row>, logId: string): StoredPool => {
  const of = <A, I>(kind: Kind, schema: Schema.Schema<A, I>): ReadonlyArray<A> =>
    rowsOf(rows, kind, schema).map(([, row]) => row)
  const meta = new Map(rows.filter((row) => row.kind === "meta").map((row) => [row.key, row.value]))
  const lastLogId = typeof meta.get("log") === "string" ? String(meta.get("log")) : undefined
  const sameLog = lastLogId === undefined || lastLogId === logId
  const saved: Saved = {
    members: sameLog
      ? of("member", kept.member).map(({ batch, incarnation, jobTables, ...row }) => ({
          ...row,
          batch,
          incarnation,
          jobTables
        }))
      : [],
    views: of("view", kept.view).map((row) => ({ ...row, home: row.home })),
    strays: sameLog ? of("stray", kept.stray) : [],
    jobs: of("job", kept.job).map((row) => ({ ...row, home: row.home })),
    quarantined: of("quarantine", kept.quarantine)
  }
  return { epoch: epochOf(meta.get("epoch")) + 1, saved, lastLogId }
}

/** Epochs must never be used twice (D5), so an unreadable one is a fault and no reason to count from 0. */
const epochOf = (value: unknown): number => {
  if (value === undefined) return 0
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw new DatabaseError({
    reason: "damaged",
    message: `the epoch of the pool is ${JSON.stringify(value)}, and not a whole number`
  })
}

/** Rows that an opening writes. */
const opening = ({ epoch, lastLogId }: StoredPool, logId: string): ReadonlyArray<RowPut> => [
  { kind: "meta", key: "epoch", value: epoch },
  { kind: "meta", key: "log", value: logId },
  ...(lastLogId === undefined || lastLogId === logId
    ? []
    : ([
        { kind: "member", key: "", value: undefined, under: true },
        { kind: "stray", key: "", value: undefined, under: true }
      ] as const))
]

/**
 * The stored results of jobs, in memory as in the rows: a write also deletes the results for which it leaves no room.
 */
class Results {
  private recent = new RecentResults()
  private at = 0

  /**
   * Loads the rows; throws a {@link DatabaseError} if one does not decode. Answers deletions of results for which there
   * is no room.
   */
  open(rows: ReadonlyArray<Row>, maxResults: number | undefined): ReadonlyArray<RowPut> {
    this.recent = new RecentResults(maxResults)
    const results = rowsOf(rows, "result", kept.result)
      .map(([key, row]) => ({ key, ...row }))
      .sort((a, b) => a.at - b.at)
    this.at = results.at(-1)?.at ?? 0
    return results.flatMap(({ key, result }) => this.recent.put(key, result)).map(forgotten)
  }

  readonly of = (job: string): Result | undefined => this.recent.get(job)

  /** A write that fails is repeated; results dropped meanwhile are deleted at the next start at the latest. */
  readonly puts = (write: PoolWrite): ReadonlyArray<RowPut> => {
    if (write.tag !== "PersistResult") return putsOf(write)
    const { job, result } = write
    const gone = this.recent.put(job, result).map(forgotten)
    return [
      result === undefined
        ? forgotten(job)
        : { kind: "result", key: job, value: { at: ++this.at, result } satisfies typeof kept.result.Type },
      ...gone
    ]
  }
}

const forgotten = (job: string): RowPut => ({ kind: "result", key: job, value: undefined })

interface Engine {
  readonly rows: Effect.Effect<ReadonlyArray<Row>, DatabaseError>
  /** Writes all puts or none. */
  readonly put: (puts: ReadonlyArray<RowPut>) => Effect.Effect<void, DatabaseError>
  /** Epoch of the term, if the log has terms; else each opening counts up from the rows. */
  readonly epoch?: number
}

/** A pool whose rows an engine stores. */
export const storeOver = ({ put, rows, ...term }: Engine): PoolStoreShape => {
  const results = new Results()
  return {
    resultOf: results.of,
    open: (logId, maxResults) =>
      Effect.gen(function* () {
        const stored = yield* rows
        const [opened, dropped] = yield* Effect.try({
          try: () => [{ ...openedFrom(stored, logId), ...term }, results.open(stored, maxResults)] as const,
          catch: (cause) =>
            cause instanceof DatabaseError
              ? cause
              : new DatabaseError({ reason: "damaged", message: "the pool holds a row that is none", cause })
        })
        yield* put([...opening(opened, logId), ...dropped])
        return opened
      }),
    write: (writes) => (writes.length === 0 ? Effect.void : Effect.suspend(() => put(writes.flatMap(results.puts))))
  }
}

/** A failure of the log that also holds the pool's rows. */
export const failedWithLog = ({ message, reason }: WalFailed): DatabaseError =>
  new DatabaseError({ reason: reason === "damaged" ? "damaged" : "failed", message })
