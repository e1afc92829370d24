/**
 * The rows of a large window in order, in chunks of a few dozen.
 *
 * State: the chunks, none of them empty; the first row of each, for the search; and the chunk where the window starts,
 * so that positions near it are known without counting from the front. Cost of a change: O(log n) to find its place,
 * then a chunk's worth of moves, and as many chunks as the window shows. Only if a chunk is added or removed, once in
 * dozens of changes, the list of chunks is moved as well and the start counted again.
 *
 * Why not a tree of a library: it compares rows, which a change finds cold one by one, and finding the neighbours at
 * the edges takes more searches. Leads beside the rows take two thirds of the time.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Value } from "../../surql/values/value.ts"
import {
  insertRow,
  leadOf,
  leafOf,
  maxLeaf,
  type RowOrder,
  removeRow,
  replaceRow,
  rowAt,
  rowsBefore,
  rowsOf,
  type SortedLeaf
} from "./sortedLeaf.ts"

/** A chunk with no more rows than this joins a neighbour that has room. */
const scant = maxLeaf / 4

/** Rows of a new chunk: leaves room for a third more. */
const packed = (maxLeaf * 3) / 4

/** Chunks built between two pauses. */
const chunksPerSlice = 64

export class SortedList<T> {
  size: number
  private readonly order: RowOrder<T>
  private readonly start: number
  private readonly end: number
  private readonly chunks: Array<SortedLeaf<T>>
  /** The first row of each chunk. */
  private readonly heads: SortedLeaf<T>
  /**
   * The chunk that has the row at `start` (without such a row: the last one), and the number of rows before that chunk.
   */
  private first = 0
  private before = 0

  private constructor(chunks: Array<SortedLeaf<T>>, size: number, order: RowOrder<T>, start: number, end: number) {
    this.order = order
    this.start = start
    this.end = end
    this.size = size
    this.chunks = chunks
    this.heads = chunks.flatMap((cells) => [cells[0] as Value, cells[1] as T])
    this.find()
  }

  /** Builds a list from rows in order, with pauses. Positions from `end` on need not be exact. */
  static *of<T>(rows: ReadonlyArray<T>, order: RowOrder<T>, start: number, end: number): Slices<SortedList<T>> {
    const chunks: Array<SortedLeaf<T>> = []
    for (let i = 0; i < rows.length; i += packed) {
      chunks.push(leafOf(rows.slice(i, i + packed), order))
      if (chunks.length % chunksPerSlice === 0) yield
    }
    return new SortedList(chunks, rows.length, order, start, end)
  }

  /** Inserts a row. Answers its position; exact only between `start` and `end`. */
  put(row: T): number {
    const { chunks, heads, order } = this
    const at = this.chunkOf(row)
    const cells = chunks[at]!
    const within = insertRow(cells, row, order)
    const position = this.position(at, within)
    if (within === 0) this.head(at, cells)
    this.size++
    if (at < this.first) this.before++
    if (cells.length > 2 * maxLeaf) {
      const upper = cells.splice(maxLeaf)
      chunks.splice(at + 1, 0, upper)
      heads.splice(2 * at + 2, 0, upper[0] as Value, upper[1] as T)
      this.find()
    } else this.follow()
    return position
  }

  /** Removes a row. Answers its former position. */
  take(row: T): number {
    const at = this.chunkOf(row)
    const cells = this.chunks[at]!
    const within = removeRow(cells, row, this.order)
    const position = this.position(at, within)
    this.size--
    if (at < this.first) this.before--
    if (cells.length > 2 * scant) {
      if (within === 0) this.head(at, cells)
      this.follow()
    } else this.join(at, cells)
    return position
  }

  /** Replaces a row by its new state. Answers the position. */
  swap(row: T): number {
    const at = this.chunkOf(row)
    const cells = this.chunks[at]!
    const within = replaceRow(cells, row, this.order)
    if (within === 0) this.head(at, cells)
    return this.position(at, within)
  }

  at(position: number): T | undefined {
    const { chunks } = this
    let at = this.first,
      before = this.before
    while (at > 0 && before > position) before -= this.count(--at)
    for (; at < chunks.length; at++) {
      const count = this.count(at)
      if (position < before + count) return rowAt(chunks[at]!, position - before)
      before += count
    }
    return undefined
  }

  all(): Array<T> {
    return this.chunks.flatMap(rowsOf)
  }

  /** All rows in order, one by one. */
  *ones(): Iterable<T> {
    for (const cells of this.chunks) yield* rowsOf(cells)
  }

  /** The rows from `start` to `end`. */
  inside(): Array<T> {
    const { chunks, end, first, before, start } = this
    const rows: Array<T> = []
    for (let at = first; at < chunks.length && before + rows.length < end; at++) rows.push(...rowsOf(chunks[at]!))
    return rows.slice(start - before, end - before)
  }

  private chunkOf(row: T): number {
    return Math.max(0, rowsBefore(this.heads, row, leadOf(row, this.order), this.order, true) - 1)
  }

  private count(at: number): number {
    return this.chunks[at]!.length >> 1
  }

  private position(at: number, within: number): number {
    // The chunk lies before the window, so the row is not inside.
    if (at < this.first) return -1
    let before = this.before
    for (let i = this.first; i < at && before < this.end; i++) before += this.count(i)
    return before + within
  }

  private head(at: number, cells: SortedLeaf<T>): void {
    this.heads[2 * at] = cells[0]!
    this.heads[2 * at + 1] = cells[1]!
  }

  /** Removes an empty chunk or joins a small one with a neighbour; without room in the neighbour it stays. */
  private join(at: number, cells: SortedLeaf<T>): void {
    const { chunks } = this
    if (cells.length === 0) return this.drop(at)
    this.head(at, cells)
    const left = at + 1 < chunks.length ? at : at - 1
    if (left < 0 || this.count(left) + this.count(left + 1) > packed) return this.follow()
    for (const cell of chunks[left + 1]!) chunks[left]!.push(cell)
    this.drop(left + 1)
  }

  private drop(at: number): void {
    this.chunks.splice(at, 1)
    this.heads.splice(2 * at, 2)
    this.find()
  }

  /** Counts rows from the front to find the start. */
  private find(): void {
    this.first = this.before = 0
    this.follow()
  }

  /** Moves the start by one chunk at most: it was right before the last row was added or removed. */
  private follow(): void {
    const { start } = this
    while (this.before > start) this.before -= this.count(--this.first)
    while (this.first + 1 < this.chunks.length && this.before + this.count(this.first) <= start)
      this.before += this.count(this.first++)
  }
}
