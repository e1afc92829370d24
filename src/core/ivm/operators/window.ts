/**
 * The window of an ordered result (ORDER BY / START / LIMIT): all matching rows in order, and which of them are inside.
 *
 * State: while the rows are few, one array, as most windows of a service hold a screenful; beyond that chunks of them.
 * A row's position says whether it is inside, and only rows that cross an edge are reported: one that comes or goes
 * before the window shifts it by one row at each edge. Invariant: the window never holds more than `limit` rows. Cost
 * per change: O(log n) and what the window shows.
 *
 * An operator with a window extends it, so that there is no object more to load for a change, which finds each of them
 * cold.
 */

import { mergeSort } from "../../mergeSort.ts"
import { drain, type Slices } from "../../surql/evaluate/scope.ts"
import { CountsWork } from "../workCounters.ts"
import { few, leafOf, put, type RowOrder, rowAt, rowsOf, type SortedLeaf, swap, take } from "./sortedLeaf.ts"
import { SortedList } from "./sortedList.ts"

export interface Bounds {
  readonly start: number
  /** May be Infinity. */
  readonly limit: number
}

/** As good as no limit, and an integer that V8 keeps in the object and not beside it. */
const unlimited = 2 ** 30 - 1

export abstract class Window<T> extends CountsWork {
  protected readonly kind: RowOrder<T>
  private readonly start: number
  private readonly limit: number
  /** Undefined where there is no window: everything is inside, in no order. */
  private cells: SortedLeaf<T> | undefined
  /** Instead of the array. */
  private many: SortedList<T> | undefined = undefined
  /**
   * What the first fill has brought so far, in no order: sorted once at its end, it costs a fraction of as many
   * inserts.
   */
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
  /** Of a row that stays where it is: its new state for its old one. */
  protected abstract replaced(before: T, after: T): void

  protected get hasWindow(): boolean {
    return this.cells !== undefined
  }

  /**
   * The rows it knows, inside or not, in order behind the first fill: a few at a time, for there may be many. Without a
   * window the view keeps them.
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

  /** The row at a position, in order, inside or not; undefined where it has not as many. */
  knownAt(position: number): T | undefined {
    return this.many === undefined ? this.cells && rowAt(this.cells, position) : this.many.at(position)
  }

  /** The rows inside, in order. */
  protected inside(): ReadonlyArray<T> {
    return this.many === undefined
      ? rowsOf(this.cells ?? none).slice(this.start, this.start + this.limit)
      : this.many.inside()
  }

  /** Takes a row; in the first fill it is not told of before {@link settle}. */
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

  /** Sorts the loaded rows with pauses and ends the fill; those that came in one of them are put in at the end. */
  protected *sortLoaded(): Slices<void> {
    const { kind, loading } = this
    if (loading === undefined) return
    const count = loading.length,
      sorted = yield* mergeSort([...loading], kind.compare)
    const list = count > few ? yield* this.listOf(sorted) : undefined
    // A row that changed or went in a pause has ended the fill.
    if (this.loading !== loading) return
    const later = loading.slice(count)
    if (list === undefined) return this.settle()
    for (const row of later) list.put(row)
    this.loading = undefined
    this.many = list
    for (const row of this.inside()) this.entered(row)
  }

  /** Ends the fill: sorts the loaded rows and tells of those inside. */
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

  /** Puts the new state of a row where its old state stands; both must compare 0. */
  protected swap(before: T, after: T): void {
    const { kind, many, start } = this
    const at = many !== undefined ? many.swap(after) : swap(this.cells!, after, kind)
    if (at >= start && at < start + this.limit) this.replaced(before, after)
  }

  private put(row: T): number {
    const { kind, many } = this
    if (many !== undefined) return many.put(row)
    const cells = this.cells!
    const at = put(cells, row, kind)
    if (cells.length > 2 * few) this.fill(rowsOf(cells))
    return at
  }

  private pull(row: T): number {
    const { kind, many } = this
    if (many === undefined) return take(this.cells!, row, kind)
    const at = many.take(row)
    if (many.size <= few / 2) this.fill(many.all())
    return at
  }

  private fill(rows: ReadonlyArray<T>): void {
    this.many = rows.length > few ? drain(this.listOf(rows)) : undefined
    this.cells = this.many === undefined ? leafOf(rows, this.kind) : []
  }

  private listOf(rows: ReadonlyArray<T>): Slices<SortedList<T>> {
    const { kind, limit, start } = this
    return SortedList.of(rows, kind, start, start + limit)
  }
}

const none: SortedLeaf<never> = []
