/**
 * The scheduler's pool in the stream of its log: each write is a frame of rows, and the frames in order give the pool.
 *
 * A write expects a certain last message, as an append does, so the log's fence protects the pool too. The pool is
 * never written as a whole: each write repeats the oldest rows, so that few frames are valid and the stream can be cut
 * before them.
 */
import { Effect, Schedule } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import type { DatabaseError } from "../../ports/Database.ts"
import type { PoolStoreShape } from "../../ports/PoolStore.ts"
import { Heap } from "../../ports/ProcessFigures.ts"
import type { LeaderTerm } from "../../ports/SharedLog.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import { checkRoom, failedWithLog, type RowPut, type Row as Stored, storeOver } from "../poolRows.ts"
import * as Frame from "./frame.ts"
import type { Journal } from "./journal.ts"
import type { PoolFrames } from "./poolFrames.ts"
import type { Draft, Writer } from "./writer.ts"

const retryMs = 200
/** Frames read at a take-over: this many, and one more for each `bytesPerFrame` of rows. */
const framesKept = 256
const bytesPerFrame = 16_384
/** Bytes of old rows that are repeated with one write. */
const renewedBytes = 65_536

interface Row {
  readonly kind: string
  readonly key: string
  readonly value: unknown
  readonly bytes: number
  /** First message of the row's frame, and number of its write. */
  readonly at: number
  readonly write: number
}

const keyOf = ({ key, kind }: Pick<RowPut, "kind" | "key">): string => `${kind} ${key}`

/** The rows in the order of their last write, oldest first. */
class Rows {
  private readonly rows = new Map<string, Row>()
  private bytes = 0

  private remove(key: string): void {
    this.bytes -= this.rows.get(key)?.bytes ?? 0
    this.rows.delete(key)
  }

  apply(puts: ReadonlyArray<RowPut>, at: number, write: number): void {
    for (const { key, kind, under, value } of puts)
      if (under === true) {
        for (const [name, row] of this.rows) if (row.kind === kind && row.key.startsWith(key)) this.remove(name)
      } else {
        const name = keyOf({ kind, key })
        this.remove(name)
        if (value === undefined) continue
        const bytes = key.length + JsonText.write(value).length
        this.rows.set(name, { kind, key, value, bytes, at, write })
        this.bytes += bytes
      }
  }

  /** First message of the oldest row that `puts` do not replace; 0: there is none. */
  oldestBut(puts: ReadonlyArray<RowPut>): number {
    const named = new Set(puts.filter(({ under }) => under !== true).map(keyOf))
    const prefixes = puts.filter(({ under }) => under === true)
    for (const [name, { at, key, kind }] of this.rows)
      if (!named.has(name) && !prefixes.some((put) => put.kind === kind && key.startsWith(put.key))) return at
    return 0
  }

  get oldest(): number {
    return this.oldestBut([])
  }

  /** The oldest rows of frames before `message`, as many as fit into one write. */
  before(message: number): ReadonlyArray<RowPut> {
    const puts: Array<RowPut> = []
    let bytes = 0
    for (const row of this.rows.values()) {
      if (row.at >= message || bytes >= renewedBytes) break
      puts.push({ kind: row.kind as RowPut["kind"], key: row.key, value: row.value })
      bytes += row.bytes
    }
    return puts
  }

  bytesBefore(message: number): number {
    let bytes = 0
    for (const row of this.rows.values()) {
      if (row.at >= message) break
      bytes += row.bytes
    }
    return bytes
  }

  /** Whether more frames are valid than should be read at a take-over. */
  isSpread(writes: number): boolean {
    const [first] = this.rows.values()
    return first !== undefined && writes - first.write > framesKept + this.bytes / bytesPerFrame
  }

  get stored(): ReadonlyArray<Stored> {
    return [...this.rows.values()].map(({ key, kind, value }) => ({ kind, key, value }))
  }
}

export class Pool {
  readonly store: PoolStoreShape
  private readonly turn = Effect.unsafeMakeSemaphore(1)
  private rows = new Rows()
  private written = 0
  private isOpen = false

  constructor(
    private readonly journal: Journal,
    private readonly writer: Writer,
    private readonly frames: PoolFrames,
    private readonly term: LeaderTerm
  ) {
    const rows = Effect.suspend(() => Effect.map(this.read, () => this.rows.stored))
    this.store = storeOver({
      rows: Effect.mapError(rows, (error) => (error._tag === "DatabaseError" ? error : failedWithLog(error))),
      put: (puts) => Effect.mapError(this.putAll(puts), failedWithLog),
      epoch: term.epoch
    })
  }

  private get over(): Effect.Effect<never, WalFailed> {
    return Effect.suspend(() =>
      Effect.fail(this.journal.link.failed("fenced", "another scheduler leads it now, or may"))
    )
  }

