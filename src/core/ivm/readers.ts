/**
 * Read tracking: which rows of which instances looked at something other than themselves: a record, the edges of one, a
 * whole table, or the result of a subquery.
 *
 * When that changes, exactly these rows are evaluated again. Rows that read nothing (the usual case) cost nothing.
 * State: read -> reader -> rows, and the way back to forget. Cost: O(things read) per evaluated row.
 */

/** Something a row can have read: named by a text (records, edges, tables), or the instance of a subquery itself. */
export type Read = string | object

/** Something that can evaluate one of its rows again; `whole` false where only the results it shows have changed. */
export interface Reader {
  readonly reread: (rowText: string, whole: boolean) => void
}

const none: ReadonlySet<Read> = new Set()

export class Readers {
  private readonly byRead = new Map<Read, Map<Reader, Set<string>>>()
  private readonly byReader = new Map<Reader, Map<string, ReadonlySet<Read>>>()
  private readonly idle: (read: object) => void

  /** `idle` is told when the last row that had read an instance no longer does. */
  constructor(idle: (read: object) => void) {
    this.idle = idle
  }

  /** Replaces what this row of this reader has read. */
  watch(reader: Reader, rowText: string, reads: ReadonlySet<Read>): void {
    const before = this.byReader.get(reader)?.get(rowText) ?? none
    if (before.size === 0 && reads.size === 0) return
    for (const read of reads) if (!before.has(read)) this.link(read, reader, rowText)
    for (const read of before) if (!reads.has(read)) this.unlink(read, reader, rowText)
    let rows = this.byReader.get(reader)
    if (rows === undefined) this.byReader.set(reader, (rows = new Map()))
    if (reads.size === 0) rows.delete(rowText)
    else rows.set(rowText, reads)
  }

  /** Forgets everything a reader has read. */
  forget(reader: Reader): void {
    for (const [rowText, reads] of this.byReader.get(reader) ?? []) {
      for (const read of reads) this.unlink(read, reader, rowText)
    }
    this.byReader.delete(reader)
  }

  /** Nothing has been read by anybody. */
  get empty(): boolean {
    return this.byRead.size === 0
  }

  /** Whether any row has read this. */
  has(read: Read): boolean {
    return this.byRead.has(read)
  }

  /** The rows that have read this, by reader; changes while rows are evaluated again. */
  of(read: Read): Iterable<readonly [Reader, ReadonlySet<string>]> {
    return this.byRead.get(read) ?? []
  }

  private link(read: Read, reader: Reader, rowText: string): void {
    let readers = this.byRead.get(read)
    if (readers === undefined) this.byRead.set(read, (readers = new Map()))
    const rows = readers.get(reader)
    if (rows === undefined) readers.set(reader, new Set([rowText]))
    else rows.add(rowText)
  }

  private unlink(read: Read, reader: Reader, rowText: string): void {
    const readers = this.byRead.get(read)
    const rows = readers?.get(reader)
    if (readers === undefined || rows === undefined || !rows.delete(rowText)) return
    if (rows.size === 0) readers.delete(reader)
    if (readers.size > 0) return
    this.byRead.delete(read)
    if (typeof read === "object") this.idle(read)
  }
}
