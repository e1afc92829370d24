/**
 * Cleaning up after released views: records point to their rows, results of subqueries to their readers.
 *
 * No change finds a released view any more; the pointers to its rows are removed in pieces, for there may be a million.
 * Rule: changes skip what is left at no cost; the youngest view first, so that results that a large view releases in
 * turn are gone before more of it is; and each slice of a fill removes twice as many rows as it reads, so that views
 * that are acquired and released in turn never leave more behind than was shown at once.
 */
import type { Slices } from "../surql/evaluate/scope.ts"
import { sliceRows } from "./index/router.ts"
import type { ViewRow } from "./operators/viewRow.ts"
import type { Dependencies, Reader } from "./view/dependencies.ts"
import type { View } from "./view/view.ts"

/** Runs work in slices while changes are applied between them. */
export type RunLater = (work: () => Slices<void>) => void

/** Rows and reads removed before the releasing caller goes on. */
const atOnce = 512

/** Rows and reads removed between two pauses. */
const piece = 128

/** Options of the clean-up. */
export interface ReleaseOptions {
  /** Runs the clean-up of a large view later; if absent, all of it is done at once. */
  readonly later?: RunLater | undefined
  /** Rows removed at once even from a large view; 512 if absent. */
  readonly atOnce?: number | undefined
}

/** A view with no more rows and without reads is small: it is cleaned up without an entry of its own. */
const few = 16

interface Departing {
  /** Rows of the view in records at the time of its release. */
  readonly count: number
  readonly work: Iterator<number, void>
  /** Rows removed so far. */
  done: number
}

export class Releases {
  /**
   * Views that may have no holder: released views, and results of subqueries that no row reads any more, or not yet.
   */
  readonly idle: Array<View> = []
  private readonly departing: Array<Departing> = []
  private readonly dependencies: Dependencies
  private readonly release: (view: View) => void
  private readonly later: RunLater | undefined
  private readonly atOnce: number
  private promised = false
  /** Rows of small views removed since the caller last went on. */
  private small = 0

  /** Calls `release` with each idle view; it calls {@link add} for views that really have no holder. */
  constructor(dependencies: Dependencies, release: (view: View) => void, options: ReleaseOptions) {
    this.dependencies = dependencies
    this.release = release
    this.later = options.later
    this.atOnce = options.later === undefined ? Infinity : (options.atOnce ?? atOnce)
  }

  /**
   * Takes a view that no look-up finds any more, with its `count` rows. A small one is cleaned up at once;
   * {@link sweep} counts it.
   */
  add(view: Reader, rows: Iterable<ViewRow>, count: number): void {
    const { dependencies, small } = this
    if (small > this.atOnce || count > few || dependencies.knows(view)) {
      this.departing.push({ count, work: takenBack(view, rows, dependencies), done: 0 })
      return
    }
    for (const row of rows) row.slot.removeHolding(row)
    this.small += count + 1
  }

  /** Releases idle views and cleans up the small ones at once; the rest comes later. */
  tidy(): void {
    this.small = 0
    const before = this.departing.length
    this.dropIdle()
    this.sweep(this.atOnce, before)
    if (this.departing.length === 0 || this.promised || this.later === undefined) return
    this.promised = true
    this.later(() => this.swept())
  }

  /** Runs after a slice of a fill: releases idle views and removes more rows than the slice can have added. */
  fillOn(): void {
    this.small = 0
    if (this.idle.length > 0) this.dropIdle()
    if (this.departing.length > 0) this.sweep(2 * sliceRows)
  }

  /** Removes about this many rows, from the youngest views first, down to position `down`. */
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

  /** Number of views that are not cleaned up yet. */
  get size(): number {
    return this.departing.length
  }

  /** Rows of these views that records still point to. */
  get rows(): number {
    return this.departing.reduce((sum, { count, done }) => sum + Math.max(0, count - done), 0)
  }

  /** Drops all entries: after `clear` there are no records with pointers. */
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
    for (let view = this.idle.pop(); view !== undefined; view = this.idle.pop()) this.release(view)
  }
}

/** Removes the pointers of records to a view's rows, and the reads of the rows. */
function* takenBack(view: Reader, rows: Iterable<ViewRow>, dependencies: Dependencies): Generator<number, void, void> {
  for (const row of rows) {
    row.slot.removeHolding(row)
    yield 1
  }
  yield* dependencies.forget(view)
}
