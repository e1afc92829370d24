/**
 * The window of an ordered result (ORDER BY / START / LIMIT): all matching rows in order, and which of them are inside.
 *
 * State: while the rows are few, one array, as most windows of a service hold a screenful; beyond that chunks of them. A
 * row's position says whether it is inside, and only rows that cross an edge are reported: one that comes or goes before the
 * window shifts it by one row at each edge. Invariant: the window never holds more than `limit` rows. Cost per change:
 * O(log n) and what the window shows.
 */
import { type Cells, cellsOf, few, leadOf, put, rowAt, type RowOrder, rowsOf, search, take } from "./cells.ts"
import { Chunks } from "./chunks.ts"

/** Told of each row that comes into or goes out of the window. */
export interface WindowSink<T> {
  readonly entered: (row: T) => void
  readonly left: (row: T) => void
  /** Of a row that stays where it is: its new state for its old one. */
  readonly replaced: (before: T, after: T) => void
}

export class Window<T> {
  private readonly order: RowOrder<T>
  private readonly start: number
  private readonly limit: number
  private readonly sink: WindowSink<T>
  private cells: Cells<T> = []
  /** Instead of the array. */
  private many: Chunks<T> | undefined = undefined
  /** What the first fill has brought so far, in no order: sorted once at its end, it costs a fraction of as many inserts. */
  private loading: Array<T> | undefined = undefined

  /** `limit` may be Infinity. */
  constructor(order: RowOrder<T>, start: number, limit: number, sink: WindowSink<T>) {
    this.order = order
    this.start = start
    this.limit = limit
    this.sink = sink
  }

  /** Takes a row of the first fill; nobody hears of it before {@link settle}. */
  load(row: T): void {
    (this.loading ??= []).push(row)
  }

  /** Ends the fill: puts what was loaded in order and tells of the rows inside. */
  settle(): void {
    const { loading, order, sink } = this
    if (loading === undefined) return
    this.loading = undefined
    this.fill(loading.sort(order.compare))
    for (const row of this.rows()) sink.entered(row)
  }

  /** Rows held, inside the window or not. */
  get held(): number {
    return this.loading !== undefined ? this.loading.length : this.many === undefined ? this.cells.length >> 1 : this.many.size
  }

  /** Rows inside the window. */
  get size(): number {
    return Math.max(0, Math.min(this.held - this.start, this.limit))
  }

  /** The rows inside, in order. */
  rows(): ReadonlyArray<T> {
    return this.many === undefined ? rowsOf(this.cells).slice(this.start, this.start + this.limit) : this.many.inside()
  }

  /** The rows held, in order. */
  all(): ReadonlyArray<T> {
    return this.many === undefined ? rowsOf(this.cells) : this.many.all()
  }

  /** The row held at a position, inside the window or not. */
  at(position: number): T | undefined {
    return this.many === undefined ? rowAt(this.cells, position) : this.many.at(position)
  }

  insert(row: T): void {
    const { limit, sink, start } = this
    const at = this.put(row)
    const end = start + limit, { held } = this
    if (limit === 0 || at >= end || held <= start) return
    sink.entered(at < start ? this.at(start)! : row)
    if (held > end) sink.left(this.at(end)!)
  }

  remove(row: T): void {
    const { limit, sink, start } = this
    const at = this.take(row)
    const end = start + limit, { held } = this
    if (limit === 0 || at >= end || held < start) return
    sink.left(at < start ? this.at(start - 1)! : row)
    if (held >= end) sink.entered(this.at(end - 1)!)
  }

  /** Puts the new state of a row where its old state stands; both must compare 0. */
  replace(before: T, after: T): void {
    const at = this.swap(after)
    if (at >= this.start && at < this.start + this.limit) this.sink.replaced(before, after)
  }

  private put(row: T): number {
    const { cells, many, order } = this
    if (many !== undefined) return many.put(row)
    const lead = leadOf(row, order)
    const at = search(cells, row, lead, order, false)
    put(cells, at, lead, row)
    if (cells.length > 2 * few) this.fill(rowsOf(cells))
    return at
  }

  private take(row: T): number {
    const { cells, many, order } = this
    if (many !== undefined) {
      const at = many.take(row)
      if (many.size <= few / 2) this.fill(many.all())
      return at
    }
    const at = search(cells, row, leadOf(row, order), order, false)
    take(cells, at)
    return at
  }

  private swap(row: T): number {
    const { cells, many, order } = this
    if (many !== undefined) return many.swap(row)
    const at = search(cells, row, leadOf(row, order), order, false)
    cells[2 * at + 1] = row
    return at
  }

  private fill(rows: ReadonlyArray<T>): void {
    const { limit, order, start } = this
    this.many = rows.length > few ? new Chunks(rows, order, start, start + limit) : undefined
    this.cells = this.many === undefined ? cellsOf(rows, order) : []
  }
}
