/**
 * Reads the log's stream: single frames, the last frame, and pages of records.
 *
 * The message of a position is found by binary search between known messages, since every frame holds the log's
 * position. The end of a page is known, so the next page needs no search. A server may answer with an older state, for
 * instance after an election: such an answer is refused.
 */
import { Effect } from "effect"
import type { WalRecord } from "../../core/wal/walFormat.ts"
import { recordsDropped, type WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import type { Link, Stored } from "./link.ts"
import { Marks } from "./marks.ts"

/** Messages requested at the same time. */
const window = 16
/** Below this distance between two known messages all messages between are read. */
const nearby = 64
const pageBytes = 4_194_304
const pageRecords = 10_000
const cacheBytes = 16_777_216

const all = { concurrency: "unbounded" } as const

export const streamOf = (log: string): string => `svc-log-${log}`

export const subjectOf = (log: string, kind: Frame.Kind | "*"): string => `svc.log.${log}.${kind}`

export class Journal {
  readonly stream: string
  private readonly marks = new Marks()
  /** Highest message number known to be, or to have been, in the stream. */
  private seen = 0
  private logId: string | undefined
  private readonly cache = new Map<number, Frame.Frame>()
  private cached = 0

  constructor(
    readonly link: Link,
    readonly log: string
  ) {
    this.stream = streamOf(log)
  }

  /** Notes a frame that the server has acknowledged or sent. */
  noted({ at, head }: Pick<Frame.Frame, "at" | "head">): void {
    this.seen = Math.max(this.seen, at)
    this.marks.add(at, head.last)
  }

  /** Notes that the stream reaches this message. */
  reached(message: number): void {
    this.seen = Math.max(this.seen, message)
  }

  /** The frame in a stored message; fails with `damaged` if it is no frame of this log. */
  private frameOf({ data, seq }: Stored): Effect.Effect<Frame.Frame, WalFailed> {
    const frame = Frame.decode(seq, data)
    if (typeof frame === "number")
      return this.link.failed("newer", `a later version wrote it (layout ${frame}, this one knows ${Frame.layout})`)
    if (frame === undefined)
      return this.link.failed("damaged", `message ${seq} of its stream ${this.stream} is none of a log`)
    this.logId ??= frame.head.log
    return frame.head.log === this.logId
      ? Effect.succeed(frame)
      : this.link.failed("damaged", `it is the log ${frame.head.log} now, and was the log ${this.logId}`)
  }

  private get(query: object): Effect.Effect<Frame.Frame | undefined, WalFailed> {
    return Effect.flatMap(this.link.get(this.stream, query), (stored) =>
      stored === undefined ? Effect.succeed(undefined) : this.frameOf(stored)
    )
  }

  private keep(frame: Frame.Frame): Frame.Frame {
    this.marks.add(frame.at, frame.head.last)
    if (this.cache.has(frame.at)) return frame
    this.cache.set(frame.at, frame)
    this.cached += frame.body.length
    for (const [at, { body }] of this.cache) {
      if (this.cached <= cacheBytes) break
      this.cache.delete(at)
      this.cached -= body.length
    }
    return frame
  }

  /** The frame of a message; undefined: the stream has no such message. */
  at(seq: number): Effect.Effect<Frame.Frame | undefined, WalFailed> {
    const known = this.cache.get(seq)
    return known === undefined
      ? Effect.map(this.get({ seq }), (frame) => frame && this.keep(frame))
      : Effect.succeed(known)
  }

  /** The first frame of a kind at or behind message `from`. */
  next(kind: Frame.Kind | "*", from: number): Effect.Effect<Frame.Frame | undefined, WalFailed> {
    return Effect.map(
      this.get({ seq: Math.max(1, from), next_by_subj: subjectOf(this.log, kind) }),
      (frame) => frame && this.keep(frame)
    )
  }

  /** All frames of a kind from message `from` to message `to`, in order. */
  among(kind: Frame.Kind, from: number, to: number): Effect.Effect<ReadonlyArray<Frame.Frame>, WalFailed> {
    const size = Math.max(1, Math.ceil((to + 1 - from) / window))
    const starts = Array.from({ length: window }, (_, i) => from + i * size).filter((start) => start <= to)
    // The range is read in parallel parts: a take-over may need hundreds of frames.
    return Effect.map(
      Effect.forEach(starts, (start) => this.inPart(kind, start, Math.min(to, start + size - 1)), all),
      (parts) => parts.flat()
    )
  }

  private inPart(kind: Frame.Kind, from: number, to: number): Effect.Effect<ReadonlyArray<Frame.Frame>, WalFailed> {
    return Effect.gen(this, function* () {
      const frames: Array<Frame.Frame> = []
      for (let at = from; at <= to; ) {
        const frame = yield* this.link.again(this.next(kind, at))
        if (frame === undefined || frame.at > to) break
        frames.push(frame)
        at = frame.at + 1
      }
      return frames
    })
  }

  /** The last frame of the log. */
  readonly last: Effect.Effect<Frame.Frame, WalFailed> = Effect.suspend(() =>
    Effect.flatMap(this.get({ last_by_subj: subjectOf(this.log, "*") }), (frame) => {
      if (frame !== undefined && frame.at >= this.seen) {
        this.seen = frame.at
        return Effect.succeed(this.keep(frame))
      }
      return this.behind(frame)
    })
  )

  /** Handles an answer older than an earlier one: the server lags, or the stream has lost its end. */
  private behind(frame: Frame.Frame | undefined): Effect.Effect<never, WalFailed> {
    const { seen } = this
    return Effect.flatMap(this.link.agreedLast(subjectOf(this.log, "beat")), (agreed) => {
      if (agreed >= seen && frame !== undefined) return this.link.unanswered("a server answered that lags behind")
      const end = frame === undefined ? "has no message" : `ends with message ${agreed}, at seq ${frame.head.last}`
      return this.link.failed("damaged", `its stream ${this.stream} ${end}, and it was read through message ${seen}`)
    })
  }

  /** The whole content of a frame, given its last piece. */
  bodyOf(frame: Frame.Frame): Effect.Effect<Uint8Array, WalFailed> {
    if (frame.head.parts === 1) return Effect.succeed(frame.body)
    const before = Array.from({ length: frame.head.parts - 1 }, (_, i) => Frame.firstMessageOf(frame) + i)
    return Effect.map(
      Effect.forEach(before, (seq) => Effect.flatMap(this.at(seq), (piece) => this.pieceOf(frame, seq, piece)), {
        concurrency: window
      }),
      (pieces) => Frame.join([...pieces, frame.body])
    )
  }

  private pieceOf(frame: Frame.Frame, seq: number, piece: Frame.Frame | undefined) {
    const is =
      piece !== undefined &&
      piece.head.kind === frame.head.kind &&
      piece.head.parts === frame.head.parts &&
      piece.head.part === seq - Frame.firstMessageOf(frame)
    return is
      ? Effect.succeed(piece.body)
      : this.link.failed("damaged", `message ${seq} of its stream should be a piece of ${frame.at}, and is not there`)
  }

  /** A message at or before the one that holds the first record behind `after`. */
  private search(after: number): Effect.Effect<number, WalFailed> {
    return Effect.gen(this, function* () {
      let [from, to] = this.marks.around(after, this.seen + 1)
      while (to - from > nearby) {
        const middle = from + Math.floor((to - from) / 2)
        const frame = yield* this.next("*", middle)
        if (frame === undefined || frame.at >= to) to = middle
        else if (frame.head.last <= after) from = frame.at
        else to = frame.at
      }
      return from + 1
    })
  }

  private within(from: number): Effect.Effect<ReadonlyArray<Frame.Frame>, WalFailed> {
    const count = Math.max(0, Math.min(window, this.seen + 1 - from))
    const seqs = Array.from({ length: count }, (_, i) => from + i)
    return Effect.map(
      Effect.forEach(seqs, (seq) => this.at(seq), all),
      (frames) => frames.filter((frame) => frame !== undefined)
    )
  }

  /** Records behind `after` up to `upTo`, in pages of limited size; at least one if there is one. */
  page(after: number, upTo: number): Effect.Effect<ReadonlyArray<WalRecord>, WalFailed> {
    return Effect.gen(this, function* () {
      const records: Array<WalRecord> = []
      let bytes = 0
      let seq = after
      let from = yield* this.search(after)
      while (seq < upTo && bytes < pageBytes && records.length < pageRecords) {
        let frames = yield* this.within(from)
        if (frames.length === 0 || !frames.some(({ head }) => head.kind === "records")) {
          const next = yield* this.next("records", from)
          if (next === undefined) break
          frames = [next]
        }
        for (const frame of frames) {
          from = frame.at + 1
          const { count, kind, last } = frame.head
          if (kind !== "records" || !Frame.isLastPiece(frame) || last <= seq) continue
          if (last - count > seq) return yield* this.gap(after, seq)
          const body = yield* this.bodyOf(frame)
          const lines = Frame.textOf(body).split("\n")
          if (lines.length !== count) return yield* this.gap(after, seq)
          for (let i = seq - (last - count); i < count && seq < upTo; i++) records.push({ seq: ++seq, json: lines[i]! })
          bytes += body.length
          if (seq >= upTo || bytes >= pageBytes) break
        }
      }
      return records.length > 0 ? records : yield* this.gap(after, seq)
    })
  }

  /** Fails with the reason why the next record is missing. */
  private gap(after: number, seq: number): Effect.Effect<never, WalFailed> {
    return Effect.flatMap(this.last, ({ head: { kept, last } }) =>
      after < kept
        ? recordsDropped(after, kept)
        : this.link.failed("damaged", `seq ${seq + 1} should come next, and it is not there; it ends at ${last}`)
    )
  }

  /** The message where the kept records begin. */
  beginOf(kept: number, last: Pick<Frame.Frame, "at" | "head">): Effect.Effect<number, WalFailed> {
    return Effect.gen(this, function* () {
      if (kept >= last.head.last) return last.at - last.head.part
      let from = yield* this.search(kept)
      for (;;) {
        const frame = yield* this.next("records", from)
        if (frame === undefined) return last.at
        if (Frame.isLastPiece(frame) && frame.head.last > kept) return Frame.firstMessageOf(frame)
        from = frame.at + 1
      }
    })
  }
}
