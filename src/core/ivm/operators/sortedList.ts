/**
 * The rows of a large window in order, in chunks of a few dozen.
 *
 * State: the chunks, none of them empty; the first row of each, which lead to them; and where in them the window
 * starts, so that positions around it are known without counting from the front. Cost of a change: O(log n) to find its
 * place, then a chunk's worth of moves, and as many chunks as the window shows. Only where a chunk comes or goes, once
 * in dozens of changes, are the lists of chunks moved as well, and the start counted anew.
 *
 * Why not a tree of a library: it compares rows, which a change finds cold one by one, and the neighbours at the edges
 * are more searches. Leads beside the rows take two thirds of the time.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Value } from "../../surql/values/value.ts"
import {
  few,
  leadOf,
  leafOf,
  put,
  type RowOrder,
  rowAt,
  rowsOf,
  type SortedLeaf,
  search,
  swap,
  take
} from "./sortedLeaf.ts"

/** A chunk with no more rows joins a neighbour that has room. */
const scant = few / 4

/** Rows of a chunk at first: room for as many that come. */
const packed = (few * 3) / 4

/** Chunks that are made between two pauses. */
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
   * The chunk that has the row at `start` (the last one where there is none), and how many rows stand before that
   * chunk.
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

  /** Of rows in order, with pauses. Positions from `end` on need not be known. */
  static *of<T>(rows: ReadonlyArray<T>, order: RowOrder<T>, start: number, end: number): Slices<SortedList<T>> {
    const chunks: Array<SortedLeaf<T>> = []
    for (let i = 0; i < rows.length; i += packed) {
      chunks.push(leafOf(rows.slice(i, i + packed), order))
      if (chunks.length % chunksPerSlice === 0) yield
    }
    return new SortedList(chunks, rows.length, order, start, end)
  }

  /** Puts a row in its place. Answers its position: any before `start` or from `end` on stands for all of those. */
  put(row: T): number {
    const { chunks, heads, order } = this
    const at = this.chunkOf(row)
    const cells = chunks[at]!
    const within = put(cells, row, order)
    const position = this.position(at, within)
    if (within === 0) this.head(at, cells)
    this.size++
    if (at < this.first) this.before++
    if (cells.length > 2 * few) {
      const upper = cells.splice(few)
      chunks.splice(at + 1, 0, upper)
      heads.splice(2 * at + 2, 0, upper[0] as Value, upper[1] as T)
      this.find()
    } else this.follow()
    return position
  }

  /** Takes a row out. Answers the position it had. */
  take(row: T): number {
    const at = this.chunkOf(row)
    const cells = this.chunks[at]!
    const within = take(cells, row, this.order)
    const position = this.position(at, within)
    this.size--
    if (at < this.first) this.before--
    if (cells.length > 2 * scant) {
      if (within === 0) this.head(at, cells)
      this.follow()
    } else this.join(at, cells)
    return position
  }

  /** Puts the new state of a row where its old one stands. Answers the position. */
  swap(row: T): number {
    const at = this.chunkOf(row)
    const cells = this.chunks[at]!
    const within = swap(cells, row, this.order)
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

  /** The same, one chunk after the other. */
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
    return Math.max(0, search(this.heads, row, leadOf(row, this.order), this.order, true) - 1)
  }

  private count(at: number): number {
    return this.chunks[at]!.length >> 1
  }

  private position(at: number, within: number): number {
    // Wholly before the window: the chunk that has its first row comes later.
    if (at < this.first) return -1
    let before = this.before
    for (let i = this.first; i < at && before < this.end; i++) before += this.count(i)
    return before + within
  }

  private head(at: number, cells: SortedLeaf<T>): void {
    this.heads[2 * at] = cells[0]!
    this.heads[2 * at + 1] = cells[1]!
  }

  /** Lets a small chunk go, or makes one of two; where its neighbour has no room it stays. */
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

  /** Counts the start anew. */
  private find(): void {
    this.first = this.before = 0
    this.follow()
  }

  /** Moves the start along, by a chunk at most where it was right before the last row came or went. */
  private follow(): void {
    const { start } = this
    while (this.before > start) this.before -= this.count(--this.first)
    while (this.first + 1 < this.chunks.length && this.before + this.count(this.first) <= start)
      this.before += this.count(this.first++)
  }
}
