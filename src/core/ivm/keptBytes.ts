/**
 * What rows of all views keep that is not their records', in bytes: sort values that are computed, pieces of SPLIT,
 * what rows bring to groups, rows of groups, results of queries that are run whole.
 *
 * Why counted: one change may be a row of ten thousand views, and a record of a kilobyte may be split into pieces of
 * megabytes. What a row keeps is asked for before it is kept: without room the row is left out and named (D2a), as one
 * that runs out of its own budget. Values shared with a record, and texts of a few characters, count nothing.
 */
import { partsOf } from "../surql/evaluate/charge.ts"
import { plainly, raiseAgain } from "../surql/evaluate/failure.ts"
import type { Value } from "../surql/values/value.ts"

export const keptSetting = "SVC_VIEW_BYTES_TOTAL"

/** What a part of a value takes, and the row of a piece beside its value. */
const partBytes = 64
export const pieceBytes = 256

/** How much of what an evaluation made is kept with a value: parts that are let go again are not in it. */
export const keptOf = (made: number, value: Value): number =>
  made <= partBytes ? Math.max(0, made) : Math.min(made, partBytes * (1 + partsOf(value, Math.ceil(made / partBytes))))

/** What a row keeps; nothing where there is none. */
export const keptBy = (row: { readonly keeps: number } | undefined): number => (row === undefined ? 0 : row.keeps)

export class KeptBytes {
  used = 0
  /** How often something had no room. */
  refused = 0
  readonly most: number
  readonly reason: string

  constructor(most: number) {
    this.most = most
    this.reason = `Rows of views keep more than ${most} bytes of their own in all; raise ${keptSetting} to allow it`
  }

  hasRoom(more: number): boolean {
    const fits = more <= 0 || this.used + more <= this.most
    if (!fits) this.refused++
    return fits
  }

  /** Fails where there is no room for so many more. */
  require(more: number): void {
    if (!this.hasRoom(more)) raiseAgain(plainly(this.reason))
  }
}
