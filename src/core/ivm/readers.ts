/**
 * Read tracking: which rows of which instances looked at something other than themselves, a record or the edges of one.
 *
 * When that changes, exactly these rows are evaluated again. Rows that read nothing (the usual case) cost nothing.
 * State: record -> reader -> rows, and the way back to forget. Cost: O(records read) per evaluated row.
 */

/** Something that can evaluate one of its rows again. */
export interface Reader {
  readonly reread: (rowText: string) => void
}

const none: ReadonlySet<string> = new Set()

export class Readers {
  private readonly byRecord = new Map<string, Map<Reader, Set<string>>>()
  private readonly byReader = new Map<Reader, Map<string, ReadonlySet<string>>>()

  /** Replaces what this row of this reader has read. */
  watch(reader: Reader, rowText: string, reads: ReadonlySet<string>): void {
    const before = this.byReader.get(reader)?.get(rowText) ?? none
    if (before.size === 0 && reads.size === 0) return
    for (const record of before) if (!reads.has(record)) this.unlink(record, reader, rowText)
    for (const record of reads) this.link(record, reader, rowText)
    let rows = this.byReader.get(reader)
    if (rows === undefined) this.byReader.set(reader, (rows = new Map()))
    if (reads.size === 0) rows.delete(rowText)
    else rows.set(rowText, reads)
  }

  /** Forgets everything a reader has read. */
  forget(reader: Reader): void {
    for (const [rowText, records] of this.byReader.get(reader) ?? []) {
      for (const record of records) this.unlink(record, reader, rowText)
    }
    this.byReader.delete(reader)
  }

  /** Evaluates every row again that read this record. */
  reread(record: string): void {
    const readers = this.byRecord.get(record)
    if (readers === undefined) return
    for (const [reader, rows] of [...readers]) for (const row of [...rows]) reader.reread(row)
  }

  private link(record: string, reader: Reader, rowText: string): void {
    let readers = this.byRecord.get(record)
    if (readers === undefined) this.byRecord.set(record, (readers = new Map()))
    const rows = readers.get(reader)
    if (rows === undefined) readers.set(reader, new Set([rowText]))
    else rows.add(rowText)
  }

  private unlink(record: string, reader: Reader, rowText: string): void {
    const readers = this.byRecord.get(record)
    const rows = readers?.get(reader)
    if (readers === undefined || rows === undefined || !rows.delete(rowText)) return
    if (rows.size === 0) readers.delete(reader)
    if (readers.size === 0) this.byRecord.delete(record)
  }
}
