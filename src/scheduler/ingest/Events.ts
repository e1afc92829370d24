/**
 * The events of the log as SSPs get them: the last ones from memory, older ones from the log (D26).
 *
 * One SSP at the head of the log reads lines written a moment ago; an SSP that lags behind pays for the disk, not
 * the others.
 */
import { Chunk, Effect, Stream } from "effect"
import * as Event from "../../core/record/event.ts"
import type { WalFailed, WalShape } from "../../ports/Wal.ts"

/** Kept in memory at most, whichever comes first. */
const maxKept = 16_384
const maxBytes = 32 * 1024 * 1024

export class Events {
  private readonly wal: WalShape
  private readonly epoch: number
  /** Texts by position, a ring: the position modulo the size. */
  private readonly ring: Array<string | undefined> = Array.from({ length: maxKept })
  private readonly traces = new Map<number, string>()
  private first = 1
  private last = 0
  private bytes = 0

  constructor(wal: WalShape, epoch: number) {
    this.wal = wal
    this.epoch = epoch
  }

  /** Lines that have been appended, the last one at `through`, and the traces they belong to, if any does. */
  appended(lines: ReadonlyArray<string>, through: number, traces?: ReadonlyArray<string | undefined>): void {
    let seq = through - lines.length
    if (seq !== this.last) this.forget(seq)
    for (const [n, line] of lines.entries()) {
      const trace = traces?.[n]
      const text = Event.forwarded(line, ++seq, this.wal.logId, this.epoch, trace)
      while (this.last - this.first + 1 >= maxKept || (this.bytes + text.length > maxBytes && this.first <= this.last))
        this.drop()
      this.ring[seq % maxKept] = text
      this.bytes += text.length
      this.last = seq
      if (trace !== undefined) this.traces.set(seq, trace)
    }
  }

  /** The traces that events from `from` to `to` belong to, each once; only of those kept in memory. */
  tracesOf(from: number, to: number): ReadonlyArray<string> {
    if (this.traces.size === 0) return []
    const found = new Set<string>()
    for (let seq = Math.max(from, this.first); seq <= to; seq++) {
      const trace = this.traces.get(seq)
      if (trace !== undefined) found.add(trace)
    }
    return [...found]
  }

  /** Events from `from` to `to`, both included. */
  read(from: number, to: number): Effect.Effect<ReadonlyArray<string>, WalFailed> {
    return Effect.suspend(() =>
      from >= this.first && to <= this.last ? Effect.succeed(this.kept(from, to)) : this.logged(from, to)
    )
  }

  private kept(from: number, to: number): ReadonlyArray<string> {
    const found: Array<string> = []
    for (let seq = from; seq <= to; seq++) found.push(this.ring[seq % maxKept] ?? "")
    return found
  }

  private logged(from: number, to: number): Effect.Effect<ReadonlyArray<string>, WalFailed> {
    return this.wal.read(from - 1).pipe(
      Stream.takeWhile(({ seq }) => seq <= to),
      Stream.map(({ json, seq }) => Event.forwarded(json, seq, this.wal.logId, this.epoch)),
      Stream.runCollect,
      Effect.map(Chunk.toReadonlyArray)
    )
  }

  private drop(): void {
    this.traces.delete(this.first)
    const slot = this.first++ % maxKept
    this.bytes -= this.ring[slot]?.length ?? 0
    this.ring[slot] = undefined
  }

  /** Begins anew behind `seq`. */
  private forget(seq: number): void {
    while (this.first <= this.last) this.drop()
    this.first = seq + 1
    this.last = seq
  }
}
