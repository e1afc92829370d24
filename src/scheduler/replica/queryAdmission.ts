/**
 * Limits how many queries run at once, and how much memory they and their answers take together.
 *
 * Each query is bounded by itself, but many at once are not: as many run as the limit has room for. A long answer
 * counts until it has been sent, which may be never while its client reads nothing; so other queries do not wait for
 * that, but are refused.
 */
import { Data, Effect, type Scope } from "effect"
import { isReadable, noRoomToRead } from "../../core/record/memory.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import type { Limits } from "./queryRun.ts"

/** 503 `OVERLOADED`. */
export class QueryBusy extends Data.TaggedError("QueryBusy")<{
  readonly message: string
  readonly retryAfterSecs: number
}> {}

/** Most running queries; each reads its own state over its own connection. */
const atOnce = 8
const waitingAtMost = 256

/** All queries together may take the heap's size divided by this number, unless a setting says how much. */
const heapShare = 4

export interface TotalLimits extends Limits {
  /** Bytes for running queries, and as many for unsent answers; 0: a part of the heap. */
  readonly queryBytesTotal: number
}

/** Bytes for all running queries by {@link TotalLimits.queryBytesTotal}, at least enough for one query. */
export const totalBytesOf = ({ queryBytes, queryBytesTotal }: TotalLimits, heapBytes: number | undefined): number => {
  const wanted = heapBytes === undefined ? atOnce * queryBytes : Math.floor(heapBytes / heapShare)
  return Math.max(queryBytes, queryBytesTotal > 0 ? queryBytesTotal : wanted)
}

const busy = (message: string): QueryBusy =>
  new QueryBusy({ message: `${message} (setting SVC_QUERY_BYTES_TOTAL)`, retryAfterSecs: 1 })

/** An answer in pieces. */
interface Pieces {
  readonly body: ReadonlyArray<Uint8Array>
  readonly length: number
}

export class QueryAdmission {
  private readonly queryBytes: number
  private readonly total: number
  private readonly bytes: Effect.Semaphore
  private readonly places: Effect.Semaphore = Effect.unsafeMakeSemaphore(atOnce)
  private waiting = 0
  private unsent = 0

  constructor(
    limits: TotalLimits,
    heapBytes: number | undefined,
    private readonly heap: HeapShape
  ) {
    this.queryBytes = limits.queryBytes
    this.total = totalBytesOf(limits, heapBytes)
    this.bytes = Effect.unsafeMakeSemaphore(this.total)
  }

  /** Runs when there is room; the answer counts until the scope closes. */
  run<A extends Pieces, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | QueryBusy, Scope.Scope> {
    return Effect.suspend(() => {
      if (this.waiting >= waitingAtMost)
        return Effect.fail(busy(`${waitingAtMost} queries are running or waiting already`))
      this.waiting++
      return this.admitted(work).pipe(
        this.places.withPermits(1),
        this.bytes.withPermits(this.queryBytes),
        Effect.tap((answer) => this.count(answer)),
        Effect.ensuring(Effect.sync(() => void this.waiting--))
      )
    })
  }

  private admitted<A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | QueryBusy> {
    return Effect.suspend((): Effect.Effect<A, E | QueryBusy> => {
      const memory = this.heap.memory()
      if (!isReadable(memory))
        return Effect.fail(new QueryBusy({ message: noRoomToRead(memory, "queries are answered"), retryAfterSecs: 5 }))
      return this.unsent > this.total
        ? Effect.fail(
            busy(`answers of ${this.unsent} bytes are waiting for those who asked, the limit is ${this.total}`)
          )
        : work
    })
  }

  /** A single piece is not counted: a connection buffers more than that. */
  private count({ body, length }: Pieces): Effect.Effect<void, never, Scope.Scope> {
    if (body.length <= 1) return Effect.void
    return Effect.acquireRelease(
      Effect.sync(() => void (this.unsent += length)),
      () => Effect.sync(() => void (this.unsent -= length))
    )
  }
}
