/**
 * Read tracking: which rows of which instances looked at something other than themselves: a record, the edges of one, a
 * whole table, or the result of a subquery.
 *
 * When that changes, exactly these rows are evaluated again. Rows that read nothing (the usual case) cost nothing.
 * State: per read the rows that did, and the way back to forget. What was read by one row names it without a map: the
 * result of a correlated subquery mostly is. Cost: O(things read) per evaluated row.
 */
import type { Place } from "./place.ts"

/** A row of a reader: the place of its record, or the name of a group. */
export type ReaderRow = Place | string

/** Something that can evaluate one of its rows again. */
export interface Reader {
  readonly reread: (row: ReaderRow, cause: ReadResult | undefined) => void
}

/** Something a row can have read: named by a text (records, edges, tables), or the instance of a subquery itself. */
export type Read = string | ReadResult

/** The result of a subquery; its readers stand in it. */
export interface ReadResult {
  links: Links | undefined
}

/** Where rows are put that have to be read again; `cause`: the result that moved, if it is one. */
export interface RereadRows {
  readonly add: (reader: Reader, row: ReaderRow, cause: ReadResult | undefined) => void
}

/** The rows that have read one thing. */
export class Links {
  private reader: Reader | undefined = undefined
  private row: ReaderRow = ""
  /** Once there are several. */
  private several: Map<Reader, Set<ReaderRow>> | undefined = undefined

  get isEmpty(): boolean {
    return this.reader === undefined && this.several === undefined
  }

  add(reader: Reader, row: ReaderRow): void {
    if (this.several === undefined) {
      if (this.reader === undefined || (this.reader === reader && this.row === row)) {
        this.reader = reader
        this.row = row
        return
      }
      this.several = new Map([[this.reader, new Set([this.row])]])
      this.reader = undefined
      this.row = ""
    }
    const rows = this.several.get(reader)
    if (rows === undefined) this.several.set(reader, new Set([row]))
    else rows.add(row)
  }

  remove(reader: Reader, row: ReaderRow): void {
    if (this.several === undefined) {
      if (this.reader !== reader || this.row !== row) return
      this.reader = undefined
      this.row = ""
      return
    }
    const rows = this.several.get(reader)
    if (rows === undefined || !rows.delete(row) || rows.size > 0) return
    this.several.delete(reader)
    if (this.several.size === 0) this.several = undefined
  }

  /** Adds each row to those that have to be read again; they may not change meanwhile. */
  into(rereads: RereadRows, cause: ReadResult | undefined): void {
    if (this.reader !== undefined) rereads.add(this.reader, this.row, cause)
    else if (this.several !== undefined) for (const [reader, rows] of this.several) for (const row of rows) rereads.add(reader, row, cause)
  }
}

const none: ReadonlySet<Read> = new Set()

export class Readers {
  private readonly byText = new Map<string, Links>()
  private readonly byReader = new Map<Reader, Map<ReaderRow, ReadonlySet<Read>>>()
  private readonly idle: (read: ReadResult) => void

  /** `idle` is told when the last row that had read a result no longer does. */
  constructor(idle: (read: ReadResult) => void) {
    this.idle = idle
  }

  /** Replaces what this row of this reader has read. */
  watch(reader: Reader, row: ReaderRow, reads: ReadonlySet<Read>): void {
    let rows = this.byReader.get(reader)
    const before = rows?.get(row) ?? none
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

  /** Forgets everything a reader has read. */
  forget(reader: Reader): void {
    for (const [row, reads] of this.byReader.get(reader) ?? []) {
      for (const read of reads) this.unlink(read, reader, row)
    }
    this.byReader.delete(reader)
  }

  /** Nobody has read anything but results. */
  get empty(): boolean {
    return this.byText.size === 0
  }

  /** The rows that have read what is named by a text. */
  of(text: string): Links | undefined {
    return this.byText.get(text)
  }

  private link(read: Read, reader: Reader, row: ReaderRow): void {
    let links = typeof read === "string" ? this.byText.get(read) : read.links
    if (links === undefined) {
      links = new Links()
      if (typeof read === "string") this.byText.set(read, links)
      else read.links = links
    }
    links.add(reader, row)
  }

  private unlink(read: Read, reader: Reader, row: ReaderRow): void {
    const links = typeof read === "string" ? this.byText.get(read) : read.links
    if (links === undefined) return
    links.remove(reader, row)
    if (!links.isEmpty) return
    if (typeof read === "string") this.byText.delete(read)
    else {
      read.links = undefined
      this.idle(read)
    }
  }
}