  /** The last frame, retried until the server answers or the term ends. */
  private get last(): Effect.Effect<Frame.Frame, WalFailed> {
    const { isOver, superseded, epoch } = this.term
    return this.journal.last.pipe(
      Effect.retry({
        while: ({ reason }) => reason === "unreachable" && !isOver(),
        schedule: Schedule.spaced(retryMs)
      }),
      Effect.tap(({ head }) => (head.epoch === epoch ? Effect.void : Effect.zipRight(superseded, this.over)))
    )
  }

  private draft(puts: ReadonlyArray<RowPut>, at: number): Draft {
    const { written } = this
    const pool = this.rows.oldestBut(puts)
    const isEmptied = pool === 0 && puts.every(({ value }) => value === undefined)
    return {
      kind: "pool",
      body: Frame.bytesOf(JsonText.write(puts)),
      change: { writes: written + 1, pool: pool === 0 && !isEmptied ? at + 1 : pool },
      id: `pool.${this.term.epoch}.${written + 1}`
    }
  }

  /** Repeats the write until it is stored or the term ends. */
  private put(puts: ReadonlyArray<RowPut>): Effect.Effect<void, WalFailed> {
    const { epoch, isOver, superseded } = this.term
    return Effect.gen(this, function* () {
      for (;;) {
        if (isOver()) return yield* this.over
        /** The log's state at the last attempt: it shows whether the write is absent, stored already, or impossible. */
        let found: { readonly epoch: number; readonly writes: number; readonly at: number } | undefined
        const answer = yield* Effect.either(
          this.writer.write(({ at, head }) => {
            found = { epoch: head.epoch, writes: head.writes, at }
            return head.epoch === epoch && head.writes === this.written ? this.draft(puts, at) : undefined
          })
        )
        if (answer._tag === "Left") {
          if (answer.left.reason !== "unreachable") return yield* answer.left
          yield* Effect.sleep(retryMs)
          continue
        }
        if (answer.right === undefined && found?.epoch !== epoch) return yield* Effect.zipRight(superseded, this.over)
        if (answer.right === undefined && found?.writes !== this.written + 1)
          return yield* this.journal.link.failed(
            "damaged",
            `its pool was written ${found?.writes} times, and by this process ${this.written}`
          )
        this.written++
        // The frame begins behind the message found. If an earlier attempt has stored the frame, its message is
        // unknown; the oldest row's message is then used, because a later number could let the stream be cut too far.
        this.rows.apply(puts, answer.right === undefined ? this.rows.oldest || 1 : found!.at + 1, this.written)
        return
      }
    })
  }

  private putAll(puts: ReadonlyArray<RowPut>): Effect.Effect<void, WalFailed> {
    return this.turn.withPermits(1)(
      Effect.suspend(() => this.put(this.rows.isSpread(this.written) ? [...this.rows.before(Infinity), ...puts] : puts))
    )
  }

  /** Writes the rows before `message` again, if they have at most `most` bytes, so that the stream may be cut there. */
  leave(message: number, most: number): Effect.Effect<void, WalFailed> {
    return this.turn.withPermits(1)(
      Effect.suspend(() => {
        if (this.rows.bytesBefore(message) > most) return Effect.void
        return Effect.whileLoop({
          while: () => this.rows.bytesBefore(message) > 0,
          body: () => this.put(this.rows.before(message)),
          step: () => {}
        })
      })
    )
  }

  /** First message needed by the pool; 0: none. Undefined: the pool is not open yet. */
  get oldest(): number | undefined {
    return this.isOpen ? this.rows.oldest : undefined
  }

  private missing(write: number): Effect.Effect<never, WalFailed> {
    const { link, stream } = this.journal
    return link.failed("damaged", `its stream ${stream} should hold write ${write} of the pool, and it is not there`)
  }

  /** Reads the rows from the frames, beginning with the one that holds the oldest row. */
  private get read(): Effect.Effect<void, WalFailed | DatabaseError> {
    return Effect.gen(this, function* () {
      const heap = yield* Heap
      const { at: end, head } = yield* this.last
      const whole = (yield* this.frames.take({ at: end, head })).filter(Frame.isLastPiece)
      this.rows = new Rows()
      this.written = head.pool === 0 ? head.writes : (whole[0]?.head.writes ?? 0) - 1
      for (const [read, frame] of whole.entries()) {
        if (frame.head.writes !== ++this.written) return yield* this.missing(this.written)
        const body = Frame.textOf(yield* this.journal.link.again(this.journal.bodyOf(frame)))
        yield* checkRoom(heap, body.length, { read, all: whole.length, unit: "writes of the pool" })
        const puts = yield* Effect.try({
          try: () => JsonText.parse(body) as ReadonlyArray<RowPut>,
          catch: () => this.journal.link.failed("damaged", `message ${frame.at} of its stream holds no rows of a pool`)
        })
        this.rows.apply(puts, Frame.firstMessageOf(frame), this.written)
      }
      if (this.written !== head.writes) return yield* this.missing(head.writes)
      this.isOpen = true
    })
  }
}
