/**
 * The window of an ordered result (ORDER BY / START / LIMIT): all matching rows in order, and which of them are inside.
 *
 * State: while the rows are few, an array, where a row's position says whether it is inside: most windows of a service
 * hold a screenful, and there one array is less memory to touch than a tree. Beyond that a B-tree and the two rows at
 * the window's edges: `first` = the row at position `start`, `last` = the last row inside. There positions are never
 * counted: an insert before `first` shifts the window by one row at each edge, a removal shifts it back, and the
 * neighbours come from the tree. Cost per change: O(log n). Invariant: the window never holds more than `limit` rows,
 * and only rows that cross an edge are reported.
 */
import sortedBTree from "sorted-btree"
import { bulkLoad } from "sorted-btree/extended/bulkLoad.js"
import type { Value } from "../surql/value.ts"

const BTree = sortedBTree.default

/** Told of each row that comes into or goes out of the window. */
export interface WindowSink<T> {
  readonly entered: (row: T) => void
  readonly left: (row: T) => void
  /** Of a row that stays where it is: its new state for its old one. */
  readonly replaced: (before: T, after: T) => void
}

/** The order of the rows: total, so that rows that compare 0 are the same row. */
export interface RowOrder<T> {
  readonly compare: (a: T, b: T) => number
  /** The value that decides first, where it is one value: kept beside the rows, so that a search need not look at them. */
  readonly lead?: ((row: T) => Value) | undefined
  readonly compareLeads?: ((a: Value, b: Value) => number) | undefined
}

/** Rows that stay in the array; half as many bring a tree back to one. */
const few = 64

/** Rows of a node, the library's own default. */
const nodeSize = 32

class Many<T> {
  private readonly tree: InstanceType<typeof BTree<T, undefined>>
  private readonly compare: (a: T, b: T) => number
  private readonly start: number
  private readonly limit: number
  private readonly sink: WindowSink<T>
  private first: T | undefined = undefined
  private last: T | undefined = undefined

  /** Takes over rows in order, of which the right ones are known to be inside. */
  constructor(compare: (a: T, b: T) => number, start: number, limit: number, sink: WindowSink<T>, rows: ReadonlyArray<T>) {
    this.tree = bulkLoad<T, undefined>([...rows], Array(rows.length).fill(undefined), nodeSize, compare)
    this.compare = compare
    this.start = start
    this.limit = limit
    this.sink = sink
    if (this.size === 0) return
    this.first = rows[start]
    this.last = rows[start + this.size - 1]
  }

  get held(): number {
    return this.tree.size
  }

  all(): ReadonlyArray<T> {
    return [...this.tree.keys()]
  }

  /** At hand for the last row of a full window; any other is looked for. */
  at(position: number): T | undefined {
    if (position >= this.tree.size) return undefined
    return position === this.start + this.limit - 1 && this.last !== undefined ? this.last : this.all()[position]
  }

  /** Rows inside the window. */
  get size(): number {
    return Math.max(0, Math.min(this.tree.size - this.start, this.limit))
  }

  *rows(): Iterable<T> {
    let left = this.size
    if (this.first === undefined) return
    for (const row of this.tree.keys(this.first)) {
      if (left-- <= 0) return
      yield row
    }
  }

  insert(row: T): void {
    const before = this.tree.size
    this.tree.set(row, undefined)
    if (this.limit === 0 || before < this.start) return
    if (this.first === undefined || this.last === undefined) {
      this.first = this.last = this.tree.maxKey()
      this.sink.entered(this.first!)
      return
    }
    const full = before - this.start >= this.limit
    if (this.compare(row, this.first) < 0) {
      this.first = this.tree.nextLowerKey(this.first)!
      this.sink.entered(this.first)
      if (full) this.dropLast()
    } else if (this.compare(row, this.last) > 0) {
      if (full) return
      this.last = row
      this.sink.entered(row)
    } else {
      this.sink.entered(row)
      if (full) this.dropLast()
    }
  }

  remove(row: T): void {
    if (this.first === undefined || this.last === undefined) {
      this.tree.delete(row)
      return
    }
    const beyond = this.tree.size - this.start > this.limit
    const toFirst = this.compare(row, this.first)
    const toLast = this.compare(row, this.last)
    this.tree.delete(row)
    if (toLast > 0) return
    if (toFirst < 0) this.sink.left(this.first)
    else this.sink.left(row)
    const { last } = this
    if (toFirst <= 0) this.first = this.tree.nextHigherKey(this.first)
    if (beyond) {
      this.last = this.tree.nextHigherKey(last)!
      this.sink.entered(this.last)
    } else if (this.first === undefined || this.compare(this.first, last) > 0) {
      this.first = this.last = undefined
    } else if (toLast === 0) {
      this.last = this.tree.nextLowerKey(last)
    }
  }

