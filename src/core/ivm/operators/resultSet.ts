/**
 * The shown rows of one view: order, window, ONLY, hash and delta, whatever the rows are (records, parts of a split
 * record, groups).
 *
 * State: the rows by key, under START/LIMIT/ONLY the same rows in a {@link Window}; the running hash; what the current
 * step has moved. Cost per row that comes, goes or changes: O(1), in a window O(log n).
 */
import { plainly } from "../../surql/evaluate/failure.ts"
import { noSlot } from "../../view/watch.ts"
import type { DeltaBuilder, MovedChild, Shown } from "../delta/delta.ts"
import * as Hashes from "../delta/hash.ts"
import type { StepLog } from "../delta/stepLog.ts"
import type { WorkCounters } from "../workCounters.ts"
import type { RowOrder } from "./sortedLeaf.ts"
import { type Bounds, Window } from "./window.ts"

/** How rows of one kind are ordered and hashed; one object per shape. */
export interface Kind<T extends Shown> extends RowOrder<T> {
  readonly hash: (row: T) => Hashes.Hash64
}

/** What the database answers where ONLY meets several rows. */
export const severalRows = plainly("Expected a single result output when using the ONLY keyword")

/** What results are lent. */
interface ResultContext {
  readonly counters: WorkCounters
  readonly moves: StepLog
}

/**
 * A row, and what the result that shows it notes on it: its hash as it went into the sum, and whether it is shown now.
 */
export interface Showable extends Hashes.HashSum {
  shown: boolean
}

/** A row that takes over the state of another row of the same record. */
interface Renewable<T> {
  renew(state: T): void
}

/** A result as what puts rows into it sees it. */
export interface TakesRows<T> {
  move(before: T | undefined, after: T | undefined): void
  insert(row: T): void
  remove(row: T): void
  replace(before: T, after: T): void
}

export abstract class ResultSet<T extends Shown & Showable> extends Window<T> implements Hashes.HashSum, TakesRows<T> {
  declare protected readonly kind: Kind<T>
  /** The running hash: two fields and no object of their own, since a change finds them cold. */
  high = 0
  low = 0
  readonly around: ResultContext
  /** Of the view it is evaluated for (`Evaluating`): of several the first. */
  watchSlot = noSlot
  /** Under ONLY: the rows in the window, two at most; the one row is shown when it is alone. */
  private readonly candidates: Array<T> | undefined
  /** The first fill, which is no delta: nothing is noted of it. */
  private filling = true
  /** Where what the step moves is noted; -1: nothing has moved yet. */
  private pending = -1
  private shown = 0

  /** `bounds` undefined: everything is shown. */
  constructor(kind: Kind<T>, bounds: Bounds | undefined, only: boolean, around: ResultContext) {
    super(kind, only ? { start: bounds?.start ?? 0, limit: Math.min(bounds?.limit ?? Infinity, 2) } : bounds)
    this.around = around
    this.candidates = only ? [] : undefined
  }

  /** A step moves a row, or marks a group, for the first time. */
  abstract changed(): void

  /** It may leave something out from here on, as it fails. */
  abstract leavesOut(): void

  get size(): number {
    return this.shown
  }

  /** ONLY met more than one row. */
  get several(): boolean {
    return this.candidates !== undefined && this.candidates.length > 1
  }

  hash(): string {
    return Hashes.hashText(this)
  }

  /** The shown rows of a window in order; undefined where the owner of the rows has to sort them. */
  inWindow(): ReadonlyArray<T> | undefined {
    return this.candidates !== undefined
      ? this.candidates.length === 1
        ? [...this.candidates]
        : []
      : this.hasWindow
        ? this.inside()
        : undefined
  }

  /** Puts the new state of a row in place of its old one; undefined where there is none. */
  move(before: T | undefined, after: T | undefined): void {
    if (before === undefined) this.insert(after!)
    else if (after === undefined) this.remove(before)
    else this.replace(before, after)
  }

