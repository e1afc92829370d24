/**
 * The rows of one group in scan order (source by source, then by record), for aggregates that depend on it.
 *
 * State: sorted chunks of at most a few hundred rows. Cost of an added or removed row: O(log n) to find its chunk and
 * one short array shift. Chunks also cache sums of floats (floatSum.ts); a changed chunk drops them.
 */
import { compareRecords } from "../../surql/values/order.ts"
import type { RecordId, Value } from "../../surql/values/value.ts"
import { type FloatRun, patchRuns, type SummedColumn } from "./floatSum.ts"

/** The contribution of one row to its group; the same object as long as the contribution is the same. */
export interface GroupEntry {
  readonly id: RecordId
  readonly sourceIndex: number
  /** Equal for rows of one group. */
  readonly group: unknown
  readonly key: ReadonlyArray<Value>
  /** One value for each column of the grouping. */
  readonly values: ReadonlyArray<Value>
}

/** Orders entries in scan order. */
export const compareSourceOrder = (a: GroupEntry, b: GroupEntry): number =>
  a.sourceIndex - b.sourceIndex || compareRecords(a.id, b.id)

export interface Chunk {
  readonly entries: Array<GroupEntry>
  /** Cached sums of this chunk, by call; empty after a row was added or removed. */
  runs: Array<{ readonly run: FloatRun; readonly summing: SummedColumn } | undefined>
}

/** Rows in a chunk: the limit, and the number in a chunk of a new scan. */
const most = 512
const usual = 256

export class GroupScan {
  readonly chunks: Array<Chunk> = []

  /** `ordered`: entries in scan order. */
  constructor(ordered: ReadonlyArray<GroupEntry>) {
    for (let at = 0; at < ordered.length; at += usual)
      this.chunks.push({ entries: ordered.slice(at, at + usual), runs: [] })
  }

  get first(): GroupEntry | undefined {
    return this.chunks[0]?.entries[0]
  }

  *entries(): Iterable<GroupEntry> {
    for (const chunk of this.chunks) yield* chunk.entries
  }

  add(entry: GroupEntry): void {
    const at = this.chunkOf(entry)
    const chunk = this.chunks[at]
    if (chunk === undefined) {
      this.chunks.push({ entries: [entry], runs: [] })
      return
    }
    const { entries } = chunk
    entries.splice(placeIn(entries, entry), 0, entry)
    chunk.runs = []
    if (entries.length > most) this.chunks.splice(at + 1, 0, { entries: entries.splice(most / 2), runs: [] })
  }

  remove(entry: GroupEntry): void {
    const at = this.chunkOf(entry)
    const chunk = this.chunks[at]!
    chunk.entries.splice(placeIn(chunk.entries, entry), 1)
    chunk.runs = []
    const next = this.chunks[at + 1]
    if (chunk.entries.length === 0) this.chunks.splice(at, 1)
    else if (next !== undefined && chunk.entries.length + next.entries.length < usual) {
      for (const other of next.entries) chunk.entries.push(other)
      this.chunks.splice(at + 1, 1)
    }
  }

  /** Replaces a row's entry. */
  replace(before: GroupEntry, after: GroupEntry): void {
    if (compareSourceOrder(before, after) !== 0) {
      this.remove(before)
      this.add(after)
      return
    }
    const chunk = this.chunks[this.chunkOf(before)]!
    const at = placeIn(chunk.entries, before)
    chunk.entries[at] = after
    patchRuns(chunk, at)
  }

  /** The last chunk that begins at or before an entry, else the first. */
  private chunkOf(entry: GroupEntry): number {
    let low = 0
    for (let high = this.chunks.length; high - low > 1; ) {
      const middle = (low + high) >> 1
      if (compareSourceOrder(this.chunks[middle]!.entries[0]!, entry) <= 0) low = middle
      else high = middle
    }
    return low
  }
}

/** Position of an entry among sorted ones, or where it would be inserted. */
const placeIn = (entries: ReadonlyArray<GroupEntry>, entry: GroupEntry): number => {
  let low = 0
  for (let high = entries.length; low < high; ) {
    const middle = (low + high) >> 1
    if (compareSourceOrder(entries[middle]!, entry) < 0) low = middle + 1
    else high = middle
  }
  return low
}
