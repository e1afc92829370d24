/**
 * The slots of deleted records, the longest deleted first.
 *
 * Why a queue with outdated entries and not a set: every deletion passes here, and a set would find each slot at random
 * in cold memory. Cost: O(1) per deletion on average.
 */
import type { RecordSlot } from "./recordSlot.ts"

/** Outdated entries allowed beyond the number of tombstones. */
const slack = 1_024

/**
 * Number of deleted records whose version is remembered; for older ones a bound per store keeps new versions above
 * theirs.
 */
export const defaultTombstones = 100_000

/** A record of a forgotten table may still be in the queue. */
const isTombstone = (slot: RecordSlot): boolean => slot.doc === undefined && slot.kept

export class Tombstones {
  /** Slots in the order of deletion. A record that came back, or was deleted again, has outdated entries here. */
  private queue: Array<RecordSlot> = []
  private count = 0

  get size(): number {
    return this.count
  }

  /** Notes that a record was deleted. */
  add(slot: RecordSlot): void {
    this.count++
    this.queue.push(slot)
    if (this.queue.length > 2 * this.count + slack) this.clearUp()
  }

  /** Notes that a deleted record came back. */
  remove(): void {
    this.count--
  }

  /** Removes and answers the `count` records that were deleted longest ago. */
  oldest(count: number): ReadonlyArray<RecordSlot> {
    this.clearUp()
    this.count -= Math.min(count, this.count)
    return this.queue.splice(0, count)
  }

  clear(): void {
    this.queue = []
    this.count = 0
  }

  /** Removes outdated entries: leaves the last one of each tombstone. */
  private clearUp(): void {
    // Without outdated entries nothing is walked: most deleted records never return, and a set of so many is cold.
    if (this.queue.length === this.count) return
    const last = new Set<RecordSlot>()
    for (let i = this.queue.length - 1; i >= 0; i--) if (isTombstone(this.queue[i]!)) last.add(this.queue[i]!)
    this.queue = [...last].reverse()
  }
}
