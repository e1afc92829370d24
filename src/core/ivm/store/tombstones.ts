/**
 * The slots of deleted records, the longest deleted first.
 *
 * Why a queue that is cleared up now and then, and no set: every deletion comes by, and a set of slots would have to
 * look one up at random among all of them. Cost: O(1) per deletion on average.
 */
import type { RecordSlot } from "./recordSlot.ts"

/** Entries that may be out of date beyond as many as there are tombstones. */
const slack = 1_024

/** Deleted records whose version is remembered; beyond it a floor per store keeps versions growing. */
export const defaultTombstones = 100_000

/** A record of a table that was let go may still stand in the queue. */
const isTombstone = (slot: RecordSlot): boolean => slot.doc === undefined && slot.kept

export class Tombstones {
  /** In the order of deletion; a record that came back, or was deleted again, has entries here that no longer count. */
  private queue: Array<RecordSlot> = []
  private buried = 0

  get size(): number {
    return this.buried
  }

  /** A record has been deleted. */
  add(slot: RecordSlot): void {
    this.buried++
    this.queue.push(slot)
    if (this.queue.length > 2 * this.buried + slack) this.clearUp()
  }

  /** A deleted record has come back. */
  remove(): void {
    this.buried--
  }

  /** Takes out those that were deleted longest ago. */
  oldest(count: number): ReadonlyArray<RecordSlot> {
    this.clearUp()
    this.buried -= Math.min(count, this.buried)
    return this.queue.splice(0, count)
  }

  clear(): void {
    this.queue = []
    this.buried = 0
  }

  /** Leaves one entry for each tombstone: its last. */
  private clearUp(): void {
    // None came back: most deleted records never do, and a set of so many is cold.
    if (this.queue.length === this.buried) return
    const last = new Set<RecordSlot>()
    for (let i = this.queue.length - 1; i >= 0; i--) if (isTombstone(this.queue[i]!)) last.add(this.queue[i]!)
    this.queue = [...last].reverse()
  }
}
