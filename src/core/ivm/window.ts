/**
 * The window of an ordered result (ORDER BY / START / LIMIT): all matching rows in a B-tree, and the two rows at the
 * window's edges.
 *
 * State: the tree, `first` = the row at position `start`, `last` = the last row inside. Positions are never counted:
 * an insert before `first` shifts the window by one row at each edge, a removal shifts it back, and the neighbours
 * come from the tree. Cost per change: O(log n). Invariant: the window never holds more than `limit` rows, and only
 * rows that cross an edge are reported.
 */
import sortedBTree from "sorted-btree"

const BTree = sortedBTree.default

/** Told of each row that comes into or goes out of the window. */
export interface WindowSink<T> {
  readonly entered: (row: T) => void
  readonly left: (row: T) => void
}

export class Window<T> {
  private readonly tree: InstanceType<typeof BTree<T, undefined>>
  private readonly compare: (a: T, b: T) => number
  private readonly start: number
  private readonly limit: number
  private readonly sink: WindowSink<T>
  private first: T | undefined = undefined
  private last: T | undefined = undefined

  /** `compare` must be total: rows that compare 0 are the same row. `limit` may be Infinity. */
  constructor(compare: (a: T, b: T) => number, start: number, limit: number, sink: WindowSink<T>) {
    this.tree = new BTree<T, undefined>(undefined, compare)
    this.compare = compare
    this.start = start
    this.limit = limit
    this.sink = sink
  }

  /** Rows held, inside the window or not. */
  get held(): number {
    return this.tree.size
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

  /** Puts the new state of a row where its old state stands; both must compare 0. */
  replace(before: T, after: T): void {
    this.tree.set(after, undefined, true)
    if (this.first === undefined || this.last === undefined) return
    const toFirst = this.compare(after, this.first)
    const toLast = this.compare(after, this.last)
    if (toFirst < 0 || toLast > 0) return
    if (toFirst === 0) this.first = after
    if (toLast === 0) this.last = after
    this.sink.left(before)
    this.sink.entered(after)
  }

  private dropLast(): void {
    const dropped = this.last!
    this.sink.left(dropped)
    this.last = this.tree.nextLowerKey(dropped)
  }
}
