/**
 * Work left to do when views are let go: records hold what they held of them, results of subqueries know their
 * readers.
 *
 * A view that is let go is found by no change any more; what refers to its rows is taken back in pieces, for there may
 * be a million. Rule: it costs changes nothing, since they pass the leftovers without a look; the youngest first, so
 * that what a large view lets go in turn is gone before more of it is; and each slice of a fill releases twice as many
 * rows as it reads, so that views that come and go by turns never leave more behind than was shown at once.
 */
import type { Slices } from "../surql/evaluate/scope.ts"
import { sliceRows } from "./index/router.ts"
import type { ViewRow } from "./operators/viewRow.ts"
import type { Dependencies, Reader } from "./view/dependencies.ts"
import type { View } from "./view/view.ts"

/** Runs what may take long, a piece at a time, while changes are applied. */
export type Later = (work: () => Slices<void>) => void

/** How much is done before the caller that let go of a view goes on, in rows and things they had read. */
const atOnce = 512

/** As much between two pauses. */
const piece = 128

/** Where the work is done. */
export interface Taking {
  /** Runs the work left when a large view was let go; without it that is done at once. */
  readonly later?: Later | undefined
  /** How many rows of it are taken back at once all the same, 512 unless told. */
  readonly atOnce?: number | undefined
}

/** A view of no more rows that has read nothing is small: no work of its own is made for it. */
const few = 16

interface Departing {
  /** Rows that records held of it. */
  readonly count: number
  readonly work: Iterator<number, void>
  /** Rows taken back so far. */
  done: number
}

export class Releases {
  /**
   * Views that may have no holder any more: views that were let go, results of subqueries that no row reads, or none
   * yet.
   */
  readonly idle: Array<View> = []
  private readonly departing: Array<Departing> = []
  private readonly dependencies: Dependencies
  private readonly letGo: (view: View) => void
  private readonly later: Later | undefined
  private readonly atOnce: number
  private promised = false
  /** Rows of small views that were taken back since the caller went on. */
  private small = 0

  /** `letGo` is called with each idle result, and comes back with {@link add} for those that really are. */
  constructor(dependencies: Dependencies, letGo: (view: View) => void, taking: Taking) {
    this.dependencies = dependencies
    this.letGo = letGo
    this.later = taking.later
    this.atOnce = taking.later === undefined ? Infinity : (taking.atOnce ?? atOnce)
  }

  /**
   * A view that no look-up finds any more, and its rows, so many of them. A small one is taken back at once, which
   * {@link sweep} counts.
   */
  add(view: Reader, rows: Iterable<ViewRow>, count: number): void {
    const { dependencies, small } = this
    if (small > this.atOnce || count > few || dependencies.knows(view)) {
      this.departing.push({ count, work: takenBack(view, rows, dependencies), done: 0 })
      return
    }
    for (const row of rows) row.slot.letGo(row)
    this.small += count + 1
  }

  /** Lets go of idle results, and takes back small ones at once; the rest comes later. */
  tidy(): void {
    this.small = 0
    const before = this.departing.length
    this.dropIdle()
    this.sweep(this.atOnce, before)
    if (this.departing.length === 0 || this.promised || this.later === undefined) return
    this.promised = true
    this.later(() => this.swept())
  }

  /**
   * Goes on after a slice of a fill: what it has made without use goes, and more is taken back than it can have
   * brought.
   */
  fillOn(): void {
    this.small = 0
    if (this.idle.length > 0) this.dropIdle()
    if (this.departing.length > 0) this.sweep(2 * sliceRows)
  }

  /** Takes back about so many rows, of as many views as there are beyond `down`. */
  sweep(rows: number, down = 0): void {
    for (let left = rows; left > 0 && this.departing.length > down; ) {
      const youngest = this.departing.at(-1)!
      const { done = false, value } = youngest.work.next()
      if (done) {
        this.departing.pop()
        left--
      } else {
        left -= value as number
        youngest.done += value as number
      }
      this.small = 0
      this.dropIdle()
      left -= this.small
    }
  }

  /** Views of which something is left. */
  get size(): number {
    return this.departing.length
  }

  /** Rows that are still held of them. */
  get rows(): number {
    return this.departing.reduce((sum, { count, done }) => sum + Math.max(0, count - done), 0)
  }

  /** Everything is forgotten, so that nothing is left to take back. */
  clear(): void {
    this.departing.length = this.idle.length = 0
  }

  private *swept(): Slices<void> {
    while (this.departing.length > 0) {
      this.sweep(Math.min(piece, this.atOnce + 1))
      yield
    }
    this.promised = false
  }

  private dropIdle(): void {
    for (let view = this.idle.pop(); view !== undefined; view = this.idle.pop()) this.letGo(view)
  }
}

/** Takes back what a view holds of records and what its rows have read. */
function* takenBack(view: Reader, rows: Iterable<ViewRow>, dependencies: Dependencies): Generator<number, void, void> {
  for (const row of rows) {
    row.slot.letGo(row)
    yield 1
  }
  yield* dependencies.forget(view)
}
