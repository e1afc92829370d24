/**
 * Read tracking: which rows of which views looked at something other than themselves: a record, the edges of one, a
 * whole table, or the result of a subquery.
 *
 * When that changes, exactly these rows are evaluated again. Rows that read nothing (the usual case) cost nothing.
 * State: per read the rows that did, and the way back to forget. What was read by one row names it without a map: the
 * result of a correlated subquery mostly is. Cost: O(things read) per evaluated row.
 */
import type { RecordSlot } from "../store/recordSlot.ts"

/** A row of a reader: the slot of its record, or the name of a group. */
export type ReaderRow = RecordSlot | string

/** Something that can evaluate one of its rows again. */
export interface Reader {
  readonly reread: (row: ReaderRow, cause: ReadResult | undefined) => void
}

/** Something a row can have read: named by a text (records, edges, tables), or the view of a subquery itself. */
export type Read = string | ReadResult

/** What rows have read. Its readers stand in it: they are not looked up, and a lone one is there without a map. */
export interface ReadByRows {
  reader: Reader | Map<Reader, Set<ReaderRow>> | undefined
  /** Of a lone reader. */
  row: ReaderRow
}

/** The result of a subquery. */
export type ReadResult = ReadByRows

/** Where rows are put that have to be read again; `cause`: the result that moved, if it is one. */
export interface DirtyRowSink {
  readonly add: (reader: Reader, row: ReaderRow, cause: ReadResult | undefined) => void
}

/** Adds each row that has read it to those that have to be read again; they may not change meanwhile. */
export const rereadAll = (
  { reader, row }: ReadByRows,
  dirtyRows: DirtyRowSink,
  cause: ReadResult | undefined
): void => {
  if (reader instanceof Map) for (const [each, rows] of reader) for (const one of rows) dirtyRows.add(each, one, cause)
  else if (reader !== undefined) dirtyRows.add(reader, row, cause)
}

const addRow = (read: ReadByRows, reader: Reader, row: ReaderRow): void => {
  if (read.reader === undefined) {
    read.reader = reader
    read.row = row
    return
  }
  if (!(read.reader instanceof Map)) {
    if (read.reader === reader && read.row === row) return
    read.reader = new Map([[read.reader, new Set([read.row])]])
    read.row = ""
  }
  const rows = read.reader.get(reader)
  if (rows === undefined) read.reader.set(reader, new Set([row]))
  else rows.add(row)
}

const removeRow = (read: ReadByRows, reader: Reader, row: ReaderRow): void => {
  if (!(read.reader instanceof Map)) {
    if (read.reader !== reader || read.row !== row) return
    read.reader = undefined
    read.row = ""
    return
  }
  const rows = read.reader.get(reader)
  if (rows === undefined || !rows.delete(row) || rows.size > 0) return
  read.reader.delete(reader)
  if (read.reader.size === 0) read.reader = undefined
}

export const nothing: ReadonlySet<Read> = new Set()

export class Dependencies {
  private readonly byText = new Map<string, ReadByRows>()
  private readonly byReader = new Map<Reader, Map<ReaderRow, ReadonlySet<Read>>>()
  private readonly idle: (read: ReadResult) => void

  /** `idle` is told when the last row that had read a result no longer does. */
  constructor(idle: (read: ReadResult) => void) {
    this.idle = idle
  }

  /** Replaces what this row of this reader has read. */
  watch(reader: Reader, row: ReaderRow, reads: ReadonlySet<Read>): void {
    let rows = this.byReader.get(reader)
    const before = rows?.get(row) ?? nothing
    if (before.size === 0 && reads.size === 0) return
    for (const read of reads) if (!before.has(read)) this.link(read, reader, row)
    for (const read of before) if (!reads.has(read)) this.unlink(read, reader, row)
    if (rows === undefined) this.byReader.set(reader, (rows = new Map()))
    if (reads.size === 0) rows.delete(row)
    else rows.set(row, reads)
  }

  watches(reader: Reader, row: ReaderRow): boolean {
    return this.byReader.get(reader)?.has(row) === true
  }

  /** Whether any row of a reader has read anything yet. */
  knows(reader: Reader): boolean {
    return this.byReader.has(reader)
  }

  /** What the rows of a reader have read, of the first `most` rows that read anything. */
  *readsOf(reader: Reader, most: number): Iterable<Read> {
    let seen = 0
    for (const reads of this.byReader.get(reader)?.values() ?? []) {
      if (++seen > most) return
      yield* reads
    }
  }

  /**
   * Forgets everything a reader has read, row by row; it must not read again. Answers after each row how much that was.
   */
  *forget(reader: Reader): Generator<number, void, void> {
    for (const [row, reads] of this.byReader.get(reader) ?? []) {
      for (const read of reads) this.unlink(read, reader, row)
      yield reads.size
    }
    this.byReader.delete(reader)
  }

  clear(): void {
    this.byText.clear()
    this.byReader.clear()
  }

  /** Rows that have read something. */
  get size(): number {
    let size = 0
    for (const rows of this.byReader.values()) size += rows.size
    return size
  }

  /** No row has read anything but results. */
  get empty(): boolean {
    return this.byText.size === 0
  }

  /** What is named by a text; undefined where no row has read it. */
  of(text: string): ReadByRows | undefined {
    return this.byText.get(text)
  }

  private link(read: Read, reader: Reader, row: ReaderRow): void {
    if (typeof read !== "string") return addRow(read, reader, row)
    const known = this.byText.get(read)
    if (known === undefined) this.byText.set(read, { reader, row })
    else addRow(known, reader, row)
  }

  private unlink(read: Read, reader: Reader, row: ReaderRow): void {
    const named = typeof read === "string" ? this.byText.get(read) : read
    if (named?.reader === undefined) return
    removeRow(named, reader, row)
    if (named.reader !== undefined) return
    if (typeof read === "string") this.byText.delete(read)
    else this.idle(read)
  }
}
