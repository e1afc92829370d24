/**
 * The shown rows of one view: order, window, ONLY, hash and delta, for rows of any kind (records, pieces of a split
 * record, groups).
 *
 * State: the rows by key, under START/LIMIT/ONLY the same rows in a {@link Window}; the running hash; the moves of the
 * current step. Cost per added, removed or changed row: O(1), in a window O(log n).
 */
import { plainFailure } from "../../surql/evaluate/failure.ts"
import { noSlot } from "../../view/watch.ts"
import type { DeltaBuilder, MovedChild, Shown } from "../delta/delta.ts"
import * as Hashes from "../delta/hash.ts"
import type { StepLog } from "../delta/stepLog.ts"
import type { WorkCounters } from "../workCounters.ts"
import type { RowOrder } from "./sortedLeaf.ts"
import { type Bounds, Window } from "./window.ts"

/** Order and hash of rows of one kind; one object for each shape. */
export interface RowKind<T extends Shown> extends RowOrder<T> {
  readonly hash: (row: T) => Hashes.Hash64
}

/** The database's error for ONLY with several rows. */
export const severalRowsFailure = plainFailure("Expected a single result output when using the ONLY keyword")

/** The engine services that a result uses. */
interface ResultContext {
  readonly counters: WorkCounters
  readonly moves: StepLog
}

/** A row with the notes of its result: its share in the result's hash, and whether it is shown. */
export interface Showable extends Hashes.HashSum {
  shown: boolean
}

/** A row object that can take over the state of another row of the same record. */
interface Renewable<T> {
  renew(state: T): void
}

/** A result as the code that adds rows to it sees it. */
export interface TakesRows<T> {
  move(before: T | undefined, after: T | undefined): void
  insert(row: T): void
  remove(row: T): void
  replace(before: T, after: T): void
}

export abstract class ResultSet<T extends Shown & Showable> extends Window<T> implements Hashes.HashSum, TakesRows<T> {
  declare protected readonly kind: RowKind<T>
  /** The running hash: two fields instead of an object, since a change finds each object cold. */
  high = 0
  low = 0
  readonly context: ResultContext
  /** Watchdog slot of the view it is evaluated for (`EvaluationNote`); of several views the first. */
  watchSlot = noSlot
  /** Under ONLY: the rows in the window, at most two; a single one is shown. */
  private readonly candidates: Array<T> | undefined
  /** The first fill is under way: its rows are no delta, so no moves are noted. */
  private filling = true
  /** Position of this step's moves in the log; -1: nothing has moved yet. */
  private pending = -1
  private shown = 0

  /** `bounds` undefined: all rows are shown. */
  constructor(kind: RowKind<T>, bounds: Bounds | undefined, only: boolean, context: ResultContext) {
    super(kind, only ? { start: bounds?.start ?? 0, limit: Math.min(bounds?.limit ?? Infinity, 2) } : bounds)
    this.context = context
    this.candidates = only ? [] : undefined
  }

  /** Called when a step first moves a row or marks a group. */
  abstract changed(): void

  /** Called when the view begins to leave out failing rows. */
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

  /** The shown rows of a window in order; undefined without a window: then the owner of the rows sorts them. */
  inWindow(): ReadonlyArray<T> | undefined {
    return this.candidates !== undefined
      ? this.candidates.length === 1
        ? [...this.candidates]
        : []
      : this.hasWindow
        ? this.inside()
        : undefined
  }

  /** Replaces a row's old state by its new one; undefined: not in the result. */
  move(before: T | undefined, after: T | undefined): void {
    if (before === undefined) this.insert(after!)
    else if (after === undefined) this.remove(before)
    else this.replace(before, after)
  }

  insert(row: T): void {
    if (!this.hasWindow) return this.show(row)
    this.context.counters.windows++
    this.take(row)
  }

  remove(row: T): void {
    if (!this.hasWindow) return this.hide(row)
    this.context.counters.windows++
    this.settle()
    this.drop(row)
  }

  /** Replaces a row's old state by its new one; both have the same key. */
  replace(before: T, after: T): void {
    if (!this.hasWindow) return this.showInstead(before, after)
    this.context.counters.windows++
    this.settle()
    if (this.kind.compare(before, after) === 0) this.swap(before, after)
    else {
      this.drop(before)
      this.take(after)
    }
  }

  /** Gives a row object a new state of its record. A row that keeps its place is not searched for. */
  renew(row: T & Renewable<T>, state: T): void {
    if (this.hasWindow) {
      this.context.counters.windows++
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

  /** One child result of a row changed, and the row keeps its place: `by` is the difference of its hash. */
  refreshed(row: T, child: MovedChild, by: Hashes.Hash64): void {
    this.settle()
    if (!row.shown) return
    if (!this.filling) this.step().refreshed(row, child)
    Hashes.add(row, by)
    Hashes.add(this, by)
  }

  /** Ends the first fill: all later moves belong to a delta. */
  protected filled(): void {
    this.settle()
    this.filling = false
  }

  /** Ends the step and answers its moves; undefined: none. */
  protected moved(): DeltaBuilder | undefined {
    const { pending } = this
    if (pending === -1) return undefined
    this.pending = -1
    return this.context.moves.at(pending)
  }

  /** Called by the window: a row is inside now. */
  protected entered(row: T): void {
    if (this.candidates === undefined) this.show(row)
    else this.candidate(row, this.candidates)
  }

  /** Called by the window: a row is no longer inside. */
  protected left(row: T): void {
    if (this.candidates === undefined) this.hide(row)
    else this.notCandidate(row, this.candidates)
  }

  /** Called by the window: a row inside has a new state. */
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

  /** Shows the new state of a shown row. */
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
      this.pending = this.context.moves.open(this)
      this.changed()
    }
    return this.context.moves.at(this.pending)
  }
}
