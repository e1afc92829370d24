/**
 * The log's events as they are sent to SSPs: the last ones from memory, older ones from the log (D26).
 *
 * An SSP at the head of the log is served from memory; an SSP that lags behind costs disk reads. For feeds (D61) each
 * event has its table and the previous position in that table, as far as this process has seen the log.
 */
import { Chunk, Effect, Stream } from "effect"
import * as Event from "../../core/record/event.ts"
import * as FeedLines from "../../core/record/feedLines.ts"
import type { Entry } from "../../core/record/feedWriter.ts"
import type { WalFailed, WalShape } from "../../ports/Wal.ts"

/** Limits of the events kept in memory: count and characters. */
const maxKept = 16_384
export const maxChars = 32 * 1024 * 1024

/** An event as its line of the feed. The text for an SSP without a feed is cut out of this line, not held beside it. */
class BufferedEvent implements Entry {
  readonly line: string

  constructor(
    text: string,
    readonly table: string,
    readonly continues: boolean,
    private readonly prev: number | undefined
  ) {
    this.line = FeedLines.eventLine(text, prev)
  }

  get text(): string {
    return FeedLines.forwardedOf(this.line, this.prev)
  }
}

const nothing = new BufferedEvent("", "", false, undefined)

export class Events {
  /** Ring of events: index is position modulo size. */
  private readonly ring: Array<BufferedEvent | undefined> = Array.from({ length: maxKept })
  private readonly traces = new Map<number, string>()
  /** Last position of each table. */
  private readonly lastOf = new Map<string, number>()
  private first = 1
  private last = 0
  private chars = 0

  constructor(
    private readonly wal: WalShape,
    private readonly epoch: number
  ) {}

  /**
   * Adds lines that were appended to the log, the last one at `through`. `traces`: the trace of each line, if any has
   * one.
   */
  appended(lines: ReadonlyArray<string>, through: number, traces?: ReadonlyArray<string | undefined>): void {
    let seq = through - lines.length
    if (seq !== this.last) this.forget(seq)
    for (const [n, line] of lines.entries()) {
      const trace = traces?.[n]
      const text = Event.forwardedLine(line, ++seq, this.wal.logId, this.epoch, trace)
      const table = Event.tableOf(line)
      const kept = new BufferedEvent(text, table, Event.endsWithin(line), this.lastOf.get(table))
      const more = kept.line.length
      while (this.last - this.first + 1 >= maxKept || (this.chars + more > maxChars && this.first <= this.last))
        this.drop()
      this.ring[seq % maxKept] = kept
      this.lastOf.set(table, seq)
      this.chars += more
      this.last = seq
      if (trace !== undefined) this.traces.set(seq, trace)
    }
  }

  /** Traces of the events from `from` to `to`, without duplicates; only of those kept in memory. */
  tracesOf(from: number, to: number): ReadonlyArray<string> {
    if (this.traces.size === 0) return []
    const found = new Set<string>()
    for (let seq = Math.max(from, this.first); seq <= to; seq++) {
      const trace = this.traces.get(seq)
      if (trace !== undefined) found.add(trace)
    }
    return [...found]
  }

  /** Texts of the events from `from` to `to`, both included. */
  read(from: number, to: number): Effect.Effect<ReadonlyArray<string>, WalFailed> {
    return Effect.suspend(() =>
      from >= this.first && to <= this.last
        ? Effect.succeed(this.kept(from, to))
        : Stream.runCollect(this.logged(from, to)).pipe(
            Effect.map((records) =>
              Chunk.toReadonlyArray(Chunk.map(records, ({ json, seq }) => this.forwarded(json, seq)))
            )
          )
    )
  }

  /** Whether the event at `seq` is in memory. */
  holds(seq: number): boolean {
    return seq >= this.first && seq <= this.last
  }

  /** Oldest position in memory; Infinity if none is. */
  get firstKept(): number {
    return this.first <= this.last ? this.first : Infinity
  }

  /** The event at `seq`, which must be in memory. */
  entry(seq: number): Entry {
    return this.ring[seq % maxKept] ?? nothing
  }

  /**
   * Events from the log for one reader of a feed. `lastOf`: last position of each table that the reader has passed;
   * updated.
   */
  entries(from: number, to: number, lastOf: Map<string, number>): Effect.Effect<ReadonlyArray<Entry>, WalFailed> {
    const entry = (json: string, seq: number): Entry => {
      const table = Event.tableOf(json)
      const prev = lastOf.get(table)
      lastOf.set(table, seq)
      return new BufferedEvent(this.forwarded(json, seq), table, Event.endsWithin(json), prev)
    }
    return Stream.runCollect(this.logged(from, to)).pipe(
      Effect.map((records) => Chunk.toReadonlyArray(Chunk.map(records, ({ json, seq }) => entry(json, seq))))
    )
  }

  private forwarded(json: string, seq: number): string {
    return Event.forwardedLine(json, seq, this.wal.logId, this.epoch)
  }

  private kept(from: number, to: number): ReadonlyArray<string> {
    const found: Array<string> = []
    for (let seq = from; seq <= to; seq++) found.push(this.ring[seq % maxKept]?.text ?? "")
    return found
  }

  private logged(from: number, to: number) {
    return Stream.takeWhile(this.wal.read(from - 1), ({ seq }) => seq <= to)
  }

  private drop(): void {
    this.traces.delete(this.first)
    const slot = this.first++ % maxKept
    this.chars -= this.ring[slot]?.line.length ?? 0
    this.ring[slot] = undefined
  }

  /** Empties the ring; the next event comes behind `seq`. */
  private forget(seq: number): void {
    while (this.first <= this.last) this.drop()
    this.first = seq + 1
    this.last = seq
    // The events between were not seen here, so the previous position in each table is unknown.
    this.lastOf.clear()
  }
}