  replace(before: T, after: T): void {
    this.tree.set(after, undefined, true)
    if (this.first === undefined || this.last === undefined) return
    const toFirst = this.compare(after, this.first)
    const toLast = this.compare(after, this.last)
    if (toFirst < 0 || toLast > 0) return
    if (toFirst === 0) this.first = after
    if (toLast === 0) this.last = after
    this.sink.replaced(before, after)
  }

  private dropLast(): void {
    const dropped = this.last!
    this.sink.left(dropped)
    this.last = this.tree.nextLowerKey(dropped)
  }
}

export class Window<T> {
  private readonly order: RowOrder<T>
  private readonly start: number
  private readonly limit: number
  private readonly sink: WindowSink<T>
  /** The rows in order, each behind its lead: one array, so that a search and what it finds lie together. */
  private cells: Array<Value | T> = []
  /** Instead of the array. */
  private many: Many<T> | undefined = undefined
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
    const { loading, limit, order: { compare }, sink, start } = this
    if (loading === undefined) return
    this.loading = undefined
    loading.sort(compare)
    if (loading.length > few) this.many = new Many(compare, start, limit, sink, loading)
    else this.fill(loading)
    for (const row of this.rows()) sink.entered(row)
  }

  /** Rows held, inside the window or not. */
  get held(): number {
    return this.loading !== undefined ? this.loading.length : this.many === undefined ? this.cells.length >> 1 : this.many.held
  }

  /** Rows inside the window. */
  get size(): number {
    return Math.max(0, Math.min(this.held - this.start, this.limit))
  }

  /** The rows inside, in order. */
  rows(): Iterable<T> {
    return this.many === undefined ? this.few().slice(this.start, this.start + this.limit) : this.many.rows()
  }

  /** The rows held, in order. */
  all(): ReadonlyArray<T> {
    return this.many === undefined ? this.few() : this.many.all()
  }

  /** The row held at a position, inside the window or not. */
  at(position: number): T | undefined {
    return this.many === undefined ? this.row(position) : this.many.at(position)
  }

  insert(row: T): void {
    const { cells, limit, many, sink, start } = this
    if (many !== undefined) return many.insert(row)
    const at = this.position(row)
    put(cells, 2 * at, this.leadOf(row), row)
    const end = start + limit, held = cells.length >> 1
    if (limit > 0 && at < end && held > start) {
      sink.entered(at < start ? this.row(start) : row)
      if (held > end) sink.left(this.row(end))
    }
    if (held > few) this.grow()
  }

  remove(row: T): void {
    const { cells, limit, many, sink, start } = this
    if (many !== undefined) {
      many.remove(row)
      if (many.held <= few / 2) this.shrink(many)
      return
    }
    const at = this.position(row)
    const end = start + limit
    const inside = limit > 0 && at < end && (cells.length >> 1) > start
    const left = inside && at < start ? this.row(start) : row
    take(cells, 2 * at)
    if (!inside) return
    sink.left(left)
    if ((cells.length >> 1) >= end) sink.entered(this.row(end - 1))
  }

  /** Puts the new state of a row where its old state stands; both must compare 0. */
  replace(before: T, after: T): void {
    const { cells, limit, many, sink, start } = this
    if (many !== undefined) return many.replace(before, after)
    const at = this.position(after)
    cells[2 * at + 1] = after
    if (at < start || at >= start + limit) return
    sink.replaced(before, after)
  }

  private row(position: number): T {
    return this.cells[2 * position + 1] as T
  }

  private leadOf(row: T): Value {
    const { lead } = this.order
    return lead === undefined ? undefined : lead(row)
  }

  /** The rows of the array. */
  private few(): ReadonlyArray<T> {
    return Array.from({ length: this.cells.length >> 1 }, (_, i) => this.row(i))
  }

  /** Where a row of the array stands, or would. */
  private position(row: T): number {
    const { cells, order: { compare, compareLeads, lead } } = this
    const own = this.leadOf(row)
    let low = 0
    for (let high = cells.length >> 1; low < high;) {
      const middle = (low + high) >> 1
      const order = (lead === undefined ? 0 : compareLeads!(cells[2 * middle] as Value, own)) || compare(this.row(middle), row)
      if (order < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  private fill(rows: ReadonlyArray<T>): void {
    this.cells = rows.flatMap((row) => [this.leadOf(row), row])
  }

  private grow(): void {
    this.many = new Many(this.order.compare, this.start, this.limit, this.sink, this.few())
    this.cells = []
  }

  private shrink(many: Many<T>): void {
    this.fill(many.all())
    this.many = undefined
  }
}

/** Makes room for a lead and its row. */
const put = <A>(cells: Array<A>, at: number, lead: A, row: A): void => {
  cells.push(lead, row)
  for (let i = cells.length - 1; i > at + 1; i--) cells[i] = cells[i - 2]!
  cells[at] = lead
  cells[at + 1] = row
}

const take = <A>(cells: Array<A>, at: number): void => {
  for (let i = at + 2; i < cells.length; i++) cells[i - 2] = cells[i]!
  cells.pop()
  cells.pop()
}