  insert(row: T): void {
    if (!this.hasWindow) return this.show(row)
    this.around.counters.windows++
    this.take(row)
  }

  remove(row: T): void {
    if (!this.hasWindow) return this.hide(row)
    this.around.counters.windows++
    this.settle()
    this.drop(row)
  }

  /** Puts the new state of a row in place of its old one; both have one key. */
  replace(before: T, after: T): void {
    if (!this.hasWindow) return this.showInstead(before, after)
    this.around.counters.windows++
    this.settle()
    if (this.kind.compare(before, after) === 0) this.swap(before, after)
    else {
      this.drop(before)
      this.take(after)
    }
  }

  /** Gives a row a new state of its record. A row that stays where it is is not searched for. */
  renew(row: T & Renewable<T>, state: T): void {
    if (this.hasWindow) {
      this.around.counters.windows++
      this.settle()
      if (this.kind.compare(row, state) !== 0) {
        this.drop(row)
        row.renew(state)
        this.take(row)
        return
      }
    }
    if (!row.shown) return row.renew(state)
    if (!this.filling) this.step().renewed(row)
    Hashes.remove(this, row)
    row.renew(state)
    Hashes.add(this, row)
  }

  /**
   * A row that stays where it is shows the same results, one of which has moved: `by` is what that adds to its hash.
   */
  refreshed(row: T, child: MovedChild, by: Hashes.Hash64): void {
    this.settle()
    if (!row.shown) return
    if (!this.filling) this.step().refreshed(row, child)
    Hashes.add(row, by)
    Hashes.add(this, by)
  }

  /** The fill is over: what comes, goes and changes from now on is a delta. */
  protected filled(): void {
    this.settle()
    this.filling = false
  }

  /** What a step has moved, which ends here; undefined: nothing. */
  protected moved(): DeltaBuilder | undefined {
    const { pending } = this
    if (pending === -1) return undefined
    this.pending = -1
    return this.around.moves.at(pending)
  }

  /** The window's word. */
  protected entered(row: T): void {
    if (this.candidates === undefined) this.show(row)
    else this.candidate(row, this.candidates)
  }

  /** The window's word. */
  protected left(row: T): void {
    if (this.candidates === undefined) this.hide(row)
    else this.notCandidate(row, this.candidates)
  }

  /** The window's word. */
  protected replaced(before: T, after: T): void {
    if (this.candidates === undefined) this.showInstead(before, after)
    else {
      this.notCandidate(before, this.candidates)
      this.candidate(after, this.candidates)
    }
  }

  private show(row: T): void {
    if (!this.filling) this.step().entered(row)
    this.shown++
    this.hashIn(row)
  }

  /** Shows a row in place of its old state. */
  private showInstead(before: T, after: T): void {
    if (!this.filling) this.step().replaced(before, after)
    Hashes.remove(this, before)
    this.hashIn(after)
  }

  private hashIn(row: T): void {
    const { high, low } = this.kind.hash(row)
    row.high = high
    row.low = low
    row.shown = true
    Hashes.add(this, row)
  }

  private hide(row: T): void {
    if (!this.filling) this.step().left(row)
    row.shown = false
    this.shown--
    Hashes.remove(this, row)
  }

  private candidate(row: T, rows: Array<T>): void {
    if (rows.length === 1) {
      this.hide(rows[0]!)
      this.leavesOut()
    }
    rows.push(row)
    if (rows.length === 1) this.show(row)
    else if (!this.filling) this.step()
  }

  private notCandidate(row: T, rows: Array<T>): void {
    rows.splice(
      rows.findIndex((held) => held.key === row.key),
      1
    )
    if (rows.length === 0) this.hide(row)
    else if (rows.length === 1) this.show(rows[0]!)
  }

  private step(): DeltaBuilder {
    if (this.pending === -1) {
      this.pending = this.around.moves.open(this)
      this.changed()
    }
    return this.around.moves.at(this.pending)
  }
}
