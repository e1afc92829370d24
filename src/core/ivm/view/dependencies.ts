/**
 * Read tracking: which rows of which views have read something other than their own record: another record, the edges
 * of one, a whole table, or the result of a subquery.
 *
 * When that changes, exactly these rows are evaluated again. Rows that read nothing (the usual case) cost nothing.
 * State: per read its rows, and per row its reads. The result of a correlated subquery, mostly read by a single row,
 * names that row without a map. Cost: O(things read) per evaluated row.
 */
import { readsBytes } from "../keptBytes.ts"
import type { RecordSlot } from "../store/recordSlot.ts"

/** A row of a reader: the slot of its record, or the name of a group. */
export type ReaderRow = RecordSlot | string

/** A view that can evaluate one of its rows again. */
export interface Reader {
  readonly reread: (row: ReaderRow, cause: ReadResult | undefined) => void
}

/** Something that a row has read: named by a text (records, edges, tables), or the result of a subquery itself. */
export type Read = string | ReadResult

/** The rows that have read one thing. A single row is stored without a map. */
export interface Readers {
  reader: Reader | Map<Reader, Set<ReaderRow>> | undefined
  /** The row of the only reader. */
  row: ReaderRow
}

/** The result of a subquery. */
export type ReadResult = Readers

/** Receives rows that have to be evaluated again; `cause`: the result that changed, if it is one. */
export interface DirtyRowSink {
  readonly add: (reader: Reader, row: ReaderRow, cause: ReadResult | undefined) => void
}

/** Passes each row that has read something to `sink`, which must not change the reads meanwhile. */
export const rereadAll = ({ reader, row }: Readers, dirtyRows: DirtyRowSink, cause: ReadResult | undefined): void => {
  if (reader instanceof Map) for (const [each, rows] of reader) for (const one of rows) dirtyRows.add(each, one, cause)
  else if (reader !== undefined) dirtyRows.add(reader, row, cause)
}

const addRow = (read: Readers, reader: Reader, row: ReaderRow): void => {
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

const removeRow = (read: Readers, reader: Reader, row: ReaderRow): void => {
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

export const noReads: ReadonlySet<Read> = new Set()

export class Dependencies {
  private readonly byText = new Map<string, Readers>()
  private readonly byReader = new Map<Reader, Map<ReaderRow, ReadonlySet<Read>>>()
  private readonly idle: (read: ReadResult) => void

  /** `idle` is called when the last row stops reading a result. */
  constructor(idle: (read: ReadResult) => void) {
    this.idle = idle
  }

  /** Replaces the noted reads of this row of this reader. */
  watch(reader: Reader, row: ReaderRow, reads: ReadonlySet<Read>): number {
    let rows = this.byReader.get(reader)
    const before = rows?.get(row) ?? noReads
    if (before.size === 0 && reads.size === 0) return 0
    for (const read of reads) if (!before.has(read)) this.link(read, reader, row)
    for (const read of before) if (!reads.has(read)) this.unlink(read, reader, row)
    if (rows === undefined) this.byReader.set(reader, (rows = new Map()))
    if (reads.size === 0) rows.delete(row)
    else rows.set(row, reads)
    return readsBytes(reads.size) - readsBytes(before.size)
  }

  /** How much a row has read. */
  count(reader: Reader, row: ReaderRow): number {
    return this.byReader.get(reader)?.get(row)?.size ?? 0
  }

  /** Whether any row of a reader has noted reads. */
  knows(reader: Reader): boolean {
    return this.byReader.has(reader)
  }

  /** The reads of a reader's rows, of the first `most` rows with reads. */
  *readsOf(reader: Reader, most: number): Iterable<Read> {
    let seen = 0
    for (const reads of this.byReader.get(reader)?.values() ?? []) {
      if (++seen > most) return
      yield* reads
    }
  }

  /**
   * Forgets all reads of a reader, row by row; the reader must not read again. Yields the number of reads of each row.
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

  /** Number of rows with noted reads. */
  get size(): number {
    let size = 0
    for (const rows of this.byReader.values()) size += rows.size
    return size
  }

  /** Whether rows have read nothing but results of subqueries. */
  get empty(): boolean {
    return this.byText.size === 0
  }

  /** The readers of a named thing; undefined if no row has read it. */
  of(text: string): Readers | undefined {
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
