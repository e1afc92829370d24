/**
 * Memory of the rows of all views, beside their records, in bytes: computed sort values, pieces of SPLIT, contributions
 * to groups, group rows, results of recomputed queries, reads of other records. The index of edges, which all
 * views share, counts with them.
 *
 * Why counted: one change may be a row of ten thousand views, and a record of a kilobyte may be split into pieces of
 * megabytes. Memory is asked for before a row is kept: without room the row is left out and named (D2a), like a row
 * that exceeds its own limit. Values shared with a record, and texts of a few characters, count nothing.
 */
import { partsOf } from "../surql/evaluate/charge.ts"
import { plainFailure, raiseAgain } from "../surql/evaluate/failure.ts"
import type { Value } from "../surql/values/value.ts"

export const keptSetting = "SVC_VIEW_BYTES_TOTAL"

/** Bytes of one part of a value, and of a piece's row beside its value. */
const partBytes = 64
export const pieceBytes = 256

/** Bytes of the value that are still held, of the bytes `made` during its evaluation: intermediate values are gone. */
export const keptBytesOf = (made: number, value: Value): number =>
  made <= partBytes ? Math.max(0, made) : Math.min(made, partBytes * (1 + partsOf(value, Math.ceil(made / partBytes))))

/** Bytes that a row holds; 0 without a row. */
export const bytesKeptBy = (row: { readonly keeps: number } | undefined): number => (row === undefined ? 0 : row.keeps)

/**
 * Bytes of a row that has read something elsewhere, and of each of its reads. Measured on Node 20: 360 in all for a
 * link that many rows share, 560 for one of its own.
 */
const readingRowBytes = 256
const readBytes = 256

/** Bytes of the reads of one row. */
export const readsBytes = (reads: number): number => (reads === 0 ? 0 : readingRowBytes + readBytes * reads)

/** Counts the bytes that all views keep, against one limit. */
export class KeptBytes {
  /** Bytes of the rows of views. */
  used = 0
  /** How often there was no room. */
  refused = 0
  readonly most: number
  readonly reason: string
  private readonly shared: () => number

  /** `shared`: bytes that count as well and that no view holds alone. */
  constructor(most: number, shared: () => number = () => 0) {
    this.most = most
    this.shared = shared
    this.reason = `Rows of views keep more than ${most} bytes of their own in all; raise ${keptSetting} to allow it`
  }

  hasRoom(more: number): boolean {
    const fits = this.fits(more)
    if (!fits) this.refused++
    return fits
  }

  /** As {@link hasRoom}, but a lack of room is not counted as refused: for a caller that tries another way first. */
  fits(more: number): boolean {
    return more <= 0 || this.used + this.shared() + more <= this.most
  }

  /** Fails unless there is room for this many more bytes. */
  require(more: number): void {
    if (!this.hasRoom(more)) raiseAgain(plainFailure(this.reason))
  }
}
