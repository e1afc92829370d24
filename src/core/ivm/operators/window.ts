/**
 * The window of an ordered result (ORDER BY / START / LIMIT): all matching rows in order, and which of them are inside.
 *
 * State: one array while the rows are few, as most windows hold a screenful; beyond that a list of chunks. A row's
 * position says whether it is inside, and only rows that cross an edge are reported: a row added or removed before the
 * window shifts one row over each edge. Invariant: the window never holds more than `limit` rows. Cost per change:
 * O(log n) and the number of rows inside.
 *
 * An operator with a window extends this class: one object less to load for a change, which finds each object cold.
 */

import { mergeSort } from "../../mergeSort.ts"
import { drain, type Slices } from "../../surql/evaluate/scope.ts"
import { CountsWork } from "../workCounters.ts"
import {
  insertRow,
  leafOf,
  maxLeaf,
  type RowOrder,
  removeRow,
  replaceRow,
  rowAt,
  rowsOf,
  type SortedLeaf
} from "./sortedLeaf.ts"
import { SortedList } from "./sortedList.ts"

export interface Bounds {
  readonly start: number
  /** Number of rows; may be Infinity. */
  readonly limit: number
}

/** In effect no limit, but an integer that V8 stores without an object. */
const unlimited = 2 ** 30 - 1

export abstract class Window<T> extends CountsWork {
  protected readonly kind: RowOrder<T>
  private readonly start: number
  private readonly limit: number
  /** The rows while they are few; undefined without a window: then all rows are inside, in no order. */
  private cells: SortedLeaf<T> | undefined
  /** The rows once they are many, instead of `cells`. */
  private many: SortedList<T> | undefined = undefined
  /** Rows of the first fill, in no order: sorting them once at its end costs a fraction of as many inserts. */
  private loading: Array<T> | undefined

  /** `bounds` undefined: no window. */
  constructor(kind: RowOrder<T>, bounds: Bounds | undefined) {
    super()
    this.kind = kind
    this.start = bounds?.start ?? 0
    this.limit = Math.min(bounds?.limit ?? unlimited, unlimited)
    this.cells = bounds && []
    this.loading = bounds && []
  }

  protected abstract entered(row: T): void
  protected abstract left(row: T): void
  /** A row inside has a new state and keeps its place. */
  protected abstract replaced(before: T, after: T): void

  protected get hasWindow(): boolean {
    return this.cells !== undefined
  }

  /**
   * The known rows, inside or not, in order after the first fill. Lazy, for there may be many. Without a window the
   * view has the rows.
   */
  *known(): Iterable<T> {
    if (this.loading !== undefined) yield* this.loading
    else if (this.many !== undefined) yield* this.many.ones()
    else yield* rowsOf(this.cells ?? none)
  }

  get knownCount(): number {
    const { cells, loading, many } = this
    return loading !== undefined
      ? loading.length
      : many !== undefined
        ? many.size
        : cells === undefined
          ? 0
          : cells.length >> 1
  }

  /** The row at a position, in order, inside or not; undefined behind the last. */
  knownAt(position: number): T | undefined {
    return this.many === undefined ? this.cells && rowAt(this.cells, position) : this.many.at(position)
  }

  /** The rows inside, in order. */
  protected inside(): ReadonlyArray<T> {
    return this.many === undefined
      ? rowsOf(this.cells ?? none).slice(this.start, this.start + this.limit)
      : this.many.inside()
  }

  /** Adds a row; during the first fill it is reported only by {@link settle}. */
  protected take(row: T): void {
    if (this.loading !== undefined) {
      this.loading.push(row)
      return
    }
    const { limit, start } = this
    const at = this.put(row)
    const end = start + limit,
      held = this.knownCount
    if (limit === 0 || at >= end || held <= start) return
    this.entered(at < start ? this.knownAt(start)! : row)
    if (held > end) this.left(this.knownAt(end)!)
  }

  /** Sorts the loaded rows with pauses and ends the fill; rows added in a pause are inserted at the end. */
  protected *sortLoaded(): Slices<void> {
    const { kind, loading } = this
    if (loading === undefined) return
    const count = loading.length,
      sorted = yield* mergeSort([...loading], kind.compare)
    const list = count > maxLeaf ? yield* this.listOf(sorted) : undefined
    // A row changed or removed in a pause has already ended the fill.
    if (this.loading !== loading) return
    const later = loading.slice(count)
    if (list === undefined) return this.settle()
    for (const row of later) list.put(row)
    this.loading = undefined
    this.many = list
    for (const row of this.inside()) this.entered(row)
  }

  /** Ends the fill: sorts the loaded rows and reports the ones inside. */
  protected settle(): void {
    const { kind, loading } = this
    if (loading === undefined) return
    this.loading = undefined
    this.fill(loading.sort(kind.compare))
    for (const row of this.inside()) this.entered(row)
  }

  protected drop(row: T): void {
    const { limit, start } = this
    const at = this.pull(row)
    const end = start + limit,
      held = this.knownCount
    if (limit === 0 || at >= end || held < start) return
    this.left(at < start ? this.knownAt(start - 1)! : row)
    if (held >= end) this.entered(this.knownAt(end - 1)!)
  }

  /** Replaces a row by its new state; both must compare 0. */
  protected swap(before: T, after: T): void {
    const { kind, many, start } = this
    const at = many !== undefined ? many.swap(after) : replaceRow(this.cells!, after, kind)
    if (at >= start && at < start + this.limit) this.replaced(before, after)
  }

  private put(row: T): number {
    const { kind, many } = this
    if (many !== undefined) return many.put(row)
    const cells = this.cells!
    const at = insertRow(cells, row, kind)
    if (cells.length > 2 * maxLeaf) this.fill(rowsOf(cells))
    return at
  }

  private pull(row: T): number {
    const { kind, many } = this
    if (many === undefined) return removeRow(this.cells!, row, kind)
    const at = many.take(row)
    if (many.size <= maxLeaf / 2) this.fill(many.all())
    return at
  }

  private fill(rows: ReadonlyArray<T>): void {
    this.many = rows.length > maxLeaf ? drain(this.listOf(rows)) : undefined
    this.cells = this.many === undefined ? leafOf(rows, this.kind) : []
  }

  private listOf(rows: ReadonlyArray<T>): Slices<SortedList<T>> {
    const { kind, limit, start } = this
    return SortedList.of(rows, kind, start, start + limit)
  }
}

const none: SortedLeaf<never> = []
